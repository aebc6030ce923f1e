//! The state of a server, which all its requests share.
//!
//! In: a service and options. Out: what handlers need.

use std::sync::Arc;

use axum::body::Bytes;
use isolane_environment::ProcessService;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{ListenOptions, log::FailureLog, metrics::HttpMetrics, openapi, rate::RateLimiter};

/// The state of a server.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) service: ProcessService,
    pub(crate) token: Option<String>,
    pub(crate) max_body_bytes: usize,
    pub(crate) limiter: Option<RateLimiter>,
    pub(crate) metrics: HttpMetrics,
    pub(crate) log: FailureLog,
    /// Cancelled when the server closes: then nobody waits any longer, and streams end.
    pub(crate) closing: CancellationToken,
    /// The document, in JSON.
    pub(crate) openapi: Bytes,
    /// When the server began, for the clock of the limiter.
    pub(crate) began: Instant,
}

/// The state as handlers have it.
pub(crate) type SharedApp = Arc<App>;

impl App {
    pub(crate) fn new(
        service: ProcessService,
        options: ListenOptions,
        closing: CancellationToken,
    ) -> Self {
        let document = openapi::document(options.token.is_some(), service.max_timeout_ms());
        Self {
            service,
            token: options.token,
            max_body_bytes: options.max_body_bytes,
            limiter: options.rate_limit.map(RateLimiter::new),
            metrics: HttpMetrics::default(),
            log: FailureLog::new(options.log),
            closing,
            openapi: document.to_string().into(),
            began: Instant::now(),
        }
    }
}
