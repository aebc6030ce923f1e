//! Tokens, hosts and origins.

use isolane_environment::ProcessServiceOptions;
use isolane_http::{ListenOptions, Server};

use crate::{
    client::{ask, get},
    scripted::{World, world, world_with},
};

const TOKEN: &str = "0123456789abcdef";

async fn guarded() -> World {
    let listen = ListenOptions { token: Some(TOKEN.to_owned()), ..ListenOptions::default() };
    world_with(ProcessServiceOptions::default(), listen).await
}

#[tokio::test]
async fn all_but_three_paths_need_the_token() {
    let world = guarded().await;
    for path in ["/", "/healthz", "/openapi.json"] {
        assert_eq!(get(&world.server, path).await.status, 200, "{path}");
    }
    for path in ["/processes", "/processes/1", "/events", "/metrics", "/tools", "/nothing"] {
        let response = get(&world.server, path).await;
        let (status, code, detail) = response.problem();
        assert_eq!((status, code.as_str()), (401, "unauthorized"), "{path}");
        assert_eq!(detail, "the header Authorization must be 'Bearer TOKEN'");
        assert_eq!(response.header("www-authenticate"), Some("Bearer"));
    }
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let value = format!("{scheme} {TOKEN}");
        let headers = [("Authorization", value.as_str())];
        assert_eq!(ask(&world.server, "GET /processes", &headers).await.status, 200);
    }
    let short = &TOKEN[..15];
    for value in [
        "Bearer",
        "Bearer 0123456789abcdeF",
        "Basic 0123456789abcdef",
        TOKEN,
        &format!("Bearer {short}"),
    ] {
        let response = ask(&world.server, "GET /processes", &[("Authorization", value)]).await;
        let (status, _, detail) = response.problem();
        assert_eq!((status, detail.as_str()), (401, "the token is not valid"), "{value}");
    }
    let twice = format!("Bearer {TOKEN}");
    let headers = [("Authorization", twice.as_str()), ("Authorization", "Bearer x")];
    assert_eq!(ask(&world.server, "GET /processes", &headers).await.status, 401);
}

#[tokio::test]
async fn with_a_token_the_host_may_be_any() {
    let world = guarded().await;
    let token = format!("Bearer {TOKEN}");
    let headers = [("Host", "sandbox.example.com"), ("Authorization", token.as_str())];
    assert_eq!(ask(&world.server, "GET /processes", &headers).await.status, 200);
    let foreign = [headers[0], headers[1], ("Origin", "http://other.example.com")];
    let response = ask(&world.server, "GET /processes", &foreign).await;
    assert_eq!(response.problem().1, "forbidden-origin");
    let own = [headers[0], headers[1], ("Origin", "https://sandbox.example.com")];
    assert_eq!(ask(&world.server, "GET /processes", &own).await.status, 200);
}

#[tokio::test]
async fn without_a_token_the_host_must_be_this_machine() {
    let world = world().await;
    for host in ["localhost:4765", "127.0.0.1", "[::1]:80"] {
        assert_eq!(ask(&world.server, "GET /processes", &[("Host", host)]).await.status, 200);
    }
    for host in ["example.com", "127.0.0.1.example.com", "192.168.1.1:4765", ""] {
        let response = ask(&world.server, "GET /processes", &[("Host", host)]).await;
        let (status, code, detail) = response.problem();
        assert_eq!((status, code.as_str()), (403, "forbidden-origin"), "{host}");
        let expected =
            "without a token, the host of a request must be a loopback address or localhost";
        assert_eq!(detail, expected);
    }
    let two = [("Host", "localhost"), ("Host", "example.com")];
    assert!(matches!(ask(&world.server, "GET /healthz", &two).await.status, 400 | 403));
    let absolute = ask(&world.server, "GET http://example.com/processes", &[("Host", "localhost")]);
    assert_eq!(absolute.await.problem().1, "forbidden-origin");
}

#[tokio::test]
async fn foreign_pages_are_refused_and_none_gets_cors_headers() {
    let world = world().await;
    let host = world.server.address().to_string();
    let own = format!("http://{host}");
    assert_eq!(world.server.url(), own);
    for (origin, status) in
        [(own.as_str(), 200), ("null", 403), ("http://127.0.0.1:1", 403), ("", 403)]
    {
        for line in ["GET /processes", "GET /", "GET /healthz"] {
            let response = ask(&world.server, line, &[("Origin", origin)]).await;
            assert_eq!(response.status, status, "{origin} {line}");
            assert_eq!(response.header("access-control-allow-origin"), None);
        }
    }
    let preflight = [("Origin", "http://a.example"), ("Access-Control-Request-Method", "POST")];
    let response = ask(&world.server, "OPTIONS /processes", &preflight).await;
    assert_eq!(response.problem().1, "forbidden-origin");
}

#[tokio::test]
async fn browsers_read_nothing_more_into_responses() {
    let world = world().await;
    for path in ["/processes", "/nothing", "/metrics"] {
        let response = get(&world.server, path).await;
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
        ] {
            assert_eq!(response.header(name), Some(value), "{path} {name}");
        }
    }
}

#[tokio::test]
async fn an_open_address_needs_a_token() {
    let world = world().await;
    let listen = |host: &str, token: Option<&str>| {
        let options = ListenOptions {
            host: host.to_owned(),
            port: 0,
            token: token.map(str::to_owned),
            ..ListenOptions::default()
        };
        let service = world.service.clone();
        async move { Server::listen(service, options).await.map_err(|error| error.message().to_owned()) }
    };
    for host in ["0.0.0.0", "::"] {
        let refused = listen(host, None).await.map(|server| server.url().to_owned());
        let message = format!("without a token, host must be a loopback address, got '{host}'");
        assert_eq!(refused, Err(message));
    }
    let open = listen("0.0.0.0", Some(TOKEN)).await.expect("with a token");
    assert!(open.url().starts_with("http://0.0.0.0:"), "{}", open.url());
    open.close().await;
    let short = listen("127.0.0.1", Some("short")).await.map(|_| ());
    assert_eq!(short, Err("token must have at least 16 characters, got 5".to_owned()));
    let taken = world.server.address().port();
    let options = ListenOptions { port: taken, ..ListenOptions::default() };
    let error = Server::listen(world.service.clone(), options).await.expect_err("taken");
    assert_eq!(error.kind(), isolane::ErrorKind::Unavailable);
    let begin = format!("the server cannot listen at 127.0.0.1, port {taken}: ");
    assert!(error.message().starts_with(&begin), "{error}");
}
