//! Which addresses are dialled, and which certificates are believed.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use isolane_kit::fetch::{FetchOptions, address::Addresses, allow::Allow};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};

use crate::fetch_support::{Client, LOOPBACK, Names, Server, closed_port, ok, options, run};

fn named(names: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static) -> FetchOptions {
    FetchOptions { resolver: Arc::new(Names(names)), ..options() }
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn only_addresses_that_pass_are_dialled() {
    run(async {
        let server = Server::start(|_| ok("in")).await;
        let blocked = "FetchBlocked: 'x.test' has no address that may be reached";
        let refused: [&[&str]; 9] = [
            &["10.0.0.1"],
            &["127.0.0.2"],
            &["169.254.169.254"],
            &["192.168.1.1", "172.16.0.1"],
            &["::1"],
            // Names of a private address, and IPv6 ways to write one.
            &["::ffff:10.0.0.1"],
            &["64:ff9b::a00:1"],
            &["2002:a00:1::"],
            &["fd00:ec2::254"],
        ];
        for addresses in refused {
            let found: Vec<_> = addresses.iter().map(|text| ip(text)).collect();
            let client = Client::new(named(move |_| found.clone()));
            assert_eq!(client.text(&server.url("x.test", "/")).await, blocked, "{addresses:?}");
        }
        // Of several addresses only those that pass are tried: the others stay untouched.
        let client = Client::new(named(|_| vec![ip("10.0.0.1"), LOOPBACK, ip("::1")]));
        assert_eq!(client.text(&server.url("x.test", "/")).await, "in");
        // Written addresses are not looked up, but judged.
        let client = Client::new(named(|_| vec![LOOPBACK]));
        for host in ["10.0.0.1", "0x7f000002", "2130706434", "127.2", "[::1]", "[::ffff:7f00:2]"] {
            let error = client.text(&server.url(host, "/")).await;
            assert!(error.ends_with("has no address that may be reached"), "{host}: {error}");
        }
        for host in ["127.0.0.1", "0x7f.1", "2130706433"] {
            assert_eq!(client.text(&server.url(host, "/")).await, "in", "{host}");
        }
    });
}

#[test]
fn the_hosts_own_addresses_are_refused() {
    run(async {
        let server = Server::start(|_| ok("in")).await;
        let bare =
            FetchOptions { addresses: Addresses::default(), ..FetchOptions::new(Allow::public()) };
        let client = Client::new(bare);
        let own = if_addrs::get_if_addrs().expect("interfaces");
        for interface in own {
            let host = match interface.ip() {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            };
            let error = client.text(&server.url(&host, "/")).await;
            let expected = format!("FetchBlocked: '{host}' has no address that may be reached");
            assert_eq!(error, expected);
        }
        let error = client.text(&server.url("localhost", "/")).await;
        assert_eq!(error, "FetchBlocked: 'localhost' has no address that may be reached");
    });
}

#[test]
fn a_name_that_changes_is_judged_again_and_looked_up_once() {
    run(async {
        let server = Server::start(|_| ok("in")).await;
        let lookups = Arc::new(AtomicUsize::new(0));
        let count = lookups.clone();
        // The first answer passes, all later ones are private.
        let client = Client::new(named(move |_| {
            let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
            if is_first { vec![LOOPBACK] } else { vec![ip("10.0.0.1")] }
        }));
        assert_eq!(client.text(&server.url("x.test", "/")).await, "in");
        assert_eq!(lookups.load(Ordering::SeqCst), 1);
        client.fetcher.close();
        let error = client.text(&server.url("x.test", "/")).await;
        assert_eq!(error, "FetchBlocked: 'x.test' has no address that may be reached");
        assert_eq!((lookups.load(Ordering::SeqCst), server.count()), (2, 1));
    });
}

#[test]
fn the_next_address_is_tried_if_one_does_not_answer() {
    run(async {
        let server = Server::start(|_| ok("in")).await;
        let networks = ["127.0.0.0/8"];
        let allowed = Addresses::new(networks, "fetch.allowAddresses").expect("a network");
        let client = Client::new(FetchOptions {
            addresses: allowed.clone(),
            ..named(|_| vec![ip("127.0.0.9"), LOOPBACK])
        });
        // The server listens on one address of loopback alone.
        assert_eq!(client.text(&server.url("x.test", "/")).await, "in");
        let (port, _held) = closed_port();
        let error = client.text(&format!("http://x.test:{port}/")).await;
        assert_eq!(error, "FetchFailed: 'x.test' refused the connection");
    });
}

/// An authority in PEM, and servers with certificates of it.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    async fn server(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Server {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
            )
            .expect("a configuration");
        Server::over(|_| ok("secure"), Some(TlsAcceptor::from(Arc::new(config)))).await
    }
}

#[test]
fn certificates_are_judged() {
    run(async {
        let authority = Authority::new();
        let client = Client::new(FetchOptions { ca: Some(authority.pem.clone()), ..options() });
        let url = |server: &Server, host: &str| format!("https://{host}:{}/", server.port);
        let invalid = |host: &str| format!("FetchFailed: the certificate of '{host}' is not valid");

        let server = authority.server("x.test", |_| {}).await;
        assert_eq!(client.text(&url(&server, "x.test")).await, "secure");
        assert_eq!(client.text(&url(&server, "y.test")).await, invalid("y.test"));
        assert_eq!(client.text(&url(&server, "127.0.0.1")).await, invalid("127.0.0.1"));
        let stranger = Client::new(options());
        assert_eq!(stranger.text(&url(&server, "x.test")).await, invalid("x.test"));

        let by_address = authority.server("127.0.0.1", |_| {}).await;
        assert_eq!(client.text(&url(&by_address, "127.0.0.1")).await, "secure");

        let expired = authority
            .server("x.test", |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1))
            .await;
        assert_eq!(client.text(&url(&expired, "x.test")).await, invalid("x.test"));
        let early = authority
            .server("x.test", |params| params.not_before = rcgen::date_time_ymd(4000, 1, 1))
            .await;
        assert_eq!(client.text(&url(&early, "x.test")).await, invalid("x.test"));

        let other = Authority::new();
        let foreign = other.server("x.test", |_| {}).await;
        assert_eq!(client.text(&url(&foreign, "x.test")).await, invalid("x.test"));

        // A server that speaks no TLS.
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a connection");
            // An end before all was read would break the connection, and perhaps take the answer with it.
            let _begun = socket.read(&mut [0; 4096]).await;
            socket.write_all(b"HTTP/1.1 400 Bad\r\n\r\n").await.expect("a client");
            let _ended = socket.read(&mut [0; 4096]).await;
        });
        let error = client.text(&format!("https://x.test:{port}/")).await;
        assert_eq!(error, "FetchFailed: 'x.test' gave no valid answer");
        // A server that ends the handshake.
        let port = {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let port = listener.local_addr().expect("an address").port();
            tokio::spawn(async move {
                let (mut socket, _) = listener.accept().await.expect("a connection");
                let _begun = socket.read(&mut [0; 4096]).await;
            });
            port
        };
        let error = client.text(&format!("https://x.test:{port}/")).await;
        assert_eq!(error, "FetchFailed: 'x.test' broke the connection");
        // A name is not taken over by a connection of another.
        assert_eq!(server.count(), 1);
    });
}

#[test]
fn authorities_are_read_at_once() {
    use isolane_kit::{fetch::Fetcher, secrets::Secrets};
    for (ca, why) in [
        ("", "it has no certificate"),
        ("some text", "it has no certificate"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "a certificate in it is not valid",
        ),
        ("-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n", "it is no PEM"),
    ] {
        let options = FetchOptions { ca: Some(ca.into()), ..options() };
        let error = Fetcher::new(options, Arc::new(Secrets::new())).expect_err("misuse");
        assert_eq!(error.message(), format!("fetch.ca: {why}"));
    }
}
