//! Ready-made capabilities for code that isolane runs.
//!
//! Each is a [`NativeFunction`]: answered in Rust, whatever language hands it over. This crate uses only the public API
//! of `isolane`.
//!
//! Functions that need no state: [`base64`]'s `atob` and `btoa`, [`csv`]'s `parseCSV` and [`timers`]' `delay`. Functions
//! that keep data: [`store`]. Rules that need no socket: [`fetch`] judges requests and addresses, [`secrets`] puts values
//! into requests, [`redaction`] takes them out of everything else, and [`json_form`] writes values as JSON.

pub mod base64;
pub mod csv;
pub mod error;
pub mod fetch;
pub mod json_form;
pub mod redaction;
pub mod room;
pub mod secrets;
pub mod store;
pub mod timers;

mod date;
mod message_walk;
mod wtf8;

use std::sync::Arc;

use isolane::{HostError, NativeFunction};

/// A function of this crate by its name in the sandbox; `None` if there is none of that name.
#[must_use]
pub fn function(name: &str) -> Option<Arc<dyn NativeFunction>> {
    Some(match name {
        "atob" => Arc::new(base64::Atob),
        "btoa" => Arc::new(base64::Btoa),
        "delay" => Arc::new(timers::Delay),
        "parseCSV" => Arc::new(csv::ParseCsv),
        _ => return None,
    })
}

/// A throw of an error with that name.
fn thrown(name: &str, message: impl Into<String>) -> isolane::Completion {
    Err(HostError::new(name, message.into()).to_value())
}
