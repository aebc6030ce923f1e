//! Runs a model's JavaScript and TypeScript in an isolate.

#[cfg_attr(not(test), expect(dead_code, reason = "nothing runs code yet"))]
mod isolate;
pub mod options;
pub mod outcome;
pub mod value;

#[expect(dead_code, reason = "run is to call it")]
mod compile;
