//! The place at which a run waits.
//!
//! In: a run that nothing can resume. Out: the error of its result, with the functions that wait at an `await`, the last
//! one called first. In: a run that is ended while it waits for its host. Out: the functions that wait for its last call,
//! without a look at any other value, so that it takes no longer in a larger heap.

use super::{
    engine::{
        Raw,
        frames::{self, Around, Place},
        reactions, sys,
    },
    exception::{self, StackFrame},
    explain,
    marks::label_of,
    scene,
    state::State,
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
    let waiting = suspended
        .iter()
        .rev()
        .filter_map(|frame| waiting(state, frame.function(), frame.file(), frame.around()));
    let mut waiting: Vec<Waiting> = waiting.take(MOST_FRAMES).collect();
    place(state, &mut waiting);
    let mut stack: Vec<StackFrame> = waiting.into_iter().map(|waiting| waiting.frame).collect();
    if stack.is_empty() {
        stack.extend(only_await(state));
    }
    exception::placed(without_place(), &stack)
}

/// The longest text in which places are found on a thread of the host: to count its lines takes some 0.1 ms.
const MOST_ON_HOST: usize = 32 << 10;

/// The most calls without an answer that are looked at, which takes some 20 µs.
const MOST_CALLS: usize = 4 << 10;

/// The place of a run that waits for its host: of the last call without an answer for which code of that cell waits, the
/// functions that wait, and where none does, the call. The file, the line and the column, and as its stack the frames
/// alone. `on_host`: a thread of the host calls, which must not wait. A text can be such that the parser takes a second for
/// it, so none is read then: the column is that of the last name that the engine noted in the expression.
pub(super) fn at_host(state: &State, cell: u32, on_host: bool) -> Option<ExecutionError> {
    let layout = reactions::layout()?;
    if on_host && longest_text(state)? > MOST_ON_HOST {
        return None;
    }
    let promises = state.host_promises.try_borrow().ok()?;
    let calls = promises
        .values()
        .take(MOST_CALLS)
        .filter(|known| known.cell == cell)
        .filter_map(|known| Some((known.promise.raw(), known.call.as_ref()?)));
    let (promise, call) =
        calls.max_by_key(|(promise, call)| (reactions::is_handled(layout, *promise), call.made))?;
    let waiting = reactions::waiting(state.realm().cx, layout, promise);
    let waiting = waiting.iter().filter(|caller| !caller.is_trusted()).filter_map(|caller| {
        self::waiting(state, caller.function(), caller.file(), caller.around())
    });
    let mut waiting: Vec<Waiting> = waiting.take(MOST_FRAMES).collect();
    if !on_host {
        place(state, &mut waiting);
    }
    let mut stack: Vec<StackFrame> = waiting.into_iter().map(|waiting| waiting.frame).collect();
    if stack.is_empty() {
        stack.extend(call.callers().iter().filter_map(|caller| scene::frame(state, caller, false)));
    }
    let place = exception::placed(ExecutionError::default(), &stack);
    place.line.is_some().then(|| ExecutionError { stack: Some(exception::join(&stack)), ..place })
}

/// A function that waits, at the place that the engine noted last.
struct Waiting {
    frame: StackFrame,
    question: Question,
}

fn waiting(state: &State, function: Raw, file: sys::JSAtom, around: Around) -> Option<Waiting> {
    let cx = state.realm().cx;
    let file = cx.atom_text(file).ok()?.into_lossy();
    let file = label_of(&file);
    let linker = state.linker.try_borrow().ok()?;
    if !linker.knows(file) {
        return None;
    }
    let original = |(line, column): Place| linker.original(file, line, column);
    let before = around.before.and_then(original)?;
    let question = Question {
        failure: Failure::Wait,
        function: around.function.and_then(original),
        before,
        after: around.after.and_then(original),
    };
    let function = match state.function_name(function) {
        name if name.is_empty() => "<anonymous>".to_owned(),
        name => name,
    };
    let file = file.to_owned();
    let frame = StackFrame { function, file, position: before, builtin: None, corrected: true };
    Some(Waiting { frame, question })
}

/// The bytes of the longest text of the run.
fn longest_text(state: &State) -> Option<usize> {
    let linker = state.linker.try_borrow().ok()?;
    let texts = linker.files().filter_map(|file| linker.compiled(file));
    texts.map(|module| module.text().len()).max()
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
