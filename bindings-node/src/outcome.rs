//! Outcomes of runs, as `lib/run/outcome.ts` reads them.
//!
//! In: an outcome. Out: a frame with the outcome and the first part of its reports and logs; then the other parts.
//! JavaScript reads a part in a short time.

use std::vec;

use isolane::{
    Cause, CellOutcome, ExecutionError, ExecutionLog, ExecutionResult, ValueFrom, value::Value,
};

use crate::{
    error::NativeCause,
    value::Frame,
    wire::{cause_kind, cell_outcome_flag, error_flag, outcome_flag},
};

/// Bytes of reports and logs at which a part ends.
const PART_BYTES: usize = 64 * 1024;

/// The reports and logs of a settled run that JavaScript has not fetched yet.
#[derive(Debug)]
pub(crate) struct Output {
    reports: vec::IntoIter<Value>,
    logs: vec::IntoIter<ExecutionLog>,
}

/// Writes an outcome with the first part of its reports and logs; returns the rest of them. `extra` is the part of a
/// system.
pub(crate) fn write_outcome(
    frame: &mut Frame,
    outcome: ExecutionResult,
    extra: Option<Value>,
) -> Option<Output> {
    let (start, larges) = (frame.bytes.len(), frame.larges.len());
    frame.u8(flag(outcome.result.as_ref(), outcome_flag::RESULT)
        | flag(outcome.error.as_ref(), outcome_flag::ERROR)
        | flag(outcome.memory_used_bytes.as_ref(), outcome_flag::MEMORY_USED)
        | flag(outcome.cell.as_ref(), outcome_flag::CELL)
        | flag(extra.as_ref(), outcome_flag::EXTRA));
    frame.text(outcome.status.as_str());
    frame.f64(outcome.duration_ms);
    if let Some(bytes) = outcome.memory_used_bytes {
        #[expect(clippy::cast_precision_loss, reason = "below 2^53, as any memory is")]
        frame.f64(bytes as f64);
    }
    if let Some(error) = outcome.error {
        write_error(frame, &error);
    }
    if let Some(cell) = outcome.cell {
        write_cell(frame, &cell);
    }
    if let Some(extra) = extra {
        frame.message(extra);
    }
    if let Some(result) = outcome.result {
        frame.message(result);
    }
    let mut output =
        Output { reports: outcome.reports.into_iter(), logs: outcome.logs.into_iter() };
    let is_all = output.write_part(frame);
    if !is_all || frame.larges.len() > larges {
        frame.bytes[start] |= outcome_flag::LONG;
    }
    (!is_all).then_some(output)
}

impl Output {
    /// Writes some more reports, then logs, each list with its count, and whether another part follows.
    /// Returns whether this was the last part.
    pub(crate) fn write_part(&mut self, frame: &mut Frame) -> bool {
        let end = frame.bytes.len() + PART_BYTES;
        counted(frame, end, &mut self.reports, Frame::message);
        counted(frame, end, &mut self.logs, |frame, ExecutionLog { level, args, timestamp }| {
            frame.text(level.as_str());
            frame.f64(timestamp);
            frame.message(args);
        });
        let is_all = self.reports.len() == 0 && self.logs.len() == 0;
        frame.u8(u8::from(!is_all));
        is_all
    }
}

/// Writes items until the frame reaches `end`, and writes their count in front of them.
fn counted<T>(
    frame: &mut Frame,
    end: usize,
    items: &mut vec::IntoIter<T>,
    mut write: impl FnMut(&mut Frame, T),
) {
    let place = frame.bytes.len();
    frame.u32(0);
    let mut count = 0_u32;
    while !frame.is_full(end) {
        let Some(item) = items.next() else { break };
        write(frame, item);
        count += 1;
    }
    frame.bytes[place..place + 4].copy_from_slice(&count.to_le_bytes());
}

/// Writes the part of a cell's outcome that a run does not have.
fn write_cell(frame: &mut Frame, cell: &CellOutcome) {
    let value_from = cell.value_from.map(ValueFrom::as_str);
    frame.u8(flag(cell.text.as_ref(), cell_outcome_flag::TEXT)
        | flag(cell.uncloned.as_ref(), cell_outcome_flag::UNCLONED)
        | flag(value_from.as_ref(), cell_outcome_flag::VALUE_FROM));
    frame.text(cell.session.as_str());
    for text in [cell.text.as_deref(), cell.uncloned.as_deref(), value_from].into_iter().flatten() {
        frame.text(text);
    }
}

fn write_error(frame: &mut Frame, error: &ExecutionError) {
    frame.text(&error.name);
    frame.text(&error.message);
    frame.u8(flag(error.stack.as_ref(), error_flag::STACK)
        | flag(error.specifier.as_ref(), error_flag::SPECIFIER)
        | flag(error.filename.as_ref(), error_flag::FILENAME)
        | flag(error.line.as_ref(), error_flag::LINE)
        | flag(error.column.as_ref(), error_flag::COLUMN)
        | flag(error.cause.as_ref(), error_flag::CAUSE));
    for text in [&error.stack, &error.specifier, &error.filename].into_iter().flatten() {
        frame.text(text);
    }
    for number in [error.line, error.column].into_iter().flatten() {
        frame.u32(number);
    }
    if let Some(cause) = &error.cause {
        write_cause(frame, cause);
    }
}

/// Writes JavaScript's number of a throw, or the text of a Rust error and the number of a system error.
fn write_cause(frame: &mut Frame, cause: &Cause) {
    match cause {
        #[expect(clippy::cast_precision_loss, reason = "no run makes 2^53 calls")]
        Cause::Call(number) => {
            frame.u8(cause_kind::CALL);
            frame.f64(*number as f64);
        }
        Cause::Promise(number) => {
            frame.u8(cause_kind::PROMISE);
            frame.f64(f64::from(*number));
        }
        other => {
            let NativeCause { message, number } =
                other.error().map_or_else(NativeCause::default, NativeCause::of);
            frame.u8(cause_kind::SYSTEM);
            frame.f64(f64::from(number));
            frame.text(&message);
        }
    }
}

fn flag<T>(value: Option<&T>, flag: u8) -> u8 {
    if value.is_some() { flag } else { 0 }
}
