//! The messages of errors that the engine makes.
//!
//! In: an error that the engine is making, and its call sites. Out: a message that names the expression, its value and
//! what there is instead, and the place of the expression. [`Linker::candidates`] knows the expressions at the place;
//! [`values`] has the values of the variables, so that a candidate whose value is in order is left out. Runs no code of the
//! sandbox: it reads no getter and asks no Proxy.
//!
//! [`Linker::candidates`]: crate::modules::program::Linker::candidates

pub(super) mod explained;
mod recursion;
mod remedies;
mod values;
mod wording;

use super::{
    engine::{
        Raw,
        frames::{self, CallSite, Layout, Stack},
        is_error, is_string, sys,
    },
    exception,
    marks::label_of,
    state::State,
};
use crate::{
    data::{
        outcome::Position,
        text::{MESSAGE_LIMIT, bounded},
    },
    modules::program::explain::{Act, Candidate, Failure, LONGEST, Question},
};

/// The engine cuts its own messages at this length.
const ENGINE_MESSAGE: usize = 256;

/// The bytes of text that a run may have read again for its errors. Errors beyond them keep the engine's message.
const MOST_READ_BYTES: usize = 4 << 20;

/// The correction of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Correction {
    /// The index of the call site that failed. The sites before it that are no builtins are left out.
    pub(super) site: usize,
    pub(super) position: Position,
}

/// Gives an error of the engine its message, and returns the place that it is about.
pub(super) fn explain(
    state: &State,
    layout: Layout,
    error: Raw,
    stack: Stack,
    sites: &[CallSite<'_>],
) -> Option<Correction> {
    let cx = state.realm().cx;
    let innermost = sites.first()?;
    // Code of the sandbox chooses the messages of the errors that it makes.
    if stack.in_constructor || !is_error(error) || frames::has_stack(layout, error) {
        return None;
    }
    let rejected = exception::is_of_promise_any(state, error);
    if rejected {
        set_message(state, error, exception::ALL_REJECTED.to_owned());
    }
    let recursion = recursion::told(state, error, sites);
    let is_recursion = recursion.is_some();
    if let Some(text) = recursion {
        set_message(state, error, text);
    }
    let message = cx.own_data(error, c"message").filter(|message| is_string(message.raw()));
    let message = message.filter(|_| !is_recursion);
    let message = message.map(|message| state.excerpt(message.raw(), ENGINE_MESSAGE));
    let message = message.unwrap_or_default();
    let builtin = innermost.native().then(|| name(state, innermost));
    let in_builtin = builtin.is_some();
    let failure = if rejected { Failure::Wait } else { failure(&message, builtin)? };
    // The class or builtin, and builtins that called it, are not the place of the mistake.
    let callees = in_builtin || failure == Failure::ClassCall;
    let skipped = usize::from(callees);
    let index = skipped + sites.iter().skip(skipped).position(|site| !site.native())?;
    let site = sites.get(index)?;
    // The class, and the builtin that called it if one did.
    let called = callees.then(|| sites.iter().take(index).map(CallSite::function).collect());
    let given = if in_builtin && index == 1 {
        stack.given(cx, innermost, state.realm().intrinsics.date_get_time)
    } else {
        [None, None]
    };
    let called: Vec<Raw> = called.unwrap_or_default();
    let class = match failure {
        Failure::ClassCall => name(state, innermost),
        _ => String::new(),
    };
    let file = cx.text(site.file()).ok()?.into_lossy();
    let file = label_of(&file);
    let frame = stack.frame(index, site)?;
    let linker = state.linker.try_borrow().ok()?;
    let original = |(line, column)| linker.original(file, line, column);
    let around = frame.around();
    // The engine has no places for the function that makes the fields of a class.
    let start = Position { line: 1, column: 1 };
    let before = around.before.map_or(Some(start), original)?;
    let question = Question {
        failure,
        function: around.function.and_then(original),
        before,
        after: around.after.and_then(original),
    };
    drop(linker);
    let candidates = candidates(state, file, &question)?;
    let values = values::Values { state, layout, frame: &frame, class, called, given };
    let (text, position) = wording::word(&values, &question.failure, &message, &candidates)?;
    if let Some(text) = text.filter(|_| !is_recursion) {
        set_message(state, error, text);
    }
    Some(Correction { site: index, position })
}

/// The place of the only `import()` in a file that may have asked for this specifier. With `written`, only an `import()`
/// counts in which the specifier stands.
pub(super) fn place_of_import(
    state: &State,
    file: &str,
    specifier: &str,
    written: bool,
) -> Option<Position> {
    let question = Question {
        failure: Failure::Import(specifier.to_owned()),
        function: None,
        before: Position { line: 1, column: 1 },
        after: None,
    };
    let candidates = candidates(state, file, &question)?;
    let of = |wanted| {
        let written = candidates.iter().map(|candidate| (&candidate.act, candidate.position));
        let mut found = written.filter(|(act, _)| **act == Act::Import { written: wanted });
        (found.next().map(|(_, position)| position), found.next().is_none())
    };
    match (of(true), of(false)) {
        ((Some(position), true), _) => Some(position),
        ((None, _), (Some(position), true)) if !written => Some(position),
        _ => None,
    }
}

fn set_message(state: &State, error: Raw, text: String) {
    let cx = state.realm().cx;
    let hidden = sys::JS_PROP_WRITABLE | sys::JS_PROP_CONFIGURABLE;
    let text = cx.string(&bounded(text, MESSAGE_LIMIT));
    if text.and_then(|text| cx.define_str(error, "message", text, hidden)).is_err() {
        drop(cx.exception());
    }
}

/// The name of a builtin.
fn name(state: &State, site: &CallSite<'_>) -> String {
    const LONGEST: usize = 64;
    if is_string(site.name()) { state.excerpt(site.name(), LONGEST) } else { String::new() }
}

fn candidates(state: &State, file: &str, question: &Question) -> Option<Vec<Candidate>> {
    if let Some((last_file, last, candidates)) = &state.explained.try_borrow().ok()?.last
        && last_file == file
        && last == question
    {
        return Some(candidates.clone());
    }
    let candidates = read_again(state, file, std::slice::from_ref(question))?.pop()?;
    let mut explained = state.explained.try_borrow_mut().ok()?;
    explained.last = Some((file.to_owned(), question.clone(), candidates.clone()));
    Some(candidates)
}

/// The candidates of several failures in one text, which is read once; `None` if the run has had its texts read often.
pub(super) fn read_again(
    state: &State,
    file: &str,
    questions: &[Question],
) -> Option<Vec<Vec<Candidate>>> {
    let mut explained = state.explained.try_borrow_mut().ok()?;
    if explained.read_bytes + LONGEST > MOST_READ_BYTES {
        return None;
    }
    let (_, room_bytes) = state.held_and_room_bytes();
    let linker = state.linker.try_borrow().ok()?;
    let (candidates, bytes) = linker.candidates(file, questions, room_bytes);
    explained.read_bytes += bytes;
    Some(candidates)
}

/// The failure that a message of the engine tells. `builtin` is the name of the builtin that made the error.
fn failure(message: &str, builtin: Option<String>) -> Option<Failure> {
    const CONVERSIONS: [&str; 3] =
        ["cannot convert symbol to string", "cannot convert symbol to number", "toPrimitive"];
    match builtin {
        // Template literals call it.
        Some(name) if name == "concat" && CONVERSIONS.contains(&message) => {
            return Some(Failure::Convert);
        }
        Some(name) => return Some(Failure::Builtin(name)),
        None => {}
    }
    let between = |before: &str, after: &str| {
        let name = message.strip_prefix(before)?.strip_suffix(after)?;
        Some(name.to_owned())
    };
    let of = |verb: &str| {
        let start = format!("cannot {verb} property '");
        between(&start, "' of undefined").or_else(|| between(&start, "' of null"))
    };
    Some(match message {
        // Errors of this crate have no message yet; on a full stack none can be read.
        "" => Failure::Untold,
        "not a function" => Failure::Call,
        "not a constructor" => Failure::Construct,
        "value is not iterable" => Failure::Iterate,
        "Cannot convert undefined or null to object" => Failure::Destructure,
        "class constructors must be invoked with 'new'" => Failure::ClassCall,
        "object is not extensible" | "no setter for property" => Failure::Extend,
        "could not delete property" => Failure::Delete,
        "not an object" => Failure::Primitive,
        "cannot convert BigInt to number" => Failure::Mix,
        "parent class must be constructor" => Failure::Extends,
        "BigInt operands are forbidden for >>>" => Failure::Shift,
        "value has no property" => Failure::Change,
        "bigint argument with unary +" => Failure::Convert,
        _ if CONVERSIONS.contains(&message) => Failure::Convert,
        "invalid 'in' operand" | "invalid 'instanceof' right operand" => Failure::Relation,
        _ => {
            let name = |after| between("", after);
            if let Some(name) = of("read") {
                if name == "Symbol.iterator" { Failure::Iterate } else { Failure::Read(name) }
            } else if let Some(name) = of("set") {
                Failure::Write(name)
            } else if let Some(name) = between("'", "' is read-only") {
                Failure::Assign(name)
            } else if name(" is not a constructor").is_some() {
                Failure::Construct
            } else if let Some(name) = name(" is not initialized") {
                Failure::Uninitialized(name)
            } else {
                Failure::Name(name(" is not defined")?)
            }
        }
    })
}
