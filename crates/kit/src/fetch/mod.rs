//! `fetch`: requests by HTTP, to where the host allows and nowhere else.
//!
//! In: the options of the host, and requests of runs. Out: answers, or errors by name. [`allow`] judges a URL and a
//! method before anything is looked up, [`address`] the addresses at every connection. [`Fetcher`] sends what passes;
//! begin to read at `client.rs`. [`FetchFunctions`] are the functions for the sandbox.

pub mod address;
pub mod allow;
pub mod pattern;
pub mod target;

mod body;
mod client;
mod connection;
mod dialer;
mod encoding;
pub(crate) mod failure;
mod functions;
mod options;
mod pool;
mod progress;
mod request;
mod resolver;
mod run_limits;
mod shared_room;

pub(crate) use connection::{HEAD_BYTES, MOST_HEADERS, READ_BYTES};
pub(crate) use dialer::Dialer;

pub use client::{Fetcher, Response};
pub use functions::{FetchFunctions, FetchRecord};
pub use options::{FetchLimits, FetchOptions};
pub use progress::Progress;
pub use request::{Body, Redirect, Request};
pub use resolver::{Resolved, Resolver, SystemResolver};
pub use run_limits::RunLimits;
