//! The counterpart of an isolate: the host, as an isolate sees it.
//!
//! In: calls, reports, logs and outcomes of the sandbox. Out: answers of the host.

use std::time::Instant;

use crate::{
    binding::host::{Completion, Refusal},
    data::outcome::LogLevel,
    value::Value,
};

/// The counterpart of an isolate. Called on the thread that computes it, in the middle of its work.
pub(crate) trait Embedder: Send + Sync {
    /// Calls a host function and waits for its answer; `None` when the run must end.
    fn call(&self, function: u32, args: Value) -> Option<Completion>;

    /// Has the host start a call that will settle that promise.
    fn start(&self, function: u32, args: Value, promise: u32) -> Started;

    /// Keeps a reported value and gives it to the sink, as [`Embedder::call`] does.
    fn report(&self, value: Value) -> Option<Completion>;

    /// The part of a message that the host cannot hold, if there is one.
    fn refusal(&self, message: &Value) -> Option<Refusal>;

    /// Passes a log on, and keeps it if [`Embedder::keeps_logs`].
    fn log(&self, level: LogLevel, args: Value);

    /// Whether logs are kept until the run ends, and so count against its limit.
    fn keeps_logs(&self) -> bool {
        true
    }

    /// Takes the outcome of a call that the host made.
    fn function_settled(&self, call: u32, completion: Completion);

    /// Takes the outcome of a promise that the host holds.
    fn promise_settled(&self, promise: u32, completion: Completion);

    /// Called when the interrupt handler reads the clock; may wait, or ask the run to end.
    fn poll(&self, now: Instant);

    /// Called before the first instruction of a cell. False if somebody has asked the cell to end. `can_undo`: what the
    /// cell does can be undone, so that it may as well begin.
    fn begins(&self, can_undo: bool) -> bool {
        let _ = can_undo;
        true
    }
}

/// The outcome of the start of a call by the host.
#[derive(Debug)]
pub(crate) enum Started {
    /// It goes on, and its outcome will be a message.
    GoesOn,
    /// It is done, and there will be no message.
    Done(Completion),
    /// The run must end.
    Ended,
}
