//! The sandbox, as the functions of the table's host see it: a run or a session.
//!
//! In: calls and releases of functions of the sandbox. Out: messages to the run or session.

use isolane::{RunHandle, value::Value};

/// A handle that takes messages of the host.
pub(crate) trait Remote {
    fn call_function(&self, function: u32, args: Value, call: u32);

    fn release_function(&self, function: u32, times: u32);
}

impl Remote for RunHandle {
    fn call_function(&self, function: u32, args: Value, call: u32) {
        Self::call_function(self, function, args, call);
    }

    fn release_function(&self, function: u32, times: u32) {
        Self::release_function(self, function, times);
    }
}
