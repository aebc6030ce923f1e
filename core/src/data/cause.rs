//! Causes of a run's error.
//!
//! In: the number by which both sides of a run identify a throw, or an error of Rust. Out: the same, beside the texts
//! of the error. A cause never enters the sandbox.

use std::{error::Error, sync::Arc};

/// How many throws of a host can be causes: the latest ones. Older ones leave no [`Cause`].
///
/// A host keeps as many of its exceptions while a run is running. See [`Cause`].
pub const KEPT_THROWS: usize = 8;

/// Once a message that holds more bytes has come from the sandbox, a host keeps only its latest exception, and only until
/// the sandbox calls again: the exception may hold the message's value, which counts against no limit any more.
pub const LARGE_THROW_BYTES: usize = 64 << 10;

/// The cause of a run's error.
///
/// The core recognizes a throw of the host by the object that it became in the sandbox. Code that catches this object
/// and throws it again keeps the cause. Another error with the same text has no cause, and neither has a primitive.
///
/// Two causes of the kind [`Cause::Error`] are equal when they are the same object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The host's throw in answer to the call with that number. The first [`Host::call`] of a run is 1; calls of the
    /// sink count. Calls of native functions do not count, and their errors are no causes.
    ///
    /// [`Host::call`]: crate::Host::call
    Call(u64),
    /// The host's rejection of the promise with that number, through [`RunHandle::settle_promise`].
    ///
    /// [`RunHandle::settle_promise`]: crate::RunHandle::settle_promise
    Promise(u32),
    /// An error of Rust: the host's own, with the Rust face, or one of the library or the system.
    Error(Arc<dyn Error + Send + Sync>),
}

impl Cause {
    /// The error of Rust, if it is one.
    #[must_use]
    pub fn error(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Error(error) => Some(&**error),
            Self::Call(_) | Self::Promise(_) => None,
        }
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Call(number), Self::Call(other)) => number == other,
            (Self::Promise(number), Self::Promise(other)) => number == other,
            (Self::Error(error), Self::Error(other)) => Arc::ptr_eq(error, other),
            _ => false,
        }
    }
}

impl Eq for Cause {}
