//! Ready-made capabilities for code that isolane runs.
//!
//! Each is a [`NativeFunction`]: answered in Rust, whatever language hands it over. This crate uses only the public API
//! of `isolane`.
//!
//! A [`Kit`] has all capabilities of some runs: begin there. Below it are the capabilities themselves. [`door`] is the way
//! of other languages into a kit.
//!
//! Functions that need no state: [`base64`]'s `atob` and `btoa`, [`csv`]'s `parseCSV`, [`timers`]' `delay`, and those for
//! the classes of the [`web`]. Functions that keep data: [`store`]. Requests: [`fetch`] judges and makes them, [`secrets`]
//! puts values into them, [`redaction`] takes them out of everything else. [`browser`] judges and bounds the use of a
//! page. [`json_form`] writes values as JSON.

pub mod base64;
pub mod browser;
pub mod csv;
pub mod door;
pub mod error;
pub mod fetch;
pub mod json_form;
pub mod kit;
pub mod redaction;
pub mod room;
pub mod secrets;
pub mod store;
pub mod timers;
pub mod web;

mod message_copy;
mod message_walk;
mod proxy;
mod random;
mod wtf8;

use std::sync::Arc;

use isolane::{HostError, NativeFunction};

pub use self::kit::{
    AllowOption, BrowserSettings, CallError, CallRecord, CodeOptions, DbOptions, FetchSettings,
    Kit, KitExecution, KitOptions, KitOutcome, KitResult, KitRun, KitSession, LibraryOptions,
    TimerLimits, ToolOptions,
};

/// A function of this crate by its name in the sandbox; `None` if there is none of that name.
#[must_use]
pub fn function(name: &str) -> Option<Arc<dyn NativeFunction>> {
    Some(match name {
        "atob" => Arc::new(base64::Atob),
        "btoa" => Arc::new(base64::Btoa),
        "delay" => timers::Delays::default().delay(),
        "parseCSV" => Arc::new(csv::ParseCsv),
        _ => Arc::new(web::WebFunction::named(name)?),
    })
}

/// A throw of an error with that name.
fn thrown(name: &str, message: impl Into<String>) -> isolane::Completion {
    Err(HostError::new(name, message.into()).to_value())
}
