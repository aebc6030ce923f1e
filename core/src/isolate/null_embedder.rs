//! An embedder for programs of our own that call no one.

use std::time::Instant;

use super::embedder::{Embedder, Started};
use crate::{
    binding::host::{Completion, Refusal},
    data::outcome::LogLevel,
    value::Value,
};

/// Answers nothing and keeps nothing.
pub(crate) struct NullEmbedder;

impl Embedder for NullEmbedder {
    fn call(&self, _function: u32, _args: Value) -> Option<Completion> {
        None
    }

    fn start(&self, _function: u32, _args: Value, _promise: u32) -> Started {
        Started::Ended
    }

    fn report(&self, _value: Value) -> Option<Completion> {
        None
    }

    fn refusal(&self, _message: &Value) -> Option<Refusal> {
        None
    }

    fn log(&self, _level: LogLevel, _args: Value) {}

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn poll(&self, _now: Instant) {}
}
