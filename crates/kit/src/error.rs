//! Errors of the kit.
//!
//! In: the failure of a capability. Out: an error with the name and the message of the table of errors, the same one in
//! the sandbox and for the host. No message has an address that was looked up, a path of the host or a stack.

use std::fmt;

use isolane::{HostError, Value};

/// The failure of a capability, such as `FetchBlocked`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KitError {
    name: &'static str,
    message: String,
}

impl KitError {
    /// An error of that name.
    #[must_use]
    pub fn new(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, message: message.into() }
    }

    /// Wrong arguments.
    #[must_use]
    pub fn wrong_arguments(message: impl Into<String>) -> Self {
        Self::new("TypeError", message)
    }

    /// A request that is not allowed.
    #[must_use]
    pub fn fetch_blocked(message: impl Into<String>) -> Self {
        Self::new("FetchBlocked", message)
    }

    /// The same error under another name: the browser's `BrowserBlocked` has the messages of `FetchBlocked`.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The same error, of the hop to which that redirect led. The first one is 1.
    #[must_use]
    pub fn on_redirect(self, number: u32) -> Self {
        Self { message: format!("redirect {number}: {}", self.message), ..self }
    }

    /// The name of the error.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The message of the error.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error as a native function throws it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        HostError::new(self.name, self.message.clone()).to_value()
    }
}

impl fmt::Display for KitError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.name, self.message)
    }
}

impl std::error::Error for KitError {}
