//! The latest throws of a host.
//!
//! In: objects of the sandbox, each with the call or the promise that it came from. Out: the throws from the oldest on,
//! and an image of these for a session. `thrown` adds throws and finds them.

use std::collections::VecDeque;

use crate::{data::cause::Cause, isolate::engine::Local};

/// The latest throws of a host.
#[derive(Default)]
pub(in crate::isolate) struct Throws {
    /// From the oldest on.
    pub(super) kept: VecDeque<Throw>,
    /// The latest one of a call with large arguments, until the next call.
    pub(super) large: Option<Throw>,
    /// How many calls the host was asked to answer.
    pub(super) calls: u64,
}

/// A throw, as its object in the sandbox.
pub(super) struct Throw {
    pub(super) object: Local,
    pub(super) cause: Cause,
    pub(super) charged: usize,
}

impl Throws {
    /// As [`Local::image`].
    pub(in crate::isolate) fn image(&self) -> Self {
        Self {
            kept: self.kept.iter().map(Throw::image).collect(),
            large: self.large.as_ref().map(Throw::image),
            calls: self.calls,
        }
    }
}

impl Throw {
    fn image(&self) -> Self {
        let (cause, charged) = (self.cause.clone(), self.charged);
        Self { object: self.object.image(), cause, charged }
    }
}
