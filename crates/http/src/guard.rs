//! The guard before all handlers.
//!
//! In: each request. Out: its response, or the problem of a request that may not come in. All responses are counted, and get
//! the headers that keep browsers from reading more into them.

use std::{net::IpAddr, panic::AssertUnwindSafe};

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderValue, Method, Uri, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use isolane_environment::ProblemType;
use subtle::ConstantTimeEq;

use crate::{
    app::{App, SharedApp},
    body::discard,
    problem::{Problem, tell},
    rate::Client,
};

/// The address of a request's sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Paths that need no token.
pub(crate) const OPEN_PATHS: [&str; 3] = ["/", "/healthz", "/openapi.json"];

/// Answers a request, if it may come in.
pub(crate) async fn guard(State(app): State<SharedApp>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = match admit(&app, &request) {
        Ok(()) => match AssertUnwindSafe(next.run(request)).catch_unwind().await {
            Ok(response) => response,
            Err(_) => Problem::internal("a handler panicked").into_response(),
        },
        Err(problem) => {
            discard(&app, request);
            problem.into_response()
        }
    };
    let mut response = tell(response, &app.log);
    let route = route.as_ref().map_or("unknown", MatchedPath::as_str);
    app.metrics.count(route, response.status().as_u16());
    harden(response.headers_mut());
    response
}

fn admit(app: &App, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    if app.token.is_none() {
        check_host(headers, request.uri())?;
    }
    check_origin(headers)?;
    check_token(app, headers, request.uri())?;
    if app.closing.is_cancelled() {
        return Err(Problem::closing());
    }
    if request.method() != Method::POST {
        return Ok(());
    }
    let Some(limiter) = &app.limiter else { return Ok(()) };
    let client = match (&app.token, request.extensions().get::<Peer>()) {
        (Some(_), _) => Client::Token,
        (None, Some(Peer(address))) => Client::Address(*address),
        (None, None) => Client::Others,
    };
    limiter.take(client, app.began.elapsed()).map_err(Problem::rate_limited)
}

/// Without a token, a name of this machine alone: a page elsewhere may have its own name lead here.
fn check_host(headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    let is_here = match only(headers, &header::HOST) {
        Some(host) => is_loopback(host) && uri.host().is_none_or(is_loopback),
        None => false,
    };
    if is_here {
        return Ok(());
    }
    let detail = "without a token, the host of a request must be a loopback address or localhost";
    Err(Problem::new(ProblemType::ForbiddenOrigin, detail))
}

/// A page may call the server that it comes from, and no other.
fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    if !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = only(headers, &header::ORIGIN);
    let host = only(headers, &header::HOST);
    let is_own = origin.zip(host).is_some_and(|(origin, host)| {
        let (scheme, place) = origin.split_once("://").unwrap_or_default();
        let port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return false,
        };
        let bare = |text: &str| text.strip_suffix(port).unwrap_or(text).to_ascii_lowercase();
        bare(place) == bare(host)
    });
    if is_own {
        return Ok(());
    }
    let detail = "requests of pages of another origin are refused";
    Err(Problem::new(ProblemType::ForbiddenOrigin, detail))
}

fn check_token(app: &App, headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    let Some(token) = &app.token else { return Ok(()) };
    if OPEN_PATHS.contains(&uri.path()) {
        return Ok(());
    }
    let Some(given) = only(headers, &header::AUTHORIZATION) else {
        return Err(Problem::unauthorized("the header Authorization must be 'Bearer TOKEN'"));
    };
    let (scheme, given) = given.split_once(' ').unwrap_or_default();
    let is_same = bool::from(given.trim().as_bytes().ct_eq(token.as_bytes()));
    if scheme.eq_ignore_ascii_case("bearer") && is_same {
        return Ok(());
    }
    Err(Problem::unauthorized("the token is not valid"))
}

/// The text of a header that there is once.
fn only<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok()
}

/// Whether a host, with a port or without, is this machine.
fn is_loopback(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, port)) => (name, port.strip_prefix(':').unwrap_or(port)),
        None => host.split_once(':').unwrap_or((host, "")),
    };
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let is_name = name == "localhost" || name.ends_with(".localhost");
    is_name || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn harden(headers: &mut HeaderMap) {
    let nothing = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(nothing);
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_machine() {
        for host in [
            "localhost",
            "LOCALHOST:1",
            "a.localhost:80",
            "127.0.0.1",
            "127.9.9.9:4765",
            "[::1]",
            "[::1]:1",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com:80",
            "0.0.0.0",
            "[::]",
            "[::2]:1",
            "localhost:x",
            "user@localhost",
            "127.0.0.1:80@example.com",
            "notlocalhost",
            "::1",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn the_own_origin_is_the_host() {
        let check = |origin: &'static str, host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            headers.insert(header::HOST, HeaderValue::from_static(host));
            check_origin(&headers).is_ok()
        };
        assert!(check("http://127.0.0.1:4765", "127.0.0.1:4765"));
        assert!(check("http://LOCALHOST:4765", "localhost:4765"));
        assert!(check("https://example.com", "example.com:443"));
        assert!(check("http://example.com:80", "example.com"));
        for origin in [
            "null",
            "http://127.0.0.1:4766",
            "http://example.com",
            "file://127.0.0.1:4765",
            "",
            "http://",
        ] {
            assert!(!check(origin, "127.0.0.1:4765"), "{origin}");
        }
    }
}
