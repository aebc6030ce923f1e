//! The proxy for a browser, over its socket.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use isolane_kit::{
    fetch::{Resolved, Resolver},
    kit::{AllowOption, FetchSettings, Kit, KitOptions, ProxySettings},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

const CEILING: Duration = Duration::from_mins(2);

struct Hosts;

impl Resolver for Hosts {
    fn resolve(&self, host: &str) -> Resolved {
        let addresses: HashMap<_, &[&str]> = HashMap::from([
            ("one.test", &["127.0.0.1"][..]),
            ("other.test", &["127.0.0.1"]),
            ("inner.test", &["127.0.0.2", "10.0.0.1"]),
        ]);
        let found = addresses.get(host).ok_or_else(|| io::Error::other("no such name"));
        let found = found.map(|all| {
            all.iter().map(|text| text.parse::<IpAddr>().expect("an address")).collect()
        });
        Box::pin(async move { found })
    }
}

/// A server that answers every connection with what it was sent, as the body of an answer, or without one.
async fn server(is_http: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = [0; 4096];
                let mut count = 0;
                while let Ok(read @ 1..) = socket.read(&mut bytes[count..]).await {
                    count += read;
                    if is_http && !bytes[..count].ends_with(b"\r\n\r\n") {
                        continue;
                    }
                    let mut answer = Vec::new();
                    if is_http {
                        let head = format!(
                            "HTTP/1.1 200 OK\r\nContent-Length: {count}\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-Kept: 1\r\n\r\n"
                        );
                        answer.extend(head.into_bytes());
                    }
                    answer.extend(&bytes[..count]);
                    if socket.write_all(&answer).await.is_err() {
                        return;
                    }
                    count = 0;
                }
            });
        }
    });
    address
}

fn kit(allow: &[String]) -> Kit {
    let fetch = FetchSettings {
        allow: AllowOption::List(allow.iter().map(|url| url.as_str().into()).collect()),
        allow_addresses: vec!["127.0.0.1".into()],
        resolver: Some(Arc::new(Hosts)),
        ..FetchSettings::default()
    };
    Kit::new(KitOptions { fetch: Some(fetch), ..KitOptions::default() }).expect("a kit")
}

/// A connection to the proxy.
struct Browser(TcpStream, ProxySettings);

impl Browser {
    async fn new(kit: &Kit) -> Self {
        let settings = kit.proxy().await.expect("a proxy");
        let address = settings.server.strip_prefix("http://").expect("a URL of http");
        Self(TcpStream::connect(address).await.expect("a connection"), settings)
    }

    /// Sends a request with the password, and gives the answer.
    async fn ask(&mut self, line: &str, headers: &str) -> String {
        let ProxySettings { username, password, .. } = &self.1;
        let basic = STANDARD.encode(format!("{username}:{password}"));
        self.send(&format!("{line}\r\nProxy-Authorization: Basic {basic}\r\n{headers}\r\n")).await
    }

    async fn send(&mut self, text: &str) -> String {
        self.0.write_all(text.as_bytes()).await.expect("it takes the request");
        self.receive(is_whole).await
    }

    /// Sends bytes through a tunnel whose other end sends them back.
    async fn echo(&mut self, text: &str) -> String {
        self.0.write_all(text.as_bytes()).await.expect("it takes bytes");
        self.receive(|received| received.len() >= text.len()).await
    }

    /// The bytes that come until that is enough, or the end.
    async fn receive(&mut self, is_enough: impl Fn(&str) -> bool) -> String {
        let (mut bytes, mut all) = ([0; 4096], String::new());
        while !is_enough(&all) {
            match timeout(CEILING, self.0.read(&mut bytes)).await.expect("an answer") {
                Ok(count @ 1..) => all += std::str::from_utf8(&bytes[..count]).expect("a text"),
                _ => break,
            }
        }
        all
    }
}

/// Whether that is an answer, with a body of the length that it says.
fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().expect("a length"))
}

#[tokio::test]
async fn requests_over_http_are_judged_and_passed_on_without_what_is_of_the_connection() {
    let port = server(true).await.port();
    let kit = kit(&[format!("http://one.test:{port}/a/*"), format!("http://inner.test:{port}")]);
    let mut browser = Browser::new(&kit).await;
    let headers = "Host: other.test\r\nConnection: x-mine, keep-alive\r\nX-Mine: 1\r\nX-End: 1\r\nProxy-Connection: keep-alive\r\n";
    let answer = browser.ask(&format!("GET http://one.test:{port}/a/b?c HTTP/1.1"), headers).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let sent = answer.split_once("\r\n\r\n").expect("a body").1.to_lowercase();
    assert!(sent.starts_with("get /a/b?c http/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("host: one.test:{port}\r\n")) && sent.contains("x-end: 1"));
    assert!(!sent.contains("proxy-") && !sent.contains("x-mine") && !sent.contains("other.test"));
    assert!(
        answer.to_lowercase().contains("x-kept") && !answer.to_lowercase().contains("x-hop: 1")
    );
    let refused = [
        (format!("GET http://one.test:{port}/b HTTP/1.1"), "403", "'one.test' is not allowed"),
        (
            format!("GET http://other.test:{port}/a/b HTTP/1.1"),
            "403",
            "'other.test' is not allowed",
        ),
        (format!("GET http://inner.test:{port}/ HTTP/1.1"), "403", "'inner.test' has no address"),
        ("GET /a/b HTTP/1.1".into(), "400", "absolute URLs"),
        (format!("GET ftp://one.test:{port}/a/b HTTP/1.1"), "400", "absolute URLs"),
        (format!("GET http://me@one.test:{port}/a/b HTTP/1.1"), "400", "absolute URLs"),
    ];
    for (line, status, message) in refused {
        let answer = Browser::new(&kit).await.ask(&line, "Host: x\r\n").await;
        let begins = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&begins) && answer.contains(message), "{line}: {answer}");
    }
}

#[tokio::test]
async fn tunnels_are_judged_by_their_origin_and_carry_bytes() {
    let port = server(false).await.port();
    let kit =
        kit(&[format!("https://one.test:{port}/only/this"), format!("http://other.test:{port}")]);
    let mut browser = Browser::new(&kit).await;
    let answer = browser.ask(&format!("CONNECT one.test:{port} HTTP/1.1"), "Host: x\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(browser.echo("\x16\x03 hello").await, "\x16\x03 hello");
    let refused = [
        (format!("CONNECT other.test:{port} HTTP/1.1"), "403"),
        ("CONNECT one.test:443 HTTP/1.1".into(), "403"),
        (format!("CONNECT 127.0.0.1:{port} HTTP/1.1"), "403"),
        ("CONNECT one.test HTTP/1.1".into(), "400"),
        (format!("CONNECT me@one.test:{port} HTTP/1.1"), "400"),
    ];
    for (line, status) in refused {
        let answer = Browser::new(&kit).await.ask(&line, "Host: x\r\n").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {answer}");
    }
}

#[tokio::test]
async fn a_proxy_wants_its_password() {
    let port = server(true).await.port();
    let kit = kit(&[format!("http://one.test:{port}")]);
    for header in ["", "Proxy-Authorization: Basic aXNvbGFuZTp4\r\n", "Authorization: Basic x\r\n"]
    {
        for line in [format!("GET http://one.test:{port}/"), format!("CONNECT one.test:{port}")] {
            let request = format!("{line} HTTP/1.1\r\nHost: x\r\n{header}\r\n");
            let answer = Browser::new(&kit).await.send(&request).await;
            assert!(answer.starts_with("HTTP/1.1 407 "), "{request}: {answer}");
            assert!(answer.to_lowercase().contains("proxy-authenticate: basic realm="), "{answer}");
        }
    }
    let settings = kit.proxy().await.expect("a proxy");
    assert_eq!(settings, kit.proxy().await.expect("the same"));
    assert!(!format!("{settings:?}").contains(&settings.password));
}

#[tokio::test]
async fn a_proxy_ends_with_its_kit() {
    let port = server(false).await.port();
    let kit = kit(&[format!("https://one.test:{port}")]);
    let mut browser = Browser::new(&kit).await;
    let answer = browser.ask(&format!("CONNECT one.test:{port} HTTP/1.1"), "Host: x\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let mut idle = Browser::new(&kit).await;
    kit.close();
    for browser in [&mut browser, &mut idle] {
        let ended = timeout(CEILING, browser.0.read(&mut [0; 16])).await.expect("an end");
        assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    }
    assert_eq!(kit.proxy().await.expect_err("closed").message, "the kit is closed");
    let address = browser.1.server.strip_prefix("http://").expect("a URL of http").to_owned();
    let began = std::time::Instant::now();
    while TcpStream::connect(&address).await.is_ok() {
        assert!(began.elapsed() < CEILING);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
