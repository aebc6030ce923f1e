//! Events of a run of the loop, in the order in which they happen.
//!
//! In JSON each has a `type`, and its names are in camel case.

use serde::Serialize;

use super::Reason;
use crate::{CodeExecutionResult, Outcome};

/// The stream that an output is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
}

/// An event of a run. Turns count from 1; programs from 0 in each turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum LoopEvent {
    /// The model is about to be asked.
    Turn {
        /// The turn.
        turn: u32,
    },
    /// The model said something, as it comes. Thoughts are not said.
    Text {
        /// The turn.
        turn: u32,
        /// The text.
        text: String,
    },
    /// A program is about to run.
    Code {
        /// The turn.
        turn: u32,
        /// The program.
        index: usize,
        /// Its language in lower case, or an empty text.
        language: String,
        /// Its source.
        code: String,
    },
    /// A program printed something, as it comes.
    Output {
        /// The turn.
        turn: u32,
        /// The program.
        index: usize,
        /// The stream.
        stream: OutputStream,
        /// The text.
        text: String,
    },
    /// An attempt failed, and another one follows.
    Retry {
        /// The turn.
        turn: u32,
        /// The program.
        index: usize,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// The message of its error.
        error: String,
    },
    /// A program is done.
    Result {
        /// The turn.
        turn: u32,
        /// The program.
        index: usize,
        /// The outcome.
        outcome: Outcome,
        /// The output as the model is shown it.
        output: String,
        /// The whole result. If the program did not start, its `stderr` is the message of the error, which may name files
        /// of the host, and which the model is not shown.
        result: CodeExecutionResult,
        /// How many attempts there were.
        attempts: u32,
        /// The milliseconds that they took together.
        duration_ms: f64,
    },
    /// The run is over.
    Finish {
        /// The last turn.
        turn: u32,
        /// Why.
        reason: Reason,
        /// The text of the last turn.
        text: String,
    },
}
