//! Runs a model's JavaScript and TypeScript in an isolate.

pub mod options;
pub mod outcome;
pub mod value;
