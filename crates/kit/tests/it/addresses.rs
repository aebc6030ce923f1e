//! Addresses, by tables of cases: which may be dialled, however they are written.

use std::net::IpAddr;

use isolane::ErrorKind;
use isolane_kit::{
    error::KitError,
    fetch::{
        address::{Addresses, written_address},
        target,
    },
};

fn addresses(allowed: &[&str]) -> Addresses {
    Addresses::new(allowed.iter().copied(), "allowAddresses")
        .unwrap_or_else(|error| panic!("{error}"))
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap_or_else(|_| panic!("{text} is no address"))
}

fn check(allowed: &[&str], dialled: &[&str], refused: &[&str]) {
    let addresses = addresses(allowed);
    for text in dialled {
        assert!(addresses.may_dial(address(text)), "{allowed:?} refuses {text}");
    }
    for text in refused {
        assert!(!addresses.may_dial(address(text)), "{allowed:?} lets {text} through");
    }
}

/// The ends of the refused networks, and their neighbours.
const PUBLIC: &str = "
    1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
    168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255
    192.0.1.0 192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
    198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 1.0.0.0 2000:: 2001:200::
    2001:4860:4860::8888 2001:db7:ffff:: 2001:db9:: 2003:: 2606:4700::1111 3ffe:ffff:: 3fff:1000::
    3fff:ffff::
";

const REFUSED: &str = "
    0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.0.0.1
    127.255.255.255 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0
    192.0.0.192 192.0.0.255 192.0.2.1 192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255
    198.51.100.1 203.0.113.1 224.0.0.0 239.1.1.1 240.0.0.0 255.255.255.255 168.63.129.16 100.100.100.200
    :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::10.0.0.1
    64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 1fff:ffff:: 2001::1 2001:1ff:ffff:: 2001:db8::1 2002:a00:1::
    2002:808:808:: 3fff::1 3fff:fff:ffff:: 4000:: 5f00::1 fc00::1 fd00:ec2::254 fd20:ce::254 fe80::1
    fec0::1 ff02::1 ffff::
";

#[test]
fn public_addresses_are_dialled_and_no_others() {
    let listed = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
    check(&[], &listed(PUBLIC), &listed(REFUSED));
}

#[test]
fn networks_lift_the_refusal() {
    check(
        &["10.0.0.0/8"],
        &["10.0.0.0", "10.255.255.255", "8.8.8.8"],
        &["192.168.0.1", "127.0.0.1", "::ffff:10.0.0.1"],
    );
    check(&["127.0.0.1", "::1/128"], &["127.0.0.1", "::1"], &["127.0.0.2", "::2", "::"]);
    check(&["192.168.7.0/24"], &["192.168.7.255"], &["192.168.6.255", "192.168.8.0"]);
    check(
        &["0.0.0.0/0"],
        &["0.0.0.0", "127.0.0.1", "255.255.255.255"],
        &["169.254.169.254", "::1", "::ffff:127.0.0.1"],
    );
    check(
        &["::/0"],
        &["::1", "fd12::1", "fe80::1", "2001:db8::1"],
        &["127.0.0.1", "::ffff:127.0.0.1", "fd00:ec2::254"],
    );
    check(
        &["fd00::/8"],
        &["fd12:3456::1", "fdff::"],
        &["fc00::1", "fe00::", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"],
    );
}

#[test]
fn an_ipv4_address_inside_must_pass_too() {
    check(
        &["::ffff:0:0/96"],
        &["::ffff:8.8.8.8"],
        &["::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:127.0.0.1"],
    );
    check(&["::ffff:0:0/96", "10.0.0.0/8"], &["::ffff:10.0.0.1"], &["::ffff:192.168.0.1"]);
    check(
        &["64:ff9b::/96"],
        &["64:ff9b::8.8.8.8"],
        &["64:ff9b::10.0.0.1", "64:ff9b::168.63.129.16", "64:ff9b::7f00:1"],
    );
    check(&["64:ff9b:1::/48"], &["64:ff9b:1::8.8.8.8"], &["64:ff9b:1::10.0.0.1"]);
    check(
        &["2002::/16"],
        &["2002:808:808::1"],
        &["2002:a00:1::", "2002:7f00:1::", "2002:a9fe:a9fe::"],
    );
    // Teredo has it with all bits flipped: 8.8.8.8, then 10.0.0.1.
    check(
        &["2001::/32"],
        &["2001:0:1:2::f7f7:f7f7"],
        &["2001:0:1:2::f5ff:fffe", "2001:0:808:808::"],
    );
    check(&["::/96"], &["::8.8.8.8", "::1"], &["::10.0.0.1", "::127.0.0.1"]);
    check(
        &["fe80::/10"],
        &["fe80::1", "fe80::5efe:8.8.8.8"],
        &["fe80::5efe:10.0.0.1", "fe80::200:5efe:10.0.0.1"],
    );
    check(&["::ffff:0:0:0/96"], &["::ffff:0:8.8.8.8"], &["::ffff:0:10.0.0.1"]);
}

#[test]
fn metadata_addresses_are_named_singly() {
    let metadata = [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
    ];
    check(&["0.0.0.0/0", "::/0"], &[], &metadata);
    check(
        &["169.254.0.0/16", "169.254.169.254/31", "168.63.129.16/31", "fd00:ec2::254/127"],
        &["169.254.1.1"],
        &metadata,
    );
    for text in metadata {
        let single = format!("{text}/{}", if text.contains(':') { 128 } else { 32 });
        for named in [text, single.as_str()] {
            let others: Vec<_> = metadata.into_iter().filter(|other| *other != text).collect();
            check(&[named], &[text], &others);
            check(&["0.0.0.0/0", named, "::/0"], &[text], &others);
        }
    }
    // Inside an IPv6 address, too.
    check(
        &["64:ff9b::/96", "169.254.169.254"],
        &["64:ff9b::169.254.169.254"],
        &["64:ff9b::169.254.170.2"],
    );
    check(&["64:ff9b::169.254.169.254"], &[], &["64:ff9b::169.254.169.254"]);
}

#[test]
fn own_interfaces_are_refused() {
    let own = ["198.100.1.2", "2a00::5", "10.1.1.1", "8.8.4.4"].map(address);
    let addresses = |allowed: &[&str]| addresses(allowed).without(own);
    for ip in own {
        assert!(!addresses(&[]).may_dial(ip), "{ip}");
    }
    assert!(addresses(&[]).may_dial(address("198.100.1.3")));
    assert!(addresses(&["10.0.0.0/8"]).may_dial(address("10.1.1.1")));
    assert!(addresses(&["198.100.1.2"]).may_dial(address("198.100.1.2")));
    // Through a gateway.
    assert!(!addresses(&["64:ff9b::/96"]).may_dial(address("64:ff9b::8.8.4.4")));
    assert!(addresses(&["64:ff9b::/96"]).may_dial(address("64:ff9b::8.8.8.8")));
}

#[test]
fn networks_are_strict() {
    let cases = [
        ("10.0.0.1/8", "bits of the host are set"),
        ("10.0.0.0/7", ""),
        ("fd00::1/64", "bits of the host are set"),
        ("1.2.3.4/31", ""),
        ("1.2.3.5/31", "bits of the host are set"),
        ("0.0.0.1/0", "bits of the host are set"),
        ("0.0.0.0/0", ""),
        ("::/0", ""),
        ("10.0.0.0/33", "a prefix is a number from 0 to 32"),
        ("::/129", "a prefix is a number from 0 to 128"),
        ("10.0.0.0/", "a prefix is a number from 0 to 32"),
        ("10.0.0.0/+8", "a prefix is a number from 0 to 32"),
        ("10.0.0.0/08", "a prefix is a number from 0 to 32"),
        ("10.0.0.0/8/8", "a prefix is a number from 0 to 32"),
        ("10.0.0.0/4294967304", "a prefix is a number from 0 to 32"),
        ("10.0.0.0/255.0.0.0", "a prefix is a number from 0 to 32"),
        ("10/8", "it is no IP address and no CIDR"),
        ("010.0.0.0/8", "it is no IP address and no CIDR"),
        ("0x0a.0.0.0/8", "it is no IP address and no CIDR"),
        ("", "it is no IP address and no CIDR"),
        (" 10.0.0.0/8", "it is no IP address and no CIDR"),
        ("x.org", "it is no IP address and no CIDR"),
        ("fe80::1%eth0", "it is no IP address and no CIDR"),
        ("[::1]", "it is no IP address and no CIDR"),
    ];
    for (text, why) in cases {
        let error = Addresses::new([text], "fetch.allowAddresses").err();
        let expected = format!("fetch.allowAddresses[0]: '{text}' is not a valid network: {why}");
        match error {
            None => assert!(why.is_empty(), "{text}"),
            Some(error) => {
                assert_eq!((error.kind(), error.message()), (ErrorKind::Type, expected.as_str()));
            }
        }
    }
}

/// Every way to write these addresses in a URL.
#[test]
fn no_spelling_hides_an_address() {
    let spellings = [
        (
            "127.0.0.1",
            &[
                "127.0.0.1",
                "127.1",
                "127.0.1",
                "2130706433",
                "0x7f000001",
                "0x7F000001",
                "0X7f.1",
                "017700000001",
                "0177.0.0.1",
                "0177.0x0.0.1",
                "0x7f.0.0.0x1",
                "127.0.0.1.",
                "127.1.",
                "0x7f.0x000000000000001",
                "00000000177.1",
                "%31%32%37.0.0.1",
                "１２７.0.0.1",
                "127。0。0。1",
                "①②⑦.0.0.1",
                "127.0x.0.1",
                "127.0.0X1",
                "0177.1",
                "127.0.00.01",
            ][..],
        ),
        ("0.0.0.0", &["0", "0.0", "0x0", "00", "0x", "0.0.0.0", "0.0.0.0.", "0x.0x.0"][..]),
        ("10.0.0.1", &["10.1", "167772161", "0xa.1", "012.0.0.1", "0xa000001"][..]),
        (
            "169.254.169.254",
            &[
                "169.254.169.254",
                "2852039166",
                "0xa9fea9fe",
                "0xA9.0xFE.0xA9.0xFE",
                "0251.0376.0251.0376",
                "169.254.43518",
                "169.16689662",
                "025177524776",
                "169.254.169.254.",
                "169。254。169。254",
                "169.254.0xa9fe",
            ][..],
        ),
        ("192.168.0.1", &["192.168.1", "192.11010049", "3232235521", "0300.0250.0.1"][..]),
        ("::1", &["[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::0.0.0.1]"][..]),
        (
            "::ffff:127.0.0.1",
            &["[::ffff:127.0.0.1]", "[::FFFF:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]"][..],
        ),
        ("::", &["[::]", "[0::0]"][..]),
        ("fe80::1", &["[fe80::1]", "[FE80:0::1]"][..]),
        ("fd00:ec2::254", &["[fd00:ec2::254]", "[FD00:0ec2:0::254]"][..]),
        ("64:ff9b::a00:1", &["[64:ff9b::10.0.0.1]", "[64:FF9B::a00:1]"][..]),
    ];
    for (ip, texts) in spellings {
        for text in texts {
            for target in [
                format!("http://{text}/"),
                format!("https:{text}:8443"),
                format!("http:\\\\{text}\\a"),
            ] {
                let url =
                    target::parse(&target).unwrap_or_else(|error| panic!("{target}: {error}"));
                assert_eq!(written_address(&url), Some(address(ip)), "{target}");
                assert!(!addresses(&[]).may_dial(address(ip)), "{ip}");
            }
        }
    }
}

#[test]
fn texts_that_only_look_like_addresses_are_no_hosts() {
    let texts = [
        "1.2.3.4.5",
        "256.1.1.1",
        "1.2.3.256",
        "0x1ffffffff",
        "09.1",
        "4294967296",
        "[::1%25lo]",
        "[::1]x",
        "x.4",
        "[1.2.3.4]",
        "[::ffff:127.1]",
        "1.2.3.-4.5",
    ];
    for text in texts {
        assert!(target::parse(&format!("http://{text}/")).is_err(), "{text}");
    }
    // These are looked up.
    for text in ["127.0.0.1.nip.io", "localhost", "0x7f.x", "1.2.3.4-5", "1.2.3.4x"] {
        let url = target::parse(&format!("http://{text}/")).expect("a URL");
        assert_eq!(written_address(&url), None, "{text}");
    }
}

#[test]
fn only_addresses_that_pass_are_dialled() {
    let url = target::parse("https://x.org/a").expect("a URL");
    let looked_up = ["10.0.0.1", "8.8.8.8", "::1", "2606:4700::1111"].map(address);
    let dialled = addresses(&[]).dialled(&url, looked_up).expect("addresses");
    assert_eq!(dialled, ["8.8.8.8", "2606:4700::1111"].map(address));
    let message = "'x.org' has no address that may be reached";
    for none in [&looked_up[..1], &[]] {
        let error = addresses(&[]).dialled(&url, none.iter().copied());
        assert_eq!(error, Err(KitError::fetch_blocked(message)));
    }
}
