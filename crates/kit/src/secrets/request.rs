//! Secrets in requests.
//!
//! In: the parts of a request, with placeholders in them. Out: the parts with the values, each escaped for its place; or
//! `FetchBlocked`, if a secret may not go to that host or not stand in that part. All parts are filled before anything
//! is sent, so a request that is refused sends nothing.

use std::{fmt, sync::Arc};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use url::Url;
use zeroize::Zeroizing;

use super::{Part, Secret, escape::Escape};
use crate::{base64::FORGIVING, error::KitError, fetch::target::shown_host};

/// The scheme of credentials in Base64.
const BASIC: &[u8] = b"Basic ";

/// Bytes that are overwritten when they are freed.
pub type Filled = Zeroizing<Vec<u8>>;

/// The placeholders of a kit, and the secrets that they stand for at one moment.
#[derive(Default)]
pub struct RequestSecrets {
    /// `None` without placeholders.
    finder: Option<AhoCorasick>,
    names: Vec<String>,
    /// `None` for a secret that is no longer given.
    secrets: Vec<Option<Arc<Secret>>>,
}

impl RequestSecrets {
    /// Of names, with their placeholders and secrets.
    pub(super) fn new(
        named: impl IntoIterator<Item = (String, String, Option<Arc<Secret>>)>,
    ) -> Self {
        let (mut names, mut placeholders, mut secrets) = (Vec::new(), Vec::new(), Vec::new());
        for (name, placeholder, secret) in named {
            names.push(name);
            placeholders.push(placeholder);
            secrets.push(secret);
        }
        let finder = (!names.is_empty()).then(|| {
            let mut builder = AhoCorasick::builder();
            let built = builder.match_kind(MatchKind::LeftmostLongest).build(&placeholders);
            built.expect("it fails for gigabytes of patterns alone")
        });
        Self { finder, names, secrets }
    }

    /// The name of the first secret whose placeholder is in the text; `None` without one. The browser takes no such
    /// text, as a page can be read back.
    #[must_use]
    pub fn named_in(&self, text: &[u8]) -> Option<&str> {
        let found = self.finder.as_ref()?.find(text)?;
        self.names.get(found.pattern().as_usize()).map(String::as_str)
    }

    /// The path and the query of a request with the values in them, percent-encoded; `None` without a placeholder.
    ///
    /// # Errors
    /// `FetchBlocked`, or `FetchLimit` if they get longer than so many bytes.
    pub fn fill_url(&self, url: &Url, most_bytes: usize) -> Result<Option<Filled>, KitError> {
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let text = format!("{}{query}", url.path());
        self.fill(url, Part::Url, Escape::Url, text.as_bytes(), most_bytes)
    }

    /// The value of a header with the values in it, also in the Base64 of `Basic` credentials; `None` without a
    /// placeholder. A header that was filled is not sent to another origin.
    ///
    /// # Errors
    /// As [`RequestSecrets::fill_url`].
    pub fn fill_header(
        &self,
        url: &Url,
        header: &[u8],
        most_bytes: usize,
    ) -> Result<Option<Filled>, KitError> {
        let fill = |text: &[u8]| self.fill(url, Part::Header, Escape::None, text, most_bytes);
        if let Some(filled) = fill(header)? {
            return Ok(Some(filled));
        }
        let Some(credentials) = basic_credentials(header) else { return Ok(None) };
        let Some(filled) = fill(&credentials)? else { return Ok(None) };
        let text = Zeroizing::new(FORGIVING.encode(&*filled));
        let mut header = Zeroizing::new(Vec::with_capacity(BASIC.len() + text.len()));
        header.extend_from_slice(BASIC);
        header.extend_from_slice(text.as_bytes());
        Ok(Some(header))
    }

    /// A body with the values in it, escaped as its Content-Type asks for; `None` without a placeholder.
    ///
    /// # Errors
    /// As [`RequestSecrets::fill_url`].
    pub fn fill_body(
        &self,
        url: &Url,
        content_type: Option<&str>,
        body: &[u8],
        most_bytes: usize,
    ) -> Result<Option<Filled>, KitError> {
        self.fill(url, Part::Body, Escape::of_body(content_type), body, most_bytes)
    }

    /// Linear in the text and in the result. The size of the result is known before it is made.
    fn fill(
        &self,
        url: &Url,
        part: Part,
        escape: Escape,
        text: &[u8],
        most_bytes: usize,
    ) -> Result<Option<Filled>, KitError> {
        let Some(finder) = &self.finder else { return Ok(None) };
        let mut values: Vec<Option<Filled>> = vec![None; self.names.len()];
        let (mut added, mut removed) = (0usize, 0);
        for found in finder.find_iter(text) {
            let index = found.pattern().as_usize();
            if values[index].is_none() {
                values[index] = Some(escape.write(&self.permitted(index, url, part)?.value));
            }
            added = added.saturating_add(values[index].as_ref().map_or(0, |value| value.len()));
            removed += found.len();
        }
        if removed == 0 {
            return Ok(None);
        }
        let length = (text.len() - removed).saturating_add(added);
        if length > most_bytes {
            let message = format!("the request is larger than {most_bytes} bytes");
            return Err(KitError::new("FetchLimit", message));
        }
        let mut filled = Zeroizing::new(Vec::with_capacity(length));
        let mut from = 0;
        for found in finder.find_iter(text) {
            filled.extend_from_slice(&text[from..found.start()]);
            if let Some(value) = &values[found.pattern().as_usize()] {
                filled.extend_from_slice(value);
            }
            from = found.end();
        }
        filled.extend_from_slice(&text[from..]);
        Ok(Some(filled))
    }

    /// The secret, if it may stand in that part of a request to that URL.
    fn permitted(&self, index: usize, url: &Url, part: Part) -> Result<&Secret, KitError> {
        let name = &self.names[index];
        let blocked = |why: &str| Err(KitError::fetch_blocked(format!("secret '{name}' {why}")));
        let Some(secret) = &self.secrets[index] else { return blocked("is no longer given") };
        if !secret.hosts.iter().any(|pattern| pattern.matches(url)) {
            return blocked(&format!("is not for {}", shown_host(url)));
        }
        if secret.parts.contains(&part) {
            return Ok(secret);
        }
        blocked(match part {
            Part::Url => "may not stand in the URL",
            Part::Header => "may not stand in a header",
            Part::Body => "may not stand in the body",
        })
    }
}

/// Shows names only.
impl fmt::Debug for RequestSecrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(&self.names).finish()
    }
}

/// The user and the password of `Basic` credentials.
pub(crate) fn basic_credentials(header: &[u8]) -> Option<Filled> {
    let (scheme, text) = header.trim_ascii().split_at_checked(BASIC.len())?;
    if !scheme.eq_ignore_ascii_case(BASIC) {
        return None;
    }
    FORGIVING.decode(text.trim_ascii()).ok().map(Zeroizing::new)
}
