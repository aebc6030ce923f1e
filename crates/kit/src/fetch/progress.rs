//! The progress of a request, for an audit.
//!
//! In: the request as it goes on. Out: its summary, `GET https://y.org/v1/items 200`, without the query; and the bytes
//! both ways. They are known at any time, also when the request is given up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::StatusCode;
use url::Url;

/// The most bytes that are kept of a URL: more than a summary shows, so that a secret can be taken out first.
const MOST_TARGET_BYTES: usize = 64 << 10;

/// The progress of one request. All clones are one.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    target: String,
    status: Option<StatusCode>,
    bytes: u64,
    is_given_up: bool,
}

impl Progress {
    /// That of a request which has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The method, the first URL without its query, and the last status if there is one. It is empty if
    /// the arguments are wrong. Sealed secrets in the path are placeholders.
    #[must_use]
    pub fn summary(&self) -> String {
        let state = self.state();
        let status = state.status.map(|status| format!(" {}", status.as_u16())).unwrap_or_default();
        format!("{}{status}", state.target)
    }

    /// The bytes of requests and answers so far.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.state().bytes
    }

    /// Whether the code has aborted the request, which may not have ended yet.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.state().is_given_up
    }

    pub(super) fn give_up(&self) {
        self.state().is_given_up = true;
    }

    pub(super) fn begin(&self, method: &str, url: &Url) {
        let text = url.as_str();
        let end = text.find(['?', '#']).unwrap_or(text.len()).min(MOST_TARGET_BYTES);
        self.state().target = format!("{method} {}", &text[..text.floor_char_boundary(end)]);
    }

    pub(super) fn status(&self, status: StatusCode) {
        self.state().status = Some(status);
    }

    pub(super) fn bytes(&self, bytes: u64) {
        self.state().bytes += bytes;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
