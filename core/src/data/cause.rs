//! What the error of a run was made out of.
//!
//! In: a number that both sides of a run have for a throw, or an error of Rust. Out: the same, beside the error's
//! texts. It never enters the sandbox.

use std::{error::Error, sync::Arc};

/// How many throws of a host are told apart: the latest ones. Older ones leave no [`Cause`].
///
/// A host keeps as many of its exceptions for as long as a run goes on. See [`Cause`].
pub const KEPT_THROWS: usize = 8;

/// Bytes of a call's arguments from which on its throw is kept only until the sandbox calls its host again: the
/// exception may hold them.
pub const LARGE_THROW_BYTES: usize = 64 << 10;

/// What the error of a run was made out of.
///
/// A throw of the host is known by the object that it became in the sandbox: code that catches it and throws the
/// same one again keeps the cause, one with the same text has none. A primitive is no object, and has no cause.
///
/// Two of the kind [`Cause::Error`] are equal when they are the same object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The host threw it in answer to the call with that number: the first [`Host::call`] of a run is 1, the sink's
    /// among them. Calls of native functions do not count, and their errors are no causes.
    ///
    /// [`Host::call`]: crate::Host::call
    Call(u64),
    /// The host rejected the promise with that number, through [`RunHandle::settle_promise`].
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
