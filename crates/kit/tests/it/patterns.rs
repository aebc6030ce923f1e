//! Patterns of `allow`, by tables of cases: which requests they allow, and which error the others get.

use isolane::ErrorKind;
use isolane_kit::{
    error::KitError,
    fetch::{
        allow::{Allow, AllowEntry, method},
        pattern::Pattern,
        target,
    },
};

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text, "allow[0]").unwrap_or_else(|error| panic!("{error}"))
}

fn url(text: &str) -> url::Url {
    target::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A pattern, the URLs that match it, and those that do not.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

fn check(cases: &[Case]) {
    for (text, matching, others) in cases {
        let pattern = pattern(text);
        // A pattern is shown as one that means the same.
        let shown = self::pattern(&pattern.to_string());
        assert_eq!(shown, pattern);
        for target in *matching {
            assert!(pattern.matches(&url(target)), "'{text}' does not match '{target}'");
        }
        for target in *others {
            assert!(!pattern.matches(&url(target)), "'{text}' matches '{target}'");
        }
    }
}

#[test]
fn schemes_and_ports() {
    check(&[
        (
            "x.org",
            &[
                "https://x.org",
                "https://x.org:443/a?b",
                "HTTPS://X.ORG/",
                "https:x.org",
                "https:\\\\x.org",
            ],
            &[
                "http://x.org",
                "https://x.org:8443",
                "http://x.org:443",
                "wss://x.org",
                "ftp://x.org",
            ],
        ),
        (
            "http://x.org",
            &["http://x.org", "http://x.org:80"],
            &["https://x.org", "https://x.org:80"],
        ),
        ("HTTPS://x.org:443", &["https://x.org"], &["https://x.org:444"]),
        ("x.org:8443", &["https://x.org:8443"], &["https://x.org", "http://x.org:8443"]),
        ("http://x.org:443", &["http://x.org:443"], &["https://x.org", "http://x.org"]),
        (
            "x.org:*",
            &["https://x.org", "https://x.org:1", "https://x.org:65535"],
            &["http://x.org:1"],
        ),
        ("x.org:080", &["https://x.org:80"], &["https://x.org:8"]),
    ]);
}

#[test]
fn hosts() {
    check(&[
        (
            "x.org",
            &[
                "https://x.org",
                "https://X.oRg",
                "https://x%2Eorg",
                "https://ｘ.org",
                "https://x。org",
            ],
            &[
                "https://a.x.org",
                "https://x.org.",
                "https://x.org.evil.net",
                "https://evilx.org",
                "https://x.org%2eevil.net",
                "https://x.orgg",
                "https://x-org",
                "https://evil.net/x.org",
                "https://evil.net?x.org",
                "https://evil.net#x.org",
                "https://evil.net\\x.org",
                "https://evil.net/@x.org",
                "https://xorg",
            ],
        ),
        (
            "*.x.org",
            &["https://a.x.org", "https://a.b.x.org", "https://A.X.ORG", "https://*.x.org"],
            &[
                "https://x.org",
                "https://.x.org",
                "https://ax.org",
                "https://a.x.org.",
                "https://a.x.orgs",
                "https://a.x.org.evil.net",
                "https://evil.net/.x.org",
            ],
        ),
        (
            "bücher.example",
            &[
                "https://xn--bcher-kva.example",
                "https://BÜCHER.example",
                "https://bu\u{308}cher.example",
            ],
            &["https://bucher.example", "https://bu.cher.example"],
        ),
        ("xn--bcher-kva.example", &["https://bücher.example"], &["https://bücher.example."]),
        ("*.bücher.example", &["https://a.xn--bcher-kva.example"], &["https://bücher.example"]),
        // The sharp s is a letter of its own; the Cyrillic letters only look alike.
        ("straße.example", &["https://xn--strae-oqa.example"], &["https://strasse.example"]),
        (
            "paypal.example",
            &["https://PayPal.example"],
            &["https://раураl.example", "https://paypaI.example.org"],
        ),
        // The Kelvin sign is a k.
        ("kelvin.example", &["https://\u{212A}elvin.example"], &[]),
        (
            "10.0.0.1",
            &["https://10.0.0.1", "https://167772161", "https://0xa000001", "https://012.1"],
            &["https://10.0.0.2", "https://10.0.0.1.nip.io", "https://[::ffff:10.0.0.1]"],
        ),
        ("0x7f.1", &["https://127.0.0.1"], &["https://0x7f.1.x"]),
        (
            "[2001:DB8::1]:8443",
            &["https://[2001:db8:0::1]:8443"],
            &["https://[2001:db8::2]:8443", "https://[2001:db8::1]"],
        ),
        ("http://[::ffff:1.2.3.4]", &["http://[::ffff:102:304]"], &["http://1.2.3.4"]),
        (
            "localhost",
            &["https://localhost"],
            &["https://127.0.0.1", "https://localhost.localdomain"],
        ),
        ("a_b.example", &["https://a_b.example"], &["https://a-b.example"]),
    ]);
}

#[test]
fn paths() {
    check(&[
        ("x.org", &["https://x.org", "https://x.org/a/b?c#d", "https://x.org/%2f%5c%00"], &[]),
        (
            "x.org/",
            &[
                "https://x.org",
                "https://x.org/",
                "https://x.org?a=/b",
                "https://x.org#/b",
                "https://x.org/a/..",
            ],
            &["https://x.org/a", "https://x.org//", "https://x.org/%2e/a"],
        ),
        (
            "x.org/a",
            &[
                "https://x.org/a",
                "https://x.org/./a",
                "https://x.org\\a",
                "https://x.org/b/../a",
                "https://x.org/%2e/a?b",
            ],
            &[
                "https://x.org/a/",
                "https://x.org/ab",
                "https://x.org/A",
                "https://x.org/%61",
                "https://x.org//a",
                "https://x.org/a;b",
            ],
        ),
        (
            "x.org/api/*",
            &[
                "https://x.org/api/",
                "https://x.org/api/a",
                "https://x.org/api/a/b",
                "https://x.org/api/%20é",
                "https://x.org/api//",
                "https://x.org/api/*",
                "https://x.org/api/a/../b",
                "https://x.org/api/%252f",
            ],
            &[
                "https://x.org/api",
                "https://x.org/apis/a",
                "https://x.org/api/../admin",
                "https://x.org/api/%2e%2e/admin",
                "https://x.org/api/.%2E/admin",
                "https://x.org/api/..\\admin",
                "https://x.org/api\\..\\admin",
                "https://x.org/api/..%2fadmin",
                "https://x.org/api/..%2Fadmin",
                "https://x.org/api/%2e%2e%2fadmin",
                "https://x.org/api/..%5cadmin",
                "https://x.org/api/..%5Cadmin",
                "https://x.org/api/a%00",
                "https://x.org/api/\0a",
                "https://x.org/api/a%2f",
                "https://x.org/api/\t../admin",
                "https://x.org/api/.\n./admin",
                "https://x.org/API/a",
            ],
        ),
        (
            "x.org/*.json",
            &["https://x.org/a.json", "https://x.org/.json", "https://x.org/a/b.json?c"],
            &["https://x.org/a.json/b", "https://x.org/a.json%2f", "https://x.org/a?.json"],
        ),
        (
            "x.org/a*b*c",
            &["https://x.org/abc", "https://x.org/abbcc", "https://x.org/a/b/c"],
            &["https://x.org/ac", "https://x.org/acb", "https://x.org/ab", "https://x.org/a%2fbc"],
        ),
        ("x.org/ab*ba", &["https://x.org/abba", "https://x.org/ab-ba"], &["https://x.org/aba"]),
        ("x.org/**", &["https://x.org", "https://x.org/a/b"], &["https://x.org/%2f"]),
        // An encoded separator of the pattern's own is part of the exact text.
        (
            "x.org/a%2Fb/*",
            &["https://x.org/a%2Fb/c"],
            &["https://x.org/a/b/c", "https://x.org/a%2Fb/%2F", "https://x.org/a%2fb/c"],
        ),
        ("x.org/*2F", &["https://x.org/a2F"], &["https://x.org/%2F", "https://x.org/a%2F"]),
        ("x.org/*%2Fb", &["https://x.org/a%2Fb"], &["https://x.org/a%2Fa%2Fb"]),
        // Pattern and URL are read alike.
        (
            "x.org/a/../é/*",
            &["https://x.org/é/a", "https://x.org/%C3%A9/"],
            &["https://x.org/e/a", "https://x.org/%c3%a9/"],
        ),
    ]);
}

#[test]
fn long_patterns_take_time_in_proportion() {
    let pattern = pattern(&format!("x.org/{}b", "*a".repeat(2000)));
    let target = url(&format!("https://x.org/{}", "a".repeat(1 << 20)));
    assert!(!pattern.matches(&target));
}

#[test]
fn bad_patterns_are_misuse() {
    let cases = [
        ("", "it has no valid host"),
        ("https://", "it has no valid host"),
        ("*", "a '*' stands for whole labels at the start of a host: '*.x.org'"),
        ("*.", "it has no valid host"),
        ("a*.x.org", "a '*' stands for whole labels at the start of a host: '*.x.org'"),
        ("*.*.org", "a '*' stands for whole labels at the start of a host: '*.x.org'"),
        ("x.*", "a '*' stands for whole labels at the start of a host: '*.x.org'"),
        ("*.10.0.0.1", "no host is below an address"),
        ("*.[::1]", "a port is '*' or a number from 1 to 65535"),
        ("*.0x7f000001", "no host is below an address"),
        ("ftp://x.org", "the scheme is 'https://' or 'http://'"),
        ("*://x.org", "the scheme is 'https://' or 'http://'"),
        ("://x.org", "the scheme is 'https://' or 'http://'"),
        ("https:x.org", "a port is '*' or a number from 1 to 65535"),
        ("//x.org", "it has no valid host"),
        ("https:///x.org", "it has no valid host"),
        ("https://https://x.org", "a port is '*' or a number from 1 to 65535"),
        ("user@x.org", "it has a user"),
        ("user:password@x.org", "it has a user"),
        ("x.org?a", "it has a query"),
        ("x.org/?a=*", "it has a query"),
        ("x.org/#a", "it has a fragment"),
        ("x.org\\a", "it has a backslash"),
        (" x.org", "it has white space or control characters"),
        ("x.org ", "it has white space or control characters"),
        ("x.org/\ta", "it has white space or control characters"),
        ("x\0.org", "it has white space or control characters"),
        ("x.org:", "a port is '*' or a number from 1 to 65535"),
        ("x.org:0", "a port is '*' or a number from 1 to 65535"),
        ("x.org:65536", "a port is '*' or a number from 1 to 65535"),
        ("x.org:+80", "a port is '*' or a number from 1 to 65535"),
        ("x.org:8*", "a port is '*' or a number from 1 to 65535"),
        ("x.org:80:81", "a port is '*' or a number from 1 to 65535"),
        ("::1", "a port is '*' or a number from 1 to 65535"),
        ("[::1", "a bracket is not closed"),
        ("[::1]a", "something stands between host and port"),
        ("[::1%25eth0]", "it has no valid host"),
        ("x%2eorg", "it has no valid host"),
        ("x.org/%", "a '%' in a path is followed by two hexadecimal digits"),
        ("x.org/%2*", "a '%' in a path is followed by two hexadecimal digits"),
        ("x.org/%é", "a '%' in a path is followed by two hexadecimal digits"),
    ];
    for (text, why) in cases {
        let error = Pattern::parse(text, "fetch.allow[3]").expect_err(text);
        let message = format!("fetch.allow[3]: '{text}' is not a valid pattern: {why}");
        assert_eq!((error.kind(), error.message()), (ErrorKind::Type, message.as_str()));
    }
    for text in ["256.0.0.1", "1.2.3.4.5", "[::g]", "a<b", "x.org|", "a^b", "xn--a", "[1.2.3.4]"] {
        let error = Pattern::parse(text, "allow[0]").expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Type, "{text}");
    }
}

/// The error of a request, if it is not allowed.
fn error(allow: &Allow, method: Option<&str>, target: &str) -> Option<KitError> {
    allow.judge(method, &url(target)).err()
}

fn check_errors(allow: &Allow, cases: &[(&str, &str, Option<&str>)]) {
    for (method, target, message) in cases {
        let error = error(allow, Some(method), target);
        let expected = message.map(KitError::fetch_blocked);
        assert_eq!(error, expected, "{method} {target}");
    }
}

#[test]
fn public_is_every_host_but_not_every_port() {
    let allow = Allow::public();
    check_errors(
        &allow,
        &[
            ("GET", "https://x.org", None),
            ("PUT", "http://a.b:8080/c?d", None),
            ("GET", "http://x.org:25", Some("port 25 is not allowed")),
            ("GET", "https://x.org:6667", Some("port 6667 is not allowed")),
            ("GET", "https://x.org:10080", Some("port 10080 is not allowed")),
            ("GET", "https://x.org:0", Some("port 0 is not allowed")),
            ("GET", "https://x.org:80", None),
            ("GET", "ftp://x.org", Some("scheme 'ftp:' is not allowed")),
            ("GET", "file:///etc/passwd", Some("scheme 'file:' is not allowed")),
            ("GET", "data:,a", Some("scheme 'data:' is not allowed")),
            ("GET", "blob:https://x.org/a", Some("scheme 'blob:' is not allowed")),
            ("GET", "javascript:1", Some("scheme 'javascript:' is not allowed")),
            ("GET", "ws://x.org", Some("scheme 'ws:' is not allowed")),
            ("GET", "unix:/run/a.sock", Some("scheme 'unix:' is not allowed")),
        ],
    );
}

#[test]
fn the_error_names_the_part_that_is_not_allowed() {
    let post =
        AllowEntry { url: "y.org/api/*".into(), methods: Some(vec!["post".into(), "GET".into()]) };
    let entries = ["x.org".into(), "http://a.x.org:8080".into(), post];
    let allow = Allow::list(entries, "fetch.allow").expect("patterns");
    let among = "; allowed: 'https://x.org', 'http://a.x.org:8080', 'https://y.org/api/*'";
    let of = |host: &str| format!("'{host}' is not allowed{among}");
    check_errors(
        &allow,
        &[
            ("GET", "https://x.org/a", None),
            ("PUT", "https://x.org/a", None),
            ("GET", "https://y.org/api/a", None),
            ("POST", "https://y.org/api/a", None),
            ("PUT", "https://y.org/api/a", Some("method 'PUT' is not allowed")),
            ("GET", "https://z.org/", Some(&of("z.org"))),
            ("GET", "https://x.org.evil.net/", Some(&of("x.org.evil.net"))),
            ("GET", "https://y.org/admin", Some(&of("y.org"))),
            ("PUT", "https://y.org/admin", Some(&of("y.org"))),
            ("GET", "https://bücher.example", Some(&of("xn--bcher-kva.example"))),
            ("GET", "http://x.org/", Some("scheme 'http:' is not allowed")),
            ("GET", "https://x.org:25/", Some("port 25 is not allowed")),
            ("GET", "http://a.x.org/", Some("port 80 is not allowed")),
            ("GET", "https://a.x.org:8080/", Some("scheme 'https:' is not allowed")),
            ("GET", "ftp://x.org/", Some("scheme 'ftp:' is not allowed")),
        ],
    );
    // A browser navigates without a method.
    assert_eq!(error(&allow, None, "https://y.org/api/a"), None);
    let hop = error(&allow, None, "https://x.org:25").map(|error| error.on_redirect(2));
    assert_eq!(hop, Some(KitError::fetch_blocked("redirect 2: port 25 is not allowed")));
}

#[test]
fn an_error_lists_ten_patterns_and_cuts_long_names() {
    let entries = |count: usize| (0..count).map(|n| AllowEntry::from(format!("h{n}").as_str()));
    let listed = |count: usize| {
        let allow = Allow::list(entries(count), "allow").expect("patterns");
        error(&allow, Some("GET"), "https://z.org").expect("an error").message().to_owned()
    };
    assert_eq!(listed(0), "'z.org' is not allowed");
    assert!(listed(10).ends_with(", 'https://h9'"));
    assert!(listed(11).ends_with(", 'https://h9', …"));
    let allow = Allow::list(entries(0), "allow").expect("patterns");
    let long = format!("https://{}.org", "a.".repeat(200));
    let message = error(&allow, Some("GET"), &long).expect("an error").message().to_owned();
    assert!(message.len() < 300 && message.contains('…'), "{message}");
    let scheme = format!("{}:x", "a".repeat(1000));
    let message = error(&allow, Some("GET"), &scheme).expect("an error").message().to_owned();
    assert_eq!(message, format!("scheme '{}:' is not allowed", "a".repeat(40)));
}

#[test]
fn entries_with_bad_methods_are_misuse() {
    let misuse = |methods: &[&str]| {
        let methods = methods.iter().map(|&method| method.into()).collect();
        let entry = AllowEntry { url: "x.org".into(), methods: Some(methods) };
        Allow::list([entry], "fetch.allow").expect_err("misuse").message().to_owned()
    };
    assert_eq!(misuse(&[]), "fetch.allow[0]: it allows no method");
    assert_eq!(misuse(&["GET", "TRACE"]), "fetch.allow[0]: method 'TRACE' is not supported");
    assert_eq!(misuse(&["GET "]), "fetch.allow[0]: method 'GET ' is not supported");
}

#[test]
fn methods_are_read_in_either_case() {
    for (text, expected) in
        [("get", "GET"), ("Head", "HEAD"), ("pAtCh", "PATCH"), ("DELETE", "DELETE")]
    {
        assert_eq!(method(text), Ok(expected));
    }
    let refused = ["OPTIONS", "CONNECT", "TRACE", "", "GET\r\nX: 1", "GET ", "POſT"];
    for text in refused {
        let message = format!("method '{text}' is not supported");
        assert_eq!(method(text), Err(KitError::wrong_arguments(message)));
    }
}

#[test]
fn urls_are_absolute_and_without_a_user() {
    let user = "the URL has a user or a password; use the header Authorization";
    for text in
        ["https://a@x.org", "https://a:b@x.org", "https://:b@x.org", "https://x.org%00@evil.net"]
    {
        assert_eq!(target::parse(text), Err(KitError::wrong_arguments(user)), "{text}");
    }
    // No user: the host ends at the backslash, or at the slash.
    for text in ["https://x.org\\@evil.net", "https://x.org/@evil.net", "https://@x.org"] {
        assert_eq!(url(text).host_str(), Some("x.org"), "{text}");
    }
    for text in [
        "",
        "/a",
        "x.org",
        "//x.org",
        "https://",
        "https://a b",
        "https://x.org:99999",
        "https://[::1",
        "https://%00",
        "https://1.2.3.4.5",
    ] {
        let error = target::parse(text).expect_err(text);
        assert!(
            error.name() == "TypeError"
                && error.message().starts_with("fetch takes an absolute URL: "),
            "{error}"
        );
    }
}
