//! Executors and the loop behind the door: the same for every language.
//!
//! In: options, inputs and callbacks of a face. Out: calls that settle with results. `program` has the executors of
//! programs and `options` their options, `isolate` that of isolates, `live` the output that a face receives while a call goes on, and `data` inputs
//! and results as messages. `code_loop` is the loop, `questions` the questions of its runs to the face, and `parties` the
//! model and the executor that ask them.

mod code_loop;
mod data;
mod isolate;
mod live;
mod options;
mod parties;
mod program;
mod questions;

pub use self::{
    code_loop::open as open_loop, isolate::open as open_isolate, program::open as open_program,
};
