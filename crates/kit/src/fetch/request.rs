//! Requests: what the caller asks for, and what is sent of it.
//!
//! In: a [`Request`] of the caller, in which secrets are placeholders. Out: the hyper request of one hop, in which they
//! are values. All of it is checked and filled before anything is sent.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Uri,
    header::{
        ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST,
        HeaderMap, HeaderName, HeaderValue, USER_AGENT,
    },
};
use url::Url;

use super::{allow, failure, target};
use crate::{error::KitError, secrets::Snapshot};

/// The most headers of a request.
const MOST_HEADERS: usize = 200;

/// The longest path with its query, bytes.
const MOST_PATH_BYTES: usize = 60 << 10;

/// Headers that are the client's own: a request with one of them is refused.
const REFUSED_HEADERS: [&str; 10] = [
    "host",
    "content-length",
    "accept-encoding",
    "expect",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The encodings that are undone.
const ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// The answer to a redirect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirect {
    /// It is followed.
    #[default]
    Follow,
    /// It is an error.
    Error,
    /// It is the answer.
    Manual,
}

/// A request as its caller writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// An absolute URL.
    pub url: String,
    /// One of [`METHODS`](allow::METHODS), in either case; `GET` if it is empty.
    pub method: String,
    /// Names and values, in their order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
    /// The time limit, milliseconds, if it is lower than that of the options.
    pub timeout_ms: Option<f64>,
    /// The answer to a redirect.
    pub redirect: Redirect,
}

/// The body of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// None.
    #[default]
    None,
    /// A text, as UTF-8. Its Content-Type is `text/plain;charset=UTF-8` unless it is given.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A request that was checked, and changes with each redirect.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) url: Url,
    pub(super) method: &'static str,
    pub(super) redirect: Redirect,
    /// `None` without a time limit of its own.
    pub(super) timeout_ms: Option<u64>,
    /// As the caller wrote them.
    headers: Vec<(HeaderName, String)>,
    body: Option<Bytes>,
}

impl Outgoing {
    /// Checks the arguments of a request.
    ///
    /// # Errors
    /// A TypeError, or the `FetchBlocked` of a header.
    pub(super) fn new(request: Request) -> Result<Self, KitError> {
        let mut url = target::parse(&request.url)?;
        url.set_fragment(None);
        let is_unnamed = request.method.is_empty();
        let method = allow::method(if is_unnamed { "GET" } else { &request.method })?;
        let mut headers = headers(request.headers)?;
        let body = match request.body {
            Body::None => None,
            Body::Bytes(bytes) => Some(Bytes::from(bytes)),
            Body::Text(text) => {
                if !headers.iter().any(|(name, _)| name == CONTENT_TYPE) {
                    headers.push((CONTENT_TYPE, "text/plain;charset=UTF-8".to_owned()));
                }
                Some(Bytes::from(text))
            }
        };
        if body.is_some() && matches!(method, "GET" | "HEAD") {
            return Err(KitError::wrong_arguments(format!("a {method} request has no body")));
        }
        let timeout_ms = request.timeout_ms.map(timeout).transpose()?;
        Ok(Self { url, method, redirect: request.redirect, timeout_ms, headers, body })
    }

    /// The request of this hop, and its size in bytes.
    ///
    /// # Errors
    /// `FetchBlocked` if a secret may not go there, or the `FetchLimit` of its size.
    pub(super) fn to_http(
        &self,
        secrets: &Snapshot,
        most_bytes: u64,
    ) -> Result<(hyper::Request<Full<Bytes>>, u64), KitError> {
        let most_bytes = usize::try_from(most_bytes).unwrap_or(usize::MAX);
        let too_large = || failure::limit(format!("the request is larger than {most_bytes} bytes"));
        let mut left = most_bytes;
        let mut count = |bytes: usize| {
            left = left.checked_sub(bytes).ok_or_else(too_large)?;
            Ok::<_, KitError>(())
        };
        let path = path(&self.url, secrets, most_bytes)?;
        count(path.path_and_query().map_or(0, |path| path.as_str().len()))?;
        let mut sent = HeaderMap::with_capacity(self.headers.len() + 4);
        for (name, text) in &self.headers {
            let filled = secrets.request.fill_header(&self.url, text.as_bytes(), most_bytes)?;
            let mut value = match &filled {
                Some(filled) => HeaderValue::from_bytes(filled),
                None => latin1(text),
            }
            .map_err(|_| unsendable(name))?;
            value.set_sensitive(filled.is_some());
            count(name.as_str().len() + value.len() + ": \r\n".len())?;
            sent.append(name, value);
        }
        let host = host(&self.url)?;
        count(host.len())?;
        sent.insert(HOST, host);
        sent.insert(ACCEPT_ENCODING, ENCODINGS);
        sent.entry(USER_AGENT).or_insert(HeaderValue::from_static("isolane"));
        sent.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        let body = match &self.body {
            None => Bytes::new(),
            Some(body) => {
                count(body.len())?;
                let media = sent.get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
                match secrets.request.fill_body(&self.url, media, body, most_bytes)? {
                    Some(filled) => {
                        count(filled.len().saturating_sub(body.len()))?;
                        // It is overwritten when hyper drops it.
                        Bytes::from_owner(filled)
                    }
                    None => body.clone(),
                }
            }
        };
        // Of a body with bytes hyper tells the length.
        if body.is_empty() && (self.body.is_some() || matches!(self.method, "POST" | "PUT")) {
            sent.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let size = (most_bytes - left) as u64;
        let mut request = hyper::Request::new(Full::new(body));
        *request.uri_mut() = path;
        *request.method_mut() = method(self.method);
        *request.headers_mut() = sent;
        Ok((request, size))
    }

    /// Follows a redirect, as the Fetch standard has it.
    pub(super) fn follow(&mut self, status: u16, target: Url, secrets: &Snapshot) {
        let becomes_get = match status {
            301 | 302 => self.method == "POST",
            303 => !matches!(self.method, "GET" | "HEAD"),
            _ => false,
        };
        if becomes_get {
            self.method = "GET";
            self.body = None;
            self.headers.retain(|(name, _)| !name.as_str().starts_with("content-"));
        }
        if self.url.origin() != target.origin() {
            self.headers.retain(|(name, value)| {
                *name != AUTHORIZATION && *name != COOKIE && !has_secret(value, secrets)
            });
        }
        self.url = target;
        self.url.set_fragment(None);
    }

    /// The bytes that the request holds.
    pub(super) fn held_bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        let body = self.body.as_ref().map_or(0, Bytes::len);
        headers.sum::<usize>() + self.url.as_str().len() + body
    }
}

/// Checks headers.
fn headers(given: Vec<(String, String)>) -> Result<Vec<(HeaderName, String)>, KitError> {
    if given.len() > MOST_HEADERS {
        let message = format!("a request has at most {MOST_HEADERS} headers");
        return Err(KitError::wrong_arguments(message));
    }
    let read = |(name, value): (String, String)| {
        let name: HeaderName = name.parse().map_err(|_| {
            KitError::wrong_arguments("the name of a header has letters, digits and '-'")
        })?;
        if is_refused(name.as_str()) {
            return Err(KitError::fetch_blocked(format!("header '{name}' is not allowed")));
        }
        let value = value.trim_matches(['\t', '\n', '\r', ' ']).to_owned();
        latin1(&value).map_err(|_| unsendable(&name))?;
        Ok((name, value))
    };
    given.into_iter().map(read).collect()
}

fn is_refused(name: &str) -> bool {
    REFUSED_HEADERS.contains(&name) || name.starts_with("proxy-")
}

/// The TypeError of a header with a line end, a NUL, another control character, or one above U+00FF.
fn unsendable(name: &HeaderName) -> KitError {
    let name = &name.as_str()[..name.as_str().len().min(64)];
    KitError::wrong_arguments(format!("header '{name}' has a character that a header cannot have"))
}

/// The value of a header whose characters are bytes, as the Fetch standard has it.
fn latin1(text: &str) -> Result<HeaderValue, hyper::header::InvalidHeaderValue> {
    // A NUL is refused, as a character that is no byte must be.
    let bytes: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap_or(0)).collect();
    HeaderValue::from_maybe_shared(Bytes::from(bytes))
}

/// Whether a header has a secret: a placeholder, or a value that the code may see.
fn has_secret(value: &str, secrets: &Snapshot) -> bool {
    let is_named = |text: &[u8]| secrets.request.named_in(text).is_some();
    is_named(value.as_bytes())
        || crate::secrets::request::basic_credentials(value.as_bytes())
            .is_some_and(|credentials| is_named(&credentials))
        || secrets.outputs.text(value) != value
}

/// The path and the query of a hop, with secrets in them.
fn path(url: &Url, secrets: &Snapshot, most_bytes: usize) -> Result<Uri, KitError> {
    let filled = secrets.request.fill_url(url, most_bytes)?;
    let too_long = || KitError::wrong_arguments("fetch takes an absolute URL: it is too long");
    let text = match &filled {
        Some(filled) => Bytes::copy_from_slice(filled),
        None => {
            let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
            Bytes::from(format!("{}{query}", url.path()))
        }
    };
    if text.len() > MOST_PATH_BYTES {
        return Err(too_long());
    }
    Uri::from_maybe_shared(text).map_err(|_| {
        KitError::wrong_arguments("fetch takes an absolute URL: it has an invalid character")
    })
}

fn host(url: &Url) -> Result<HeaderValue, KitError> {
    let name = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    HeaderValue::try_from(format!("{name}{port}")).map_err(|_| failure::cannot_find(url))
}

fn method(name: &str) -> hyper::Method {
    match name {
        "POST" => hyper::Method::POST,
        "PUT" => hyper::Method::PUT,
        "PATCH" => hyper::Method::PATCH,
        "DELETE" => hyper::Method::DELETE,
        "HEAD" => hyper::Method::HEAD,
        _ => hyper::Method::GET,
    }
}

/// A time limit in whole milliseconds.
fn timeout(ms: f64) -> Result<u64, KitError> {
    if ms.is_nan() || ms <= 0.0 {
        return Err(KitError::wrong_arguments("timeout is a number of milliseconds above 0"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is cut to the range"
    )]
    let ms = ms.ceil() as u64;
    Ok(ms)
}
