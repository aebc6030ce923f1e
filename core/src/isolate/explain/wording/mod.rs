//! The words of an explanation.
//!
//! In: a failure, the engine's message and the candidates. Out: the message for the first candidate whose values allow the
//! failure, and its place. `calls` has calls that fail, `arguments` those that builtins refuse, `members` properties and
//! patterns, `names` variables, `operators` everything else.

mod arguments;
mod calls;
mod members;
mod names;
mod operators;

use super::values::{Known, Values, literal_kind, nullish};
use crate::{
    data::{outcome::Position, text::bounded},
    modules::program::explain::{Act, Candidate, Failure, Operand},
};

/// The names that a message lists.
const LISTED: usize = 8;

/// The longest list of names, in bytes.
const LIST: usize = 200;

/// The judgement of one candidate.
enum Verdict {
    /// Its values prove that it failed, and this is the message.
    Proven(String),
    /// It may have failed. Then this is the message, if there is more to say than the engine did.
    Possible(Option<String>),
    /// Its values are in order.
    Excluded,
}

/// The new message, if there is more to say than the engine did, and the place: those of the first candidate that failed
/// for certain, else of the only one that may have.
pub(super) fn word(
    values: &Values<'_>,
    failure: &Failure,
    message: &str,
    candidates: &[Candidate],
) -> Option<(Option<String>, Position)> {
    let mut possible = Vec::new();
    for candidate in candidates {
        match judge(values, failure, message, &candidate.act) {
            Verdict::Proven(text) => return Some((Some(text), candidate.position)),
            Verdict::Possible(text) => possible.push((text, candidate.position)),
            Verdict::Excluded => {}
        }
    }
    let first = possible.first()?;
    let alone = possible.iter().all(|(_, position)| *position == first.1);
    // Nothing more can be known of these; the first is the likeliest.
    let any = matches!(failure, Failure::Untold | Failure::Wait);
    if alone || any {
        return possible.into_iter().next();
    }
    // The engine's place is that of a name before the pattern, on whichever line.
    let patterns = matches!(failure, Failure::Destructure | Failure::Iterate);
    let on_one_line = possible.iter().all(|(_, position)| position.line == first.1.line);
    let either = if *failure == Failure::Iterate { either(&possible) } else { None };
    (patterns && on_one_line).then_some((either, first.1))
}

/// Both messages, where there are two.
fn either(possible: &[(Option<String>, Position)]) -> Option<String> {
    match possible {
        [(Some(first), _), (Some(second), _)] => Some(format!("{first}, or {second}")),
        _ => None,
    }
}

fn judge(values: &Values<'_>, failure: &Failure, message: &str, act: &Act) -> Verdict {
    match (act, failure) {
        (Act::Call { callee, .. }, Failure::ClassCall) => calls::class(values, callee),
        (Act::Call { .. }, Failure::Untold) | (Act::Wait | Act::Import { .. }, _) => {
            Verdict::Possible(None)
        }
        (Act::Call { callee, arguments, .. }, Failure::Builtin(_)) => {
            calls::builtin(values, message, callee, arguments)
        }
        (Act::Call { callee, constructs, .. }, _) => {
            calls::value(values, failure, callee, *constructs)
        }
        (Act::Member { object, key }, _) => {
            members::member(values, failure, message, object, key.as_deref())
        }
        (Act::Pattern { source, key }, _) => {
            members::pattern(values, source.as_ref(), key.as_deref())
        }
        // A call before it may have failed as well.
        (Act::Iteration { value }, Failure::Call) => {
            match operators::iteration(values, message, value.as_ref()) {
                Verdict::Proven(text) => Verdict::Possible(Some(text)),
                verdict => verdict,
            }
        }
        (Act::Iteration { value }, _) => operators::iteration(values, message, value.as_ref()),
        (Act::Variable { declared, imported }, _) => {
            names::constant(values, failure, message, *declared, *imported)
        }
        (Act::Conversion { value }, _) => operators::conversion(values, message, value),
        (Act::Binary { right, .. }, Failure::Relation) => {
            operators::relation(values, message, right)
        }
        (Act::Binary { left, right }, Failure::Shift) => {
            operators::shifted(values, message, left, right)
        }
        (Act::Binary { left, right }, _) => operators::mixed(values, left, right),
        (Act::Name { declared, .. }, Failure::Uninitialized(name)) => {
            names::uninitialized(name, message, declared.as_ref())
        }
        (Act::Name { assigned, declared, meant }, Failure::Name(name)) => {
            names::absent(values, name, message, *assigned, declared.as_ref(), meant.as_deref())
        }
        (Act::Name { .. }, _) => Verdict::Possible(None),
    }
}

/// The words for an operand's value, where it is known.
fn kind(values: &Values<'_>, operand: &Operand) -> Option<String> {
    match values.known(operand) {
        Known::Value(value) => Some(values.kind(value.raw())),
        Known::Literal(literal) => Some(literal_kind(literal).to_owned()),
        Known::Nothing => None,
    }
}

/// `undefined` or `null`, if the operand is known to be that; an error if it is known to be something else.
fn nothing(values: &Values<'_>, operand: &Operand) -> Result<Option<&'static str>, ()> {
    match values.known(operand) {
        Known::Value(value) => nullish(value.raw()).map(Some).ok_or(()),
        Known::Literal(literal) => match literal_kind(literal) {
            word @ ("undefined" | "null") => Ok(Some(word)),
            _ => Err(()),
        },
        Known::Nothing => Ok(None),
    }
}

/// `text is kind`, unless that says nothing.
fn is(text: &str, kind: &str) -> Option<String> {
    (text != kind).then(|| format!("{text} is {kind}"))
}

fn did_you_mean(name: &str) -> String {
    format!("; did you mean '{name}'?")
}

/// `tools has: getUser, save`.
fn has(text: &str, names: &[String]) -> String {
    if names.is_empty() {
        format!("{text} is an empty object")
    } else {
        format!("{text} has: {}", list(names))
    }
}

fn list(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    let more = if names.len() > LISTED { ", …" } else { "" };
    bounded(shown.join(", ") + more, LIST)
}

/// A key as it is quoted in a message.
fn quoted(key: &str) -> String {
    format!("'{}'", bounded(key.to_owned(), LIST))
}

fn with(said: String, detail: Option<String>) -> String {
    match detail {
        Some(detail) => format!("{said} ({detail})"),
        None => said,
    }
}
