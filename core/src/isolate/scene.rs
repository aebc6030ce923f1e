//! The place of code that is stopped.
//!
//! In: a run that must end, within its code. Out: the functions that run and their places, as the error of its result
//! has them. The interrupt handler lets the engine make the error of an interruption, because only then the engine notes
//! where the innermost function is; `backtrace` calls [`note`] while the engine makes that error, and leaves the engine.
//! The blocks for it are lent by the heap (`memory/accounting.rs`). Where they do not suffice, the run has no place.

use super::{
    engine::{
        Raw, address_of,
        frames::{self, Caller},
        is_string,
    },
    exception::{self, StackFrame, shown_name},
    marks::label_of,
    memory::escape::leave,
    state::State,
};
use crate::data::outcome::{ExecutionError, Position};

/// The most bytes of a function's name that is shown. A part of a longer one could be a part of a secret.
const LONGEST_NAME: usize = 256;

impl State {
    /// Leaves the engine, and notes the place of the code that is stopped.
    pub(super) fn stop(&self) -> ! {
        if self.scene.borrow().is_none() {
            note(self, None);
        }
        leave()
    }
}

/// Notes where the code is. `innermost`: the function that may be at a backward jump, which is no place of its own. Calls
/// no function of the engine that polls.
pub(super) fn note(state: &State, innermost: Option<Raw>) {
    let Some(layout) = frames::probe::layout() else { return };
    let callers = frames::callers(state.realm().cx, layout);
    let mut stack = Vec::new();
    for (index, caller) in callers.iter().enumerate() {
        let is_innermost = |function| address_of(function) == address_of(caller.function());
        stack.extend(frame(state, caller, index == 0 && innermost.is_some_and(is_innermost)));
    }
    let place = exception::placed(ExecutionError::default(), &stack);
    if !stack.is_empty() {
        state.scene.replace(Some(ExecutionError { stack: Some(exception::join(&stack)), ..place }));
    }
}

/// A function that runs, in the text of its author. `jumps`: it may be at a backward jump.
pub(super) fn frame(state: &State, caller: &Caller, jumps: bool) -> Option<StackFrame> {
    let cx = state.realm().cx;
    let file = cx.atom_text(caller.file()).ok()?.into_lossy();
    let file = label_of(&file);
    let linker = state.linker.try_borrow().ok()?;
    if !linker.knows(file) {
        return None;
    }
    let around = caller.around();
    let original = |(line, column)| linker.original(file, line, column);
    let before = around.before.and_then(original);
    let position = if jumps {
        let start = Position { line: 1, column: 1 };
        linker.looped(file, before.unwrap_or(start), around.after.and_then(original)).or(before)?
    } else {
        before?
    };
    let function = name(state, caller.function()).unwrap_or_else(|| "<anonymous>".to_owned());
    let file = file.to_owned();
    Some(StackFrame { function, file, position, builtin: None, corrected: true })
}

/// The name of a function.
fn name(state: &State, function: Raw) -> Option<String> {
    let cx = state.realm().cx;
    let name = cx.own_data(function, c"name").filter(|name| is_string(name.raw()))?;
    let shown = |name: &[u8]| (name.len() <= LONGEST_NAME).then(|| shown_name(name));
    cx.with_bytes(name.raw(), shown).ok().flatten().filter(|name| !name.is_empty())
}
