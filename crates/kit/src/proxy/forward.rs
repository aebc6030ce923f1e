//! Requests over http, which the proxy reads.
//!
//! In: a request with an absolute URL. Out: the answer of its host. Headers that concern one connection alone are not
//! passed on, in either direction.

use std::sync::Arc;

use http_body_util::Either;
use hyper::{
    Request, Response, Uri,
    body::Incoming,
    header::{
        CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING,
        UPGRADE,
    },
};
use hyper_util::rt::TokioIo;
use url::{Position, Url};

use super::serve::{Body, Gate, client};
use crate::{
    error::KitError,
    fetch::{allow, failure},
};

/// Headers of one connection, beside those that `Connection` names.
const OF_CONNECTION: [HeaderName; 5] = [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// Passes a request on, if it is allowed.
pub(super) async fn forward(
    gate: &Arc<Gate>,
    request: Request<Incoming>,
) -> Result<Response<Body>, KitError> {
    let wrong = || KitError::wrong_arguments("the proxy takes absolute URLs");
    let url = Url::parse(&request.uri().to_string()).map_err(|_| wrong())?;
    if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
        return Err(wrong());
    }
    // A method that `fetch` does not have is one that no entry names: a preflight for example.
    gate.rules.allow.judge(allow::method(request.method().as_str()).ok(), &url)?;
    let socket = gate.dial(&url).await?;
    let handshake = client().handshake(TokioIo::new(socket)).await;
    let (mut sender, connection) = handshake.map_err(|error| failure::of_exchange(&error, &url))?;
    let working = Arc::clone(gate);
    // The reader of the answer is told of a failure.
    tokio::spawn(async move { working.until_end(async { drop(connection.await) }).await });
    let (mut head, body) = request.into_parts();
    head.uri =
        url[Position::BeforePath..Position::AfterQuery].parse::<Uri>().map_err(|_| wrong())?;
    strip(&mut head.headers);
    let host = &url[Position::BeforeHost..Position::AfterPort];
    head.headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| wrong())?);
    let answer = sender.send_request(Request::from_parts(head, body)).await;
    let (mut head, body) = answer.map_err(|error| failure::of_exchange(&error, &url))?.into_parts();
    strip(&mut head.headers);
    Ok(Response::from_parts(head, Either::Right(body)))
}

/// Takes out the headers of one connection.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').filter_map(|name| name.trim().parse().ok()))
        .collect();
    let of_proxy = headers
        .keys()
        .filter(|name| name.as_str().starts_with("proxy-") || name.as_str() == "keep-alive");
    let of_proxy: Vec<_> = of_proxy.cloned().collect();
    for name in named.iter().chain(&of_proxy).chain(&OF_CONNECTION) {
        headers.remove(name);
    }
}
