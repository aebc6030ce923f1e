//! The options of a [`Fetcher`](super::Fetcher): what it may request, and how much.

use std::{fmt, sync::Arc};

use super::{
    address::Addresses,
    allow::Allow,
    resolver::{Resolver, SystemResolver},
};

/// The limits of requests. All but the first three count for one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// The time of one request, milliseconds: its redirects and the body of the answer included. A request may lower
    /// it. 30,000.
    pub timeout_ms: u64,
    /// The most redirects of one request. 10.
    pub max_redirects: u64,
    /// The most bytes of one request: URL, headers and body. 10 MiB.
    pub max_request_bytes: u64,
    /// The most bytes of one answer: headers, and the body as it is read, without compression. 10 MiB.
    pub max_response_bytes: u64,
    /// The most requests at a time. Others wait. 10.
    pub max_in_flight: u64,
    /// The most requests. 100.
    pub max_calls: u64,
    /// The most bytes of all requests and answers. 100 MiB.
    pub max_total_bytes: u64,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            timeout_ms: 30_000,
            max_redirects: 10,
            max_request_bytes: 10 << 20,
            max_response_bytes: 10 << 20,
            max_in_flight: 10,
            max_calls: 100,
            max_total_bytes: 100 << 20,
        }
    }
}

/// The options of a [`Fetcher`](super::Fetcher).
#[derive(Clone)]
pub struct FetchOptions {
    /// The requests that are allowed.
    pub allow: Allow,
    /// The addresses that may be dialled.
    pub addresses: Addresses,
    /// Certificates in PEM, of authorities that are trusted beside Mozilla's.
    pub ca: Option<String>,
    /// The limits.
    pub limits: FetchLimits,
    /// Looks up names.
    pub resolver: Arc<dyn Resolver>,
}

impl FetchOptions {
    /// These requests, to public addresses, with the limits and the resolver that are usual.
    #[must_use]
    pub fn new(allow: Allow) -> Self {
        Self {
            allow,
            addresses: Addresses::default(),
            ca: None,
            limits: FetchLimits::default(),
            resolver: Arc::new(SystemResolver::default()),
        }
    }
}

impl fmt::Debug for FetchOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("FetchOptions");
        out.field("allow", &self.allow).field("addresses", &self.addresses);
        out.field("limits", &self.limits).finish_non_exhaustive()
    }
}
