//! The place at which a stalled run waits.
//!
//! In: a run that nothing can resume. Out: the error of its result, with the functions that wait at an `await`, the last
//! one called first.

use super::{
    State,
    backtrace::label_of,
    engine::frames::{self, Frame, Place},
    exception::{self, StackFrame},
    explain,
};
use crate::{
    data::outcome::{ExecutionError, Position},
    modules::program::explain::{Failure, Question},
};

/// The functions that the stack names.
const MOST_FRAMES: usize = 10;

/// The message of a run that was ended because nothing can resume it.
pub const STALLED: &str = "the run is stalled: it waits for a promise that nothing can settle";

/// The error of a run whose place is not known.
pub(crate) fn without_place() -> ExecutionError {
    ExecutionError {
        name: "SafetyCap".to_owned(),
        message: STALLED.to_owned(),
        ..ExecutionError::default()
    }
}

/// The error of this run.
pub(super) fn error(state: &State) -> ExecutionError {
    let Some(layout) = frames::probe::layout() else { return without_place() };
    let suspended = frames::suspended(state.realm().cx, layout);
    let waiting = suspended.iter().rev().filter_map(|frame| waiting(state, frame));
    let mut waiting: Vec<Waiting> = waiting.take(MOST_FRAMES).collect();
    place(state, &mut waiting);
    let mut stack: Vec<StackFrame> = waiting.into_iter().map(|waiting| waiting.frame).collect();
    if stack.is_empty() {
        stack.extend(only_await(state));
    }
    exception::placed(without_place(), &stack)
}

/// A function that waits, at the place that the engine noted last.
struct Waiting {
    frame: StackFrame,
    question: Question,
}

fn waiting(state: &State, frame: &Frame) -> Option<Waiting> {
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
    let function = match state.function_name(frame.function()) {
        name if name.is_empty() => "<anonymous>".to_owned(),
        name => name,
    };
    let file = file.to_owned();
    let frame = StackFrame { function, file, position: before, builtin: None, corrected: true };
    Some(Waiting { frame, question })
}

/// Puts each function at its `await`. Each text is read once.
fn place(state: &State, waiting: &mut [Waiting]) {
    let mut files: Vec<String> = waiting.iter().map(|waiting| waiting.frame.file.clone()).collect();
    files.sort_unstable();
    files.dedup();
    for file in files {
        let here = || waiting.iter().filter(|waiting| waiting.frame.file == file);
        let questions: Vec<Question> = here().map(|waiting| waiting.question.clone()).collect();
        let answers = explain::read_again(state, &file, &questions).unwrap_or_default();
        let here = waiting.iter_mut().filter(|waiting| waiting.frame.file == file);
        for (waiting, candidates) in here.zip(answers) {
            if let Some(candidate) = candidates.first() {
                waiting.frame.position = candidate.position;
            }
        }
    }
}

/// The only `await` of all modules that is in no function. Nothing refers to a promise that nobody keeps, so the engine
/// frees it, and the function that waits for it.
fn only_await(state: &State) -> Option<StackFrame> {
    let files = state.linker.try_borrow().ok()?.awaiting();
    let start = Position { line: 1, column: 1 };
    let question =
        Question { failure: Failure::Wait, function: Some(start), before: start, after: None };
    let mut found = Vec::new();
    for file in files {
        let candidates =
            explain::read_again(state, &file, std::slice::from_ref(&question))?.pop()?;
        found.extend(candidates.into_iter().map(|candidate| (file.clone(), candidate.position)));
    }
    let [(file, position)] = found.as_slice() else { return None };
    Some(StackFrame {
        function: "<anonymous>".to_owned(),
        file: file.clone(),
        position: *position,
        builtin: None,
        corrected: true,
    })
}
