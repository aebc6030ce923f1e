//! The place at which a stalled run waits.
//!
//! In: a run that nothing can resume. Out: the error of its result, with the functions that wait at an `await`, the last
//! one called first.

use super::{
    State,
    backtrace::label_of,
    engine::frames::{self, Frame, Place},
    exception::{self, StackFrame},
};
use crate::{
    data::outcome::{ExecutionError, Position},
    modules::program::explain::{Failure, Question},
};

/// The functions that the stack names.
const MOST_FRAMES: usize = 10;

const MESSAGE: &str = "the run is stalled: it waits for a promise that nothing can settle";

/// The error of a run whose place is not known.
pub(crate) fn without_place() -> ExecutionError {
    ExecutionError {
        name: "SafetyCap".to_owned(),
        message: MESSAGE.to_owned(),
        ..ExecutionError::default()
    }
}

/// The error of this run.
pub(super) fn error(state: &State) -> ExecutionError {
    let Some(layout) = frames::probe::layout() else { return without_place() };
    let waiting = frames::suspended(state.realm().cx, layout);
    let mut stack: Vec<StackFrame> =
        waiting.iter().rev().filter_map(|frame| waits_at(state, frame)).take(MOST_FRAMES).collect();
    if stack.is_empty() {
        stack.extend(only_await(state));
    }
    exception::placed(without_place(), &stack)
}

/// The only `await` of the entry. Nothing refers to a promise that nobody keeps, so the engine frees it, and the function
/// that waits for it.
fn only_await(state: &State) -> Option<StackFrame> {
    let linker = state.linker.try_borrow().ok()?;
    let file = linker.entry();
    let question = Question {
        failure: Failure::Wait,
        function: None,
        before: Position { line: 1, column: 1 },
        after: None,
    };
    let (_, room_bytes) = state.held_and_room_bytes();
    let (candidates, _) = linker.candidates(file, &question, room_bytes);
    let [only] = candidates.as_slice() else { return None };
    Some(StackFrame {
        function: "<anonymous>".to_owned(),
        file: file.to_owned(),
        position: only.position,
        corrected: true,
    })
}

/// The `await` of a function.
fn waits_at(state: &State, frame: &Frame) -> Option<StackFrame> {
    let cx = state.realm().cx;
    let file = cx.atom_text(frame.file()).ok()?.into_lossy();
    let file = label_of(&file);
    let linker = state.linker.try_borrow().ok()?;
    if !linker.knows(file) {
        return None;
    }
    let original = |(line, column): Place| linker.original(file, line, column);
    let around = frame.around();
    let before = around.before.and_then(original)?;
    let question = Question {
        failure: Failure::Wait,
        function: around.function.and_then(original),
        before,
        after: around.after.and_then(original),
    };
    let (_, room_bytes) = state.held_and_room_bytes();
    let (candidates, _) = linker.candidates(file, &question, room_bytes);
    let position: Position = candidates.first().map_or(before, |candidate| candidate.position);
    let function = match state.function_name(frame.function()) {
        name if name.is_empty() => "<anonymous>".to_owned(),
        name => name,
    };
    Some(StackFrame { function, file: file.to_owned(), position, corrected: true })
}
