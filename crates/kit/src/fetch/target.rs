//! The URL of a request.
//!
//! In: a text of the sandbox. Out: a URL as the URL standard reads it, the same one that is judged and requested, or the
//! TypeError.

use url::Url;

use crate::error::KitError;

/// Characters of a host that an error shows: a name of DNS has no more.
const SHOWN_HOST: usize = 253;

/// Reads an absolute URL without a user.
///
/// # Errors
/// The TypeError of a text that is none. It does not repeat the text.
pub fn parse(text: &str) -> Result<Url, KitError> {
    let url = Url::parse(text).map_err(|error| {
        KitError::wrong_arguments(format!("fetch takes an absolute URL: {error}"))
    })?;
    if url.username().is_empty() && url.password().is_none() {
        return Ok(url);
    }
    Err(KitError::wrong_arguments("the URL has a user or a password; use the header Authorization"))
}

/// The host as an error shows it, in quotes.
#[must_use]
pub fn shown_host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let shown = &host[..host.floor_char_boundary(SHOWN_HOST)];
    let more = if shown.len() < host.len() { "…" } else { "" };
    format!("'{shown}{more}'")
}
