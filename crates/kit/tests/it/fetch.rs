//! `fetch` against servers on loopback: requests, redirects, limits and broken answers.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use isolane_kit::{
    fetch::{Body, Progress, Redirect, Request},
    room::FixedRoom,
};

use crate::fetch_support::{
    Answer, Client, Server, Step, allowing, answer, closed_port, get, limited, ok, options, raw,
    run, shown, to, until,
};

#[test]
fn a_request_has_its_parts_and_the_answer_too() {
    run(async {
        let server = Server::start(|_| {
            answer("201 Made It", "X-Many: a\r\nx-many: b\r\nX-Latin: caf\u{e9}\r\n", "done")
        })
        .await;
        let client = Client::new(options());
        let url = server.url("x.test", "/a%20b?q=1#part");
        let request = Request {
            method: "post".into(),
            headers: vec![("X-One".into(), " 1 ".into()), ("x-one".into(), "2".into())],
            body: Body::Text("tschüß".into()),
            ..get(&url)
        };
        let progress = Progress::new();
        let room = FixedRoom::new(1 << 20);
        let done = client.fetcher.request(request, &client.limits, room, &progress).await;
        let response = done.expect("an answer");
        assert_eq!((response.status, &*response.status_text), (201, "Made It"));
        assert_eq!(response.url, server.url("x.test", "/a%20b?q=1"));
        assert!(!response.redirected);
        assert_eq!(response.body, b"done");
        let header = |name, value: &str| (String::from(name), value.to_owned());
        let expected = [
            header("x-many", "a"),
            header("x-many", "b"),
            header("x-latin", "café"),
            header("content-length", "4"),
        ];
        assert_eq!(response.headers, expected);
        let sent = server.last();
        assert!(sent.starts_with("POST /a%20b?q=1 HTTP/1.1\r\n"), "{sent}");
        let expected = [
            "x-one: 1",
            "x-one: 2",
            "content-type: text/plain;charset=UTF-8",
            &format!("host: x.test:{}", server.port),
            "accept-encoding: gzip, deflate, br, zstd",
            "user-agent: isolane",
            "accept: */*",
            "content-length: 8",
        ];
        let (head, body) = sent.split_once("\r\n\r\n").expect("a head");
        let mut lines: Vec<_> = head.lines().skip(1).collect();
        let mut expected = expected.to_vec();
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected);
        assert_eq!(body, "tschüß");
        let summary = format!("POST {} 201", server.url("x.test", "/a%20b"));
        assert_eq!(progress.summary(), summary);
        assert!((100..1_000).contains(&progress.total_bytes()));
    });
}

#[test]
fn wrong_arguments_send_nothing() {
    run(async {
        let server = Server::start(|_| ok("")).await;
        let client = Client::new(options());
        let url = server.url("x.test", "/");
        let header = |name: &str, value: &str| Request {
            headers: vec![(name.into(), value.into())],
            ..get(&url)
        };
        let no_header = "TypeError: header 'x' has a character that a header cannot have";
        let refused = |name: &str| format!("FetchBlocked: header '{name}' is not allowed");
        let cases = [
            (
                get("/a"),
                "TypeError: fetch takes an absolute URL: relative URL without a base".into(),
            ),
            (
                get("http://a:b@x.test/"),
                "TypeError: the URL has a user or a password; use the header Authorization".into(),
            ),
            (get("ftp://x.test/"), "FetchBlocked: scheme 'ftp:' is not allowed".into()),
            (get("http://x.test:25/"), "FetchBlocked: port 25 is not allowed".into()),
            (
                Request { method: "TRACE".into(), ..get(&url) },
                "TypeError: method 'TRACE' is not supported".into(),
            ),
            (
                Request { body: Body::Text(String::new()), ..get(&url) },
                "TypeError: a GET request has no body".into(),
            ),
            (
                Request { timeout_ms: Some(0.0), ..get(&url) },
                "TypeError: timeout is a number of milliseconds above 0".into(),
            ),
            (
                Request { timeout_ms: Some(f64::NAN), ..get(&url) },
                "TypeError: timeout is a number of milliseconds above 0".into(),
            ),
            (
                header("a b", ""),
                "TypeError: the name of a header has letters, digits and '-'".into(),
            ),
            (
                header("x\r\ny", ""),
                "TypeError: the name of a header has letters, digits and '-'".into(),
            ),
            (header("x", "a\r\nHost: evil.test"), no_header.into()),
            (header("x", "a\nb"), no_header.into()),
            (header("x", "a\0b"), no_header.into()),
            (header("x", "a\u{1}b"), no_header.into()),
            (header("x", "Ā"), no_header.into()),
            (header("Host", "evil.test"), refused("host")),
            (header("Content-Length", "5"), refused("content-length")),
            (header("transfer-ENCODING", "chunked"), refused("transfer-encoding")),
            (header("Connection", "close"), refused("connection")),
            (header("Upgrade", "h2c"), refused("upgrade")),
            (header("TE", "trailers"), refused("te")),
            (header("Trailer", "x"), refused("trailer")),
            (header("Expect", "100-continue"), refused("expect")),
            (header("Keep-Alive", "1"), refused("keep-alive")),
            (header("Accept-Encoding", "x"), refused("accept-encoding")),
            (header("Proxy-Authorization", "x"), refused("proxy-authorization")),
        ];
        for (request, expected) in cases {
            assert_eq!(shown(client.send(request.clone()).await), expected, "{request:?}");
        }
        let many = Request { headers: vec![("x".into(), "y".into()); 201], ..get(&url) };
        assert_eq!(shown(client.send(many).await), "TypeError: a request has at most 200 headers");
        assert_eq!(server.count(), 0);
    });
}

#[test]
fn only_what_is_allowed_is_looked_up() {
    run(async {
        let server = Server::start(|_| ok("in")).await;
        let client = Client::new(allowing(&[&format!("http://x.test:{}", server.port)]));
        assert_eq!(client.text(&server.url("x.test", "/")).await, "in");
        let error = client.text(&server.url("unknown.test", "/")).await;
        let allowed = format!("allowed: 'http://x.test:{}'", server.port);
        assert_eq!(error, format!("FetchBlocked: 'unknown.test' is not allowed; {allowed}"));
        let client = Client::new(options());
        let error = client.text(&server.url("unknown.test", "/")).await;
        assert_eq!(error, "FetchFailed: cannot find 'unknown.test'");
        let (port, _held) = closed_port();
        let error = client.text(&format!("http://x.test:{port}/")).await;
        assert_eq!(error, "FetchFailed: 'x.test' refused the connection");
    });
}

#[test]
fn redirects_are_followed_as_the_standard_has_it() {
    run(async {
        let server = Server::start(|request| {
            let path = request.split(' ').nth(1).expect("a path");
            match path.strip_prefix("/to/").and_then(|rest| rest.split_once('/')) {
                Some((status, target)) => {
                    to(status.parse().expect("a status"), &format!("/{target}"))
                }
                None => ok(""),
            }
        })
        .await;
        let client = Client::new(options());
        let cases = [
            ("POST", 301, "GET"),
            ("POST", 302, "GET"),
            ("PUT", 302, "PUT"),
            ("DELETE", 301, "DELETE"),
            ("POST", 303, "GET"),
            ("PUT", 303, "GET"),
            ("POST", 307, "POST"),
            ("PATCH", 308, "PATCH"),
        ];
        for (method, status, after) in cases {
            let request = Request {
                method: method.into(),
                body: Body::Bytes(b"body".to_vec()),
                headers: vec![
                    ("Content-Type".into(), "a/b".into()),
                    ("Authorization".into(), "me".into()),
                ],
                ..get(&server.url("x.test", &format!("/to/{status}/end")))
            };
            let response = client.send(request).await.expect("an answer");
            assert_eq!((response.url, response.redirected), (server.url("x.test", "/end"), true));
            let sent = server.last();
            assert!(sent.starts_with(&format!("{after} /end ")), "{status}: {sent}");
            let keeps_body = method == after;
            assert_eq!(sent.ends_with("\r\n\r\nbody"), keeps_body, "{status}: {sent}");
            assert_eq!(sent.contains("content-type: a/b"), keeps_body, "{status}: {sent}");
            assert!(sent.contains("authorization: me"), "{status}: {sent}");
        }
        let url = server.url("x.test", "/to/302/end");
        let manual = Request { redirect: Redirect::Manual, ..get(&url) };
        let response = client.send(manual).await.expect("an answer");
        assert_eq!((response.status, response.redirected), (302, false));
        let error = Request { redirect: Redirect::Error, ..get(&url) };
        assert_eq!(shown(client.send(error).await), "FetchFailed: redirect 1: not followed");
    });
}

#[test]
fn each_hop_is_judged_and_loses_what_is_for_another_origin() {
    run(async {
        let other = Server::start(|_| ok("other")).await;
        let target = other.url("y.test", "/");
        let locations = Arc::new(std::sync::Mutex::new(target.clone()));
        let given = locations.clone();
        let server = Server::start(move |_| to(307, &given.lock().expect("it"))).await;
        let client = Client::new(options());
        let with_headers = |method: &str| Request {
            method: method.into(),
            headers: ["Authorization", "Cookie", "X-Other"]
                .map(|name| (name.to_owned(), "me".to_owned()))
                .into(),
            ..get(&server.url("x.test", "/"))
        };
        assert_eq!(shown(client.send(with_headers("GET")).await), "other");
        let sent = other.last();
        assert!(!sent.contains("authorization") && !sent.contains("cookie"), "{sent}");
        assert!(sent.contains("x-other: me"), "{sent}");

        let from = |location: &str| {
            location.clone_into(&mut locations.lock().expect("it"));
            let answer = client.send(get(&server.url("x.test", "/")));
            async { shown(answer.await) }
        };
        let cases = [
            (
                "http://10.0.0.1/",
                "FetchBlocked: redirect 1: '10.0.0.1' has no address that may be reached",
            ),
            (
                "http://169.254.169.254/",
                "FetchBlocked: redirect 1: '169.254.169.254' has no address that may be reached",
            ),
            (
                "http://[::1]/",
                "FetchBlocked: redirect 1: '[::1]' has no address that may be reached",
            ),
            ("file:///etc/passwd", "FetchBlocked: redirect 1: scheme 'file:' is not allowed"),
            ("http://x.test:22/", "FetchBlocked: redirect 1: port 22 is not allowed"),
            ("http://a:b@y.test/", "FetchFailed: redirect 1: 'x.test' gave no valid answer"),
            ("http://[", "FetchFailed: redirect 1: 'x.test' gave no valid answer"),
            ("http://unknown.test/", "FetchFailed: redirect 1: cannot find 'unknown.test'"),
        ];
        for (location, expected) in cases {
            assert_eq!(from(location).await, expected, "{location}");
        }
        let itself = server.url("x.test", "/");
        assert_eq!(from(&itself).await, "FetchLimit: more than 10 redirects");
    });
}

#[test]
fn answers_that_lie_are_no_answers() {
    run(async {
        let cases: Vec<(Answer, &str)> = vec![
            (raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef"), "abc"),
            (
                vec![
                    Step::Write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".to_vec()),
                    Step::Close,
                ],
                "FetchFailed: 'x.test' broke the connection",
            ),
            (
                vec![Step::Write(b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec()), Step::Close],
                "until the end",
            ),
            (
                vec![
                    Step::Write(
                        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc".to_vec(),
                    ),
                    Step::Close,
                ],
                "FetchFailed: 'x.test' broke the connection",
            ),
            (
                raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc"),
                "FetchFailed: 'x.test' gave no valid answer",
            ),
            (
                raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\na"),
                "FetchFailed: 'x.test' gave no valid answer",
            ),
            (
                raw(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                ),
                "abc",
            ),
            (
                raw("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
                "FetchFailed: 'x.test' gave no valid answer",
            ),
            (
                raw("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
                "FetchFailed: 'x.test' gave no valid answer",
            ),
            (
                raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"),
                "FetchFailed: 'x.test' gave no valid answer",
            ),
            (raw("SSH-2.0-OpenSSH\r\n\r\n"), "FetchFailed: 'x.test' gave no valid answer"),
            (raw("HTTP/1.1 99 Low\r\n\r\n"), "FetchFailed: 'x.test' gave no valid answer"),
            (
                raw("HTTP/1.1 200 OK\r\nA\0: b\r\n\r\n"),
                "FetchFailed: 'x.test' gave no valid answer",
            ),
            (
                raw("HTTP/1.1 101 Up\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
                "FetchFailed: 'x.test' gave no valid answer",
            ),
            (
                raw(format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "a".repeat(100_000))),
                "FetchFailed: 'x.test' gave no valid answer",
            ),
            (
                raw(format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(1_000))),
                "FetchFailed: 'x.test' gave no valid answer",
            ),
            (vec![Step::Close], "FetchFailed: 'x.test' broke the connection"),
            (
                raw(
                    "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
                ),
                "x",
            ),
        ];
        for (index, (steps, expected)) in cases.into_iter().enumerate() {
            let server = Server::start(move |_| steps.clone()).await;
            let client = Client::new(limited(|limits| limits.timeout_ms = 120_000));
            let url = server.url("x.test", "/");
            assert_eq!(client.text(&url).await, expected, "case {index}");
        }
    });
}

#[test]
fn bytes_after_an_answer_are_not_the_next_one() {
    run(async {
        let server = Server::start(|request| {
            let is_first = request.contains("GET /first");
            let tail = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
            let tail = if is_first { tail } else { "" };
            raw(format!("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood{tail}"))
        })
        .await;
        let client = Client::new(options());
        assert_eq!(client.text(&server.url("x.test", "/first")).await, "good");
        assert_eq!(client.text(&server.url("x.test", "/second")).await, "good");
        assert_eq!(server.count(), 2);
    });
}

#[test]
fn time_limits_hold_in_every_part() {
    run(async {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".to_vec();
        let cases = [
            vec![Step::Stall],
            vec![Step::Write(head[..20].to_vec()), Step::Stall],
            vec![Step::Write(head), Step::Stall],
        ];
        for steps in cases {
            let server = Server::start(move |_| steps.clone()).await;
            let client = Client::new(limited(|limits| limits.timeout_ms = 60));
            let error = client.text(&server.url("x.test", "/")).await;
            assert_eq!(error, "FetchTimeout: no complete answer from 'x.test' within 60 ms");
            until("the socket is closed", || server.open.load(Ordering::SeqCst) == 0).await;
            let request = Request { timeout_ms: Some(20.0), ..get(&server.url("x.test", "/")) };
            let error = shown(client.send(request).await);
            assert_eq!(error, "FetchTimeout: no complete answer from 'x.test' within 20 ms");
        }
    });
}

#[test]
fn a_request_that_is_dropped_closes_its_socket() {
    run(async {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
        let server = Server::start(move |_| vec![Step::Write(head.into()), Step::Stall]).await;
        let client = Client::new(options());
        let request = tokio::spawn(client.send(get(&server.url("x.test", "/"))));
        until("the request is there", || server.count() == 1).await;
        request.abort();
        until("the socket is closed", || server.open.load(Ordering::SeqCst) == 0).await;
    });
}

#[test]
fn limits_hold() {
    run(async {
        let server = Server::start(|request| {
            let length: usize =
                request.split(['/', ' ']).nth(2).and_then(|n| n.parse().ok()).unwrap_or(0);
            ok("x".repeat(length))
        })
        .await;
        let url = |length: usize| server.url("x.test", &format!("/{length}"));
        let client = Client::new(limited(|limits| limits.max_response_bytes = 1_000));
        assert_eq!(client.text(&url(900)).await.len(), 900);
        let too_large = "FetchLimit: the response is larger than 1000 bytes";
        assert_eq!(client.text(&url(1_000)).await, too_large);
        assert_eq!(client.text(&url(10_000_000)).await, too_large);

        let client = Client::new(limited(|limits| limits.max_request_bytes = 1_000));
        let body = |length| Request {
            method: "POST".into(),
            body: Body::Bytes(vec![b'x'; length]),
            ..get(&url(0))
        };
        let count = server.count();
        assert_eq!(shown(client.send(body(900)).await), "");
        assert_eq!(
            shown(client.send(body(1_000)).await),
            "FetchLimit: the request is larger than 1000 bytes"
        );
        assert_eq!(server.count(), count + 1);

        let client = Client::new(limited(|limits| limits.max_calls = 2));
        assert_eq!(client.text(&url(1)).await, "x");
        assert_eq!(client.text(&url(1)).await, "x");
        assert_eq!(client.text(&url(1)).await, "FetchLimit: more than 2 calls in one run");

        let client = Client::new(limited(|limits| limits.max_total_bytes = 2_000));
        assert_eq!(client.text(&url(900)).await.len(), 900);
        let total = "FetchLimit: more than 2000 bytes in one run";
        assert_eq!(client.text(&url(1_500)).await, total);
        let count = server.count();
        assert_eq!(shown(client.send(body(1_500)).await), total);
        assert_eq!(server.count(), count);

        let client = Client { room_bytes: 300 << 10, ..Client::new(options()) };
        assert_eq!(client.text(&url(1_000)).await.len(), 1_000);
        let error = client.text(&url(200_000)).await;
        assert_eq!(error, "RangeError: the request is too large for the run");
    });
}

#[test]
fn so_many_requests_at_a_time_and_no_more() {
    run(async {
        let server = Server::start(|_| vec![Step::Stall]).await;
        let client = Client::new(limited(|limits| limits.max_in_flight = 3));
        let send = |number: usize| {
            tokio::spawn(client.send(get(&server.url("x.test", &format!("/{number}")))))
        };
        let requests: Vec<_> = (0..5).map(send).collect();
        until("three are there", || server.count() == 3).await;
        // Another one that comes too early has some time to do so.
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!(server.count(), 3);
        // Any three may be the first.
        let begun = server.requests.lock().expect("the requests").clone();
        let is_begun = |number: usize| {
            begun.iter().any(|request| request.starts_with(&format!("GET /{number} ")))
        };
        let first = requests.iter().enumerate().filter(|(number, _)| is_begun(*number));
        first.take(2).for_each(|(_, request)| request.abort());
        until("the others follow", || server.count() == 5).await;
        requests.iter().for_each(tokio::task::JoinHandle::abort);
    });
}

#[test]
fn connections_are_kept_for_a_while() {
    run(async {
        let server = Server::start(|request| {
            if request.contains("/close") {
                return vec![
                    Step::Write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()),
                    Step::Close,
                ];
            }
            ok("x")
        })
        .await;
        let client = Client::new(options());
        let accepted = || server.accepted.load(Ordering::SeqCst);
        // On a busy machine a connection may not be ready in time to be kept.
        let mut before = usize::MAX;
        for _ in 0..1_000 {
            before = accepted();
            assert_eq!(client.text(&server.url("x.test", "/")).await, "x");
            if before > 0 && accepted() == before {
                break;
            }
        }
        assert_eq!(accepted(), before, "no connection is used again");
        assert_eq!(client.text(&server.url("y.test", "/")).await, "x");
        assert_eq!(accepted(), before + 1);
        for _ in 0..20 {
            assert_eq!(client.text(&server.url("x.test", "/close")).await, "");
        }
        client.fetcher.close();
        until("idle ones are closed", || server.open.load(Ordering::SeqCst) == 0).await;
        assert_eq!(client.text(&server.url("x.test", "/")).await, "x");
        until("idle ones are closed in time", || server.open.load(Ordering::SeqCst) == 0).await;
    });
}

#[test]
fn each_attack_of_the_table_has_its_test() {
    let tests = [
        include_str!("fetch.rs"),
        include_str!("fetch_connections.rs"),
        include_str!("fetch_encodings.rs"),
        include_str!("fetch_functions.rs"),
        include_str!("fetch_secrets.rs"),
    ];
    let rows =
        include_str!("../cases/fetch-attacks.md").lines().filter(|line| line.starts_with("| "));
    let mut named = 0;
    for row in rows.skip(1) {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().expect("a last cell");
        for name in cell.split(", ").map(|name| name.trim_matches('`')) {
            let is_there = tests.iter().any(|text| text.contains(&format!("fn {name}()")));
            assert!(is_there, "no test {name}");
            named += 1;
        }
    }
    assert!(named >= 30, "{named} tests");
}
