//! Thrown values, as the host receives them.
//!
//! In: any value that sandbox code threw. Out: an [`ExecutionError`] with bounded texts and the position in the text
//! that the author wrote. The stack is the one that the engine recorded when the error was made, read through the
//! engine's own getter: code cannot forge it by writing to `stack`. Keeps the contract's part on errors.

use std::ffi::CStr;

use super::{
    crossing::clone_out::{Crossing, clone_out, error_class},
    engine::{
        Cx, Local, Raw, Thrown, address_of, frames, is_error, is_object, is_proxy, is_string, sys,
        tag_of,
    },
    marks::{self, Site},
    stack_text,
    state::State,
};
use crate::{
    data::{
        inspect::inspect,
        outcome::{ExecutionError, Position},
        text::{MESSAGE_LIMIT, STACK_LIMIT, bounded},
    },
    modules::program::{
        self, RegularExpression,
        call_site::{Call, Called},
    },
};

/// Bytes shown of a thrown object.
const SHOWN_OBJECT: usize = 500;

/// The message of an error of `Promise.any`.
pub(super) const ALL_REJECTED: &str = "All promises were rejected";

/// Describes the exception that ended a run.
pub(super) fn execution_error(state: &State, thrown: Raw) -> ExecutionError {
    let (name, message) = name_and_message(state, thrown);
    let error = ExecutionError {
        name: bounded(name, MESSAGE_LIMIT),
        message: bounded(message, MESSAGE_LIMIT),
        cause: state.cause_of(thrown),
        ..ExecutionError::default()
    };
    if !is_error(thrown) {
        let stack = state.stack_of_throw(thrown);
        return placed(error, &stack.map(|stack| frames_of(state, &stack)).unwrap_or_default());
    }
    let placed = placed(error, &call_sites(state, thrown));
    let head = stack_text::head(&placed.name, &placed.message);
    let stack = placed.stack.clone().unwrap_or(head);
    ExecutionError { stack: Some(stack_text::with_causes(state, thrown, stack)), ..placed }
}

/// The error with a stack, and with the place of its innermost frame.
pub(super) fn placed(error: ExecutionError, stack: &[StackFrame]) -> ExecutionError {
    let Some(first) = stack.first() else { return error };
    let head = stack_text::head(&error.name, &error.message);
    ExecutionError {
        filename: Some(program::shown(&first.file).to_owned()),
        line: Some(first.position.line),
        column: Some(first.position.column),
        stack: Some(bounded(stack_text::with_frames(head, stack), STACK_LIMIT)),
        ..error
    }
}

/// The frames of an error, each at the call in progress. The engine puts a call at its arguments if they name anything;
/// this corrects it. Each text is read once.
fn call_sites(state: &State, error: Raw) -> Vec<StackFrame> {
    let mut frames = frames(state, error);
    let calls = calls(state, error, &frames);
    let mut files: Vec<String> =
        calls.iter().map(|(index, _)| frames[*index].file.clone()).collect();
    files.sort_unstable();
    files.dedup();
    let (_, room_bytes) = state.held_and_room_bytes();
    for file in files {
        let here = calls.iter().filter(|(index, _)| frames[*index].file == file);
        let (indices, here): (Vec<usize>, Vec<Call>) = here.cloned().unzip();
        let places = state.linker.borrow().calls(&file, &here, room_bytes);
        for (index, place) in indices.into_iter().zip(places) {
            frames[index].position = place.unwrap_or(frames[index].position);
        }
    }
    frames
}

/// The frames whose places are not yet those of their calls, by their index.
fn calls(state: &State, error: Raw, frames: &[StackFrame]) -> Vec<(usize, Call)> {
    /// The engine's message about a call that it could not make.
    const NO_FUNCTION: &str = "not a function";
    let message = state.realm().cx.data(error, c"message").filter(|text| is_string(text.raw()));
    let no_function = message
        .is_some_and(|message| state.excerpt(message.raw(), 2 * NO_FUNCTION.len()) == NO_FUNCTION);
    let mut calls = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        let inner = index.checked_sub(1).map(|inner| frames[inner].function.as_str());
        let called = match (&frame.builtin, inner) {
            (Some(builtin), _) => Called::Function(builtin.clone()),
            // No call runs an accessor.
            (None, Some(inner)) if inner.starts_with("get ") || inner.starts_with("set ") => {
                continue;
            }
            (None, Some(inner)) => Called::Function(inner.to_owned()),
            (None, None) if no_function => Called::Unknown,
            // The innermost frame is the place where the error was made: by `new`, or by the engine.
            (None, None) => Called::Class(error_class(state, error).name().to_owned()),
        };
        if !frame.corrected {
            calls.push((index, Call { place: frame.position, called }));
        }
    }
    calls
}

/// The stack of an error that crosses: its name and its message, its frames, and its causes.
pub(super) fn stack_of(state: &State, error: Raw, name: &str, message: &str) -> String {
    let head = stack_text::head(name, message);
    let text = stack_text::with_frames(head, &frames(state, error));
    stack_text::with_causes(state, error, text)
}

/// `Name: message` of an error, the text of any other value. Runs no code of the sandbox: nobody waits for that any
/// more.
pub(super) fn headline(state: &State, thrown: Raw) -> String {
    let (name, message) = described(state, thrown, |key| state.realm().cx.data(thrown, key));
    let text = match (is_error(thrown), message.as_str()) {
        (true, "") => name,
        (true, _) => format!("{name}: {message}"),
        (false, _) => message,
    };
    bounded(text, MESSAGE_LIMIT)
}

/// The engine's parse error, which belongs to the compiler's realm.
pub(super) fn compile_error(
    state: &State,
    compiler: Cx,
    thrown: Raw,
    file: &str,
) -> ExecutionError {
    let cx = state.realm().cx;
    let read = |key| compiler.get_str(thrown, key).ok().filter(|text| is_string(text.raw()));
    let message = read(c"message").map(|message| state.excerpt(message.raw(), MESSAGE_LIMIT));
    // The parser's own frame is the first.
    let position = read(c"stack").and_then(|stack| {
        let place =
            |text: &[u8]| marks::sites(text, |_| true).next().map(|site| (site.line, site.column));
        cx.with_bytes(stack.raw(), place).ok().flatten()
    });
    let position = position
        .map(|(line, column)| original(state, file, line, column))
        .or_else(|| refused_expression(state, file));
    ExecutionError {
        name: "SyntaxError".to_owned(),
        message: message.unwrap_or_default(),
        filename: Some(program::shown(file).to_owned()),
        line: position.map(|position| position.line),
        column: position.map(|position| position.column),
        ..ExecutionError::default()
    }
}

/// The place of the first regular expression that the engine refuses; the engine does not report it.
fn refused_expression(state: &State, file: &str) -> Option<Position> {
    let realm = state.realm();
    let refuses = |expression: &RegularExpression| {
        let made = realm.cx.string(&expression.pattern).and_then(|pattern| {
            let flags = realm.cx.string(&expression.flags)?;
            realm.cx.construct(realm.intrinsics.regexp, &[pattern.raw(), flags.raw()])
        });
        made.map_err(|Thrown| drop(realm.cx.exception())).is_err()
    };
    let expressions = state.linker.borrow().regular_expressions(file);
    expressions.iter().find(|expression| refuses(expression)).map(|found| found.position)
}

/// One frame of a stack, as the host receives it.
pub(super) struct StackFrame {
    pub(super) function: String,
    pub(super) file: String,
    pub(super) position: Position,
    /// The builtin that it called, if it was calling one.
    pub(super) builtin: Option<String>,
    /// Whether the position is that of the expression already.
    pub(super) corrected: bool,
}

/// The frames of an error, innermost first.
pub(super) fn frames(state: &State, error: Raw) -> Vec<StackFrame> {
    let cx = state.realm().cx;
    let stack = cx.call(state.realm().intrinsics.error_stack, error, &[]);
    let frames = stack.and_then(|stack| {
        if !is_string(stack.raw()) {
            return Ok(Vec::new());
        }
        cx.with_bytes(stack.raw(), |text| frames_of(state, text))
    });
    frames.unwrap_or_else(|Thrown| {
        drop(cx.exception());
        Vec::new()
    })
}

fn frames_of(state: &State, text: &[u8]) -> Vec<StackFrame> {
    let is_file = |file: &str| state.linker.borrow().knows(file);
    marks::sites(text, is_file).map(|site| frame(state, &site)).collect()
}

fn frame(state: &State, site: &Site<'_>) -> StackFrame {
    StackFrame {
        function: shown_name(site.function),
        file: site.file.to_owned(),
        position: if site.corrected {
            Position { line: site.line, column: site.column }
        } else {
            original(state, site.file, site.line, site.column)
        },
        builtin: site.builtin.map(shown_name),
        corrected: site.corrected,
    }
}

/// A function's name on one line, cut to the most that a message may have.
pub(super) fn shown_name(name: &[u8]) -> String {
    let beginning = name.get(..=MESSAGE_LIMIT).unwrap_or(name);
    let mut shown = String::new();
    for char in String::from_utf8_lossy(beginning).chars() {
        if char.is_control() || matches!(char, '\u{2028}' | '\u{2029}') {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    bounded(shown, MESSAGE_LIMIT)
}

fn original(state: &State, file: &str, line: u32, column: u32) -> Position {
    let found = state.linker.borrow().original(file, line, column);
    found.unwrap_or(Position { line, column })
}

/// Frames as text, one a line.
pub(super) fn join(frames: &[StackFrame]) -> String {
    let lines: Vec<String> = frames
        .iter()
        .map(|StackFrame { function, file, position: Position { line, column }, .. }| {
            let file = program::shown(file);
            format!("    at {function} ({file}:{line}:{column})")
        })
        .collect();
    bounded(lines.join("\n"), STACK_LIMIT)
}

fn name_and_message(state: &State, thrown: Raw) -> (String, String) {
    let read = |key: &CStr| match state.realm().cx.inherited(thrown, key) {
        Ok(value) => Some(value),
        Err(Thrown) => {
            drop(state.realm().cx.exception());
            None
        }
    };
    described(state, thrown, read)
}

/// Name and message of a thrown value, read through `read`.
fn described(
    state: &State,
    thrown: Raw,
    read: impl Fn(&CStr) -> Option<Local>,
) -> (String, String) {
    let plain = || "Error".to_owned();
    if is_proxy(thrown) || !is_object(thrown) {
        return (plain(), primitive(state, thrown));
    }
    let read = |key| {
        let text = read(key).filter(|value| is_string(value.raw()));
        text.map(|text| state.excerpt(text.raw(), MESSAGE_LIMIT))
    };
    let message = if is_of_promise_any(state, thrown) {
        Some(ALL_REJECTED.to_owned())
    } else {
        read(c"message")
    };
    if is_error(thrown) || message.is_some() {
        return (read(c"name").unwrap_or_else(plain), message.unwrap_or_default());
    }
    (plain(), shown(state, thrown))
}

/// Whether an error is one that `Promise.any` made and nobody threw yet. The engine gives it neither a message nor a
/// stack; an error that code makes has a stack.
pub(super) fn is_of_promise_any(state: &State, error: Raw) -> bool {
    let realm = state.realm();
    let made_by_engine = is_error(error)
        && frames::probe::layout().is_some_and(|layout| !frames::has_stack(layout, error));
    if !made_by_engine {
        return false;
    }
    let key = realm.cx.atom("message");
    let own = key.and_then(|key| realm.cx.own_property(error, key.id));
    let found = own.and_then(|own| Ok((own.is_none(), realm.cx.prototype(error)?)));
    match found {
        Ok((unsaid, prototype)) => {
            let expected = address_of(realm.intrinsics.aggregate_error_prototype);
            unsaid && is_object(prototype.raw()) && address_of(prototype.raw()) == expected
        }
        Err(Thrown) => {
            drop(realm.cx.exception());
            false
        }
    }
}

fn primitive(state: &State, thrown: Raw) -> String {
    let cx = state.realm().cx;
    match tag_of(thrown) {
        sys::JS_TAG_SYMBOL => state.symbol_text(thrown),
        sys::JS_TAG_OBJECT => "[Proxy]".to_owned(),
        _ if is_string(thrown) => state.excerpt(thrown, MESSAGE_LIMIT),
        _ => match cx.to_string(thrown) {
            Ok(text) => state.excerpt(text.raw(), MESSAGE_LIMIT),
            Err(Thrown) => {
                drop(cx.exception());
                String::new()
            }
        },
    }
}

fn shown(state: &State, thrown: Raw) -> String {
    match clone_out(state, thrown, Crossing::Shown, "thrown") {
        Ok(value) => {
            state.discharge(value.held_bytes());
            inspect(&value, SHOWN_OBJECT)
        }
        Err(_) => {
            drop(state.realm().cx.exception());
            "[object Object]".to_owned()
        }
    }
}
