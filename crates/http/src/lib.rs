//! A process service over HTTP: requests, event streams, a page.
//!
//! In: a [`ProcessService`](isolane_environment::ProcessService) and the options of an address. Out: a [`Server`], which
//! answers clients until it is closed.

mod about;
mod app;
mod body;
mod connections;
pub mod door;
mod events;
mod guard;
mod log;
mod metrics;
mod openapi;
mod operations;
mod options;
mod page;
mod params;
mod patient;
mod problem;
mod processes;
mod rate;
mod reply;
mod server;
mod strict_json;
mod tools;

pub use options::{ListenOptions, RateLimit};
pub use server::Server;
