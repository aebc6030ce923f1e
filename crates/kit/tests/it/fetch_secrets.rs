//! Secrets in requests and in answers.

use base64::{Engine, prelude::BASE64_STANDARD};
use isolane_kit::{
    fetch::{Body, Request},
    secrets::SecretOptions,
};
use zeroize::Zeroizing;

use crate::fetch_support::{Client, Server, answer, get, ok, options, raw, run, shown, to};

/// A value that every escape changes.
const VALUE: &str = "p@ss \"word\"/+é";

fn with_body(url: &str, media: &str, body: String) -> Request {
    Request {
        method: "POST".into(),
        headers: vec![("Content-Type".into(), media.into())],
        body: Body::Text(body),
        ..get(url)
    }
}

fn with_header(url: &str, name: &str, value: String) -> Request {
    Request { headers: vec![(name.into(), value)], ..get(url) }
}

#[test]
fn a_secret_stands_in_each_part_of_a_request() {
    run(async {
        let server = Server::start(|_| ok("")).await;
        let client = Client::new(options());
        let key = client.seal("KEY", VALUE, &["x.test"]);
        let url = |path: &str| server.url("x.test", path);
        let encoded = "p%40ss%20%22word%22%2F%2B%C3%A9";

        client.get(&url(&format!("/{key}/a?k={key}"))).await.expect("an answer");
        assert!(server.last().starts_with(&format!("GET /{encoded}/a?k={encoded} HTTP")));

        let sent = client.send(with_header(&url("/"), "X-Key", format!("Bearer {key}")));
        sent.await.expect("an answer");
        assert!(server.last().contains(&format!("x-key: Bearer {VALUE}\r\n")));

        let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("me:{key}")));
        client.send(with_header(&url("/"), "Authorization", basic)).await.expect("an answer");
        let expected = BASE64_STANDARD.encode(format!("me:{VALUE}"));
        assert!(server.last().contains(&format!("authorization: Basic {expected}\r\n")));

        let json = "application/json";
        let sent = client.send(with_body(&url("/"), json, format!("{{\"k\":\"{key}\"}}")));
        sent.await.expect("an answer");
        assert!(server.last().ends_with("{\"k\":\"p@ss \\\"word\\\"/+é\"}"));

        let form = "application/x-www-form-urlencoded";
        client.send(with_body(&url("/"), form, format!("k={key}"))).await.expect("an answer");
        assert!(server.last().ends_with("k=p%40ss+%22word%22%2F%2B%C3%A9"));

        client.send(with_body(&url("/"), "text/plain", key)).await.expect("an answer");
        assert!(server.last().ends_with(&format!("\r\n\r\n{VALUE}")));
    });
}

#[test]
fn a_secret_that_may_not_go_there_sends_nothing() {
    run(async {
        let server = Server::start(|_| ok("")).await;
        let client = Client::new(options());
        let key = client.seal("KEY", VALUE, &["x.test"]);
        let other = server.url("y.test", "/");
        let refused = "FetchBlocked: secret 'KEY' is not for 'y.test'";
        let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("me:{key}")));
        let requests = [
            get(&format!("{other}?k={key}")),
            get(&format!("{other}{key}")),
            with_header(&other, "X-Key", key.clone()),
            with_header(&other, "Authorization", basic),
            with_body(&other, "text/plain", key.clone()),
        ];
        for request in requests {
            assert_eq!(shown(client.send(request.clone()).await), refused, "{request:?}");
        }
        client.secrets.delete("KEY");
        let error = client.text(&server.url("x.test", &format!("/{key}"))).await;
        assert_eq!(error, "FetchBlocked: secret 'KEY' is no longer given");
        let narrow = SecretOptions {
            value: Zeroizing::new(VALUE.to_owned()),
            hosts: vec!["http://x.test:*".into()],
            parts: Some(vec!["header".into()]),
            reveal: false,
        };
        client.secrets.set("KEY", narrow).expect("a secret");
        let error = client.text(&server.url("x.test", &format!("/{key}"))).await;
        assert_eq!(error, "FetchBlocked: secret 'KEY' may not stand in the URL");
        assert_eq!(server.count(), 0);
    });
}

#[test]
fn a_secret_does_not_follow_a_redirect_to_another_host() {
    run(async {
        let other = Server::start(|_| ok("other")).await;
        let target = other.url("y.test", "/end");
        let server = Server::start(move |request| {
            if request.contains("/echo") {
                // The server gives the key back in the place where it sends the client.
                let path = request.split(' ').nth(1).expect("a path");
                return to(302, &format!("{target}?from={}", path.replace("/echo/", "")));
            }
            to(307, &target)
        })
        .await;
        let client = Client::new(options());
        let key = client.seal("KEY", VALUE, &["x.test"]);
        let url = server.url("x.test", "/");
        let sent = client.send(with_header(&url, "X-Key", key.clone())).await;
        assert_eq!(shown(sent), "other");
        assert!(!other.last().contains("x-key"), "{}", other.last());
        let refused = "FetchBlocked: redirect 1: secret 'KEY' is not for 'y.test'";
        let sent = client.send(with_body(&url, "text/plain", key.clone())).await;
        assert_eq!(shown(sent), refused);
        let sent = client.get(&server.url("x.test", &format!("/echo/{key}"))).await;
        assert_eq!(shown(sent), refused);
        assert_eq!(other.count(), 1);
        // One that the code sees is dropped with its header, too.
        let plain = SecretOptions {
            value: Zeroizing::new("a plain value".to_owned()),
            reveal: true,
            ..Default::default()
        };
        client.secrets.set("PLAIN", plain).expect("a secret");
        let sent = client.send(with_header(&url, "X-Plain", "a plain value".into())).await;
        assert_eq!(shown(sent), "other");
        assert!(!other.last().contains("x-plain"), "{}", other.last());
    });
}

#[test]
fn a_link_with_a_key_works_and_stays_sealed() {
    run(async {
        let server = Server::start(|request| {
            let path = request.split(' ').nth(1).expect("a path");
            let key = path.split("k=").nth(1);
            match key {
                Some(key) if path.starts_with("/first") => to(302, &format!("/second?k={key}")),
                _ => ok(path),
            }
        })
        .await;
        let client = Client::new(options());
        let key = client.seal("KEY", VALUE, &["x.test"]);
        let response = client.get(&server.url("x.test", &format!("/first?k={key}"))).await;
        let response = response.expect("an answer");
        assert_eq!(response.url, server.url("x.test", &format!("/second?k={key}")));
        assert_eq!(String::from_utf8(response.body), Ok(format!("/second?k={key}")));
        let encoded = "p%40ss%20%22word%22%2F%2B%C3%A9";
        assert!(server.last().starts_with(&format!("GET /second?k={encoded} ")));
    });
}

#[test]
fn what_a_server_gives_back_is_sealed_again() {
    run(async {
        let server = Server::start(|request| {
            let value = request.split("x-key: ").nth(1).and_then(|rest| rest.lines().next());
            let value = value.unwrap_or_default();
            let base64 = BASE64_STANDARD.encode(value);
            let mut bytes = format!(
                "HTTP/1.1 200 {value}\r\nX-Back: {value}!\r\nX-Base: {base64}\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            .into_bytes();
            let body = format!("<{value}> {base64} {}", value.replace('@', "%40"));
            // The body comes byte by byte, so that a value is cut in all places.
            for byte in body.bytes() {
                bytes.extend_from_slice(b"1\r\n");
                bytes.extend_from_slice(&[byte, b'\r', b'\n']);
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            raw(bytes)
        })
        .await;
        let client = Client::new(options());
        let key = client.seal("KEY", "p@ss \"word\"/+e", &["x.test"]);
        let sent = client.send(with_header(&server.url("x.test", "/"), "X-Key", key.clone()));
        let response = sent.await.expect("an answer");
        let back = |name: &str| {
            let header = response.headers.iter().find(|(known, _)| known == name);
            header.expect("a header").1.clone()
        };
        assert_eq!(response.status_text, key);
        assert_eq!((back("x-back"), back("x-base")), (format!("{key}!"), key.clone()));
        assert_eq!(String::from_utf8(response.body), Ok(format!("<{key}> {key} {key}")));
    });
}

/// Otherwise code could have such a host answer with guesses, and see which of them is the value.
#[test]
fn a_guess_comes_back_as_it_is_from_another_host() {
    run(async {
        let guess = "hunter2-hunter2";
        let server = Server::start(move |request| {
            if request.starts_with("GET /first") {
                return to(302, &format!("/second?k={guess}"));
            }
            raw(format!(
                "HTTP/1.1 200 {guess}\r\nX-Back: {guess}\r\nContent-Length: 15\r\n\r\n{guess}"
            )
            .into_bytes())
        })
        .await;
        let client = Client::new(options());
        let key = client.seal("KEY", guess, &["x.test"]);
        client.seal("OTHER", "another value", &["z.test"]);
        for (host, expected) in [("y.test", guess), ("x.test", &*key)] {
            let response = client.get(&server.url(host, "/first")).await.expect("an answer");
            let header = response.headers.iter().find(|(name, _)| name == "x-back");
            assert_eq!(header.map(|(_, value)| value.as_str()), Some(expected));
            assert_eq!(response.status_text, expected);
            assert_eq!(response.url, server.url(host, &format!("/second?k={expected}")));
            assert_eq!(String::from_utf8(response.body), Ok(expected.to_owned()));
        }
    });
}

#[test]
fn a_compressed_answer_is_sealed_too() {
    run(async {
        let body = {
            use std::io::Write;
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            write!(gzip, "{VALUE} {VALUE}").expect("memory");
            gzip.finish().expect("memory")
        };
        let server =
            Server::start(move |_| answer("200 OK", "Content-Encoding: gzip\r\n", &body)).await;
        let client = Client::new(options());
        let key = client.seal("KEY", VALUE, &["x.test"]);
        let url = server.url("x.test", "/");
        assert_eq!(client.text(&url).await, format!("{key} {key}"));
    });
}
