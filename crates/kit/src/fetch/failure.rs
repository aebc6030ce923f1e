//! Failures of requests, by the names and messages of the table of errors.
//!
//! In: the host of a request, and why it failed. Out: the error. No message has an address or a path.

use std::{error::Error as _, io};

use tokio_rustls::rustls;
use url::Url;

use super::target::shown_host;
use crate::error::KitError;

/// The name of the host is not known.
pub(super) fn cannot_find(url: &Url) -> KitError {
    failed(format!("cannot find {}", shown_host(url)))
}

/// No address of the host takes the connection.
pub(super) fn refused_connection(url: &Url) -> KitError {
    failed(format!("{} refused the connection", shown_host(url)))
}

/// The connection ended before the answer did.
pub(super) fn broke_connection(url: &Url) -> KitError {
    failed(format!("{} broke the connection", shown_host(url)))
}

/// The answer is not what HTTP has.
pub(super) fn no_valid_answer(url: &Url) -> KitError {
    failed(format!("{} gave no valid answer", shown_host(url)))
}

/// The answer is a redirect, which is not to be followed.
pub(super) fn not_followed() -> KitError {
    failed("not followed")
}

/// The answer did not come in time.
pub(super) fn timeout(url: &Url, ms: u64) -> KitError {
    let message = format!("no complete answer from {} within {ms} ms", shown_host(url));
    KitError::new("FetchTimeout", message)
}

/// The caller gave the request up.
pub(super) fn aborted() -> KitError {
    KitError::new("AbortError", "the request was aborted")
}

/// A limit was hit, which the message names.
pub(super) fn limit(message: impl Into<String>) -> KitError {
    KitError::new("FetchLimit", message)
}

/// The run has no room for the bytes. It ends as `memory`, so nobody reads this error.
pub(super) fn no_room() -> KitError {
    KitError::new("RangeError", "the request is too large for the run")
}

/// The failure of a TLS handshake.
pub(super) fn of_handshake(error: &io::Error, url: &Url) -> KitError {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(
            rustls::Error::InvalidCertificate(_)
            | rustls::Error::NoCertificatesPresented
            | rustls::Error::UnsupportedNameType,
        ) => failed(format!("the certificate of {} is not valid", shown_host(url))),
        Some(_) => no_valid_answer(url),
        None => broke_connection(url),
    }
}

/// The failure of an exchange of messages.
pub(crate) fn of_exchange(error: &hyper::Error, url: &Url) -> KitError {
    // A body that is cut off inside of TLS, or whose chunks have no length, is an error of the system's kind.
    let kind =
        error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let is_invalid = matches!(kind, Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput));
    if error.is_parse() || is_invalid { no_valid_answer(url) } else { broke_connection(url) }
}

fn failed(message: impl Into<String>) -> KitError {
    KitError::new("FetchFailed", message)
}
