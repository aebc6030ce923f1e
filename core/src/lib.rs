//! Runs a model's JavaScript and TypeScript in an isolate.

pub mod options;
pub mod outcome;
pub mod value;

#[cfg_attr(not(test), expect(dead_code, reason = "run is to call it"))]
mod compile;
#[cfg_attr(not(test), expect(dead_code, reason = "run is to call it"))]
mod link;
