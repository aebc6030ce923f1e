//! Delays.
//!
//! In: milliseconds. Out: a promise that is fulfilled after them. A delay ends with its run.

use std::time::Duration;

use isolane::{NativeAnswer, NativeCall, NativeFunction, NativeMode, Value};

use crate::thrown;

/// The longest delay: 30 seconds.
pub const MAX_DELAY: Duration = Duration::from_secs(30);

/// `delay(ms)`: a promise that is fulfilled after so many milliseconds, at least 0 and at most [`MAX_DELAY`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Delay;

impl NativeFunction for Delay {
    fn name(&self) -> &'static str {
        "delay"
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let (ms,): (f64,) = match call.arguments() {
            Ok(arguments) => arguments,
            Err(error) => return Err(error).into(),
        };
        if ms.is_nan() {
            return thrown("TypeError", "delay takes a number of milliseconds").into();
        }
        let delay = Duration::from_secs_f64(ms.clamp(0.0, MAX_DELAY.as_secs_f64() * 1e3) / 1e3);
        NativeAnswer::later(async move {
            tokio::time::sleep(delay).await;
            Ok(Value::undefined())
        })
    }
}
