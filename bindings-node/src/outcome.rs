//! What a run came to, as `lib/outcome.ts` reads it.

use isolane::{ExecutionError, ExecutionLog, ExecutionResult};

use crate::value::Frame;

const RESULT: u8 = 1;
const ERROR: u8 = 2;
const MEMORY_USED: u8 = 4;

const STACK: u8 = 1;
const SPECIFIER: u8 = 2;
const FILENAME: u8 = 4;
const LINE: u8 = 8;
const COLUMN: u8 = 16;

/// Writes an outcome without the first `delivered` reports, which JavaScript has already.
pub(crate) fn write_outcome(frame: &mut Frame, outcome: ExecutionResult, delivered: usize) {
    frame.u8(flag(outcome.result.as_ref(), RESULT)
        | flag(outcome.error.as_ref(), ERROR)
        | flag(outcome.memory_used_bytes.as_ref(), MEMORY_USED));
    frame.text(outcome.status.as_str());
    frame.f64(outcome.duration_ms);
    if let Some(bytes) = outcome.memory_used_bytes {
        #[expect(clippy::cast_precision_loss, reason = "below 2^53, as any memory is")]
        frame.f64(bytes as f64);
    }
    if let Some(result) = outcome.result {
        frame.message(result);
    }
    let delivered = delivered.min(outcome.reports.len());
    frame.count(delivered);
    frame.count(outcome.reports.len() - delivered);
    for report in outcome.reports.into_iter().skip(delivered) {
        frame.message(report);
    }
    frame.count(outcome.logs.len());
    for ExecutionLog { level, args, timestamp } in outcome.logs {
        frame.text(level.as_str());
        frame.f64(timestamp);
        frame.message(args);
    }
    if let Some(error) = outcome.error {
        write_error(frame, &error);
    }
}

fn write_error(frame: &mut Frame, error: &ExecutionError) {
    frame.text(&error.name);
    frame.text(&error.message);
    frame.u8(flag(error.stack.as_ref(), STACK)
        | flag(error.specifier.as_ref(), SPECIFIER)
        | flag(error.filename.as_ref(), FILENAME)
        | flag(error.line.as_ref(), LINE)
        | flag(error.column.as_ref(), COLUMN));
    for text in [&error.stack, &error.specifier, &error.filename].into_iter().flatten() {
        frame.text(text);
    }
    for number in [error.line, error.column].into_iter().flatten() {
        frame.u32(number);
    }
}

fn flag<T>(value: Option<&T>, flag: u8) -> u8 {
    if value.is_some() { flag } else { 0 }
}
