//! The words for arguments that a builtin refuses, as V8 has them, with the remedy.
//!
//! In: the engine's message, the builtin, its object and its first argument. Out: the verdict; `None` for messages that
//! need nothing of the kind.

use super::{
    super::values::{Known, Values, literal_kind},
    Verdict, with,
};
use crate::{
    data::inspect::number_text,
    isolate::engine::{Local, is_array, is_object, is_promise, is_string, sys, tag_of},
    modules::program::explain::{Literal, Operand},
};

/// A part of a text that a message shows.
const SHOWN: usize = 40;

pub(super) fn refused(
    values: &Values<'_>,
    message: &str,
    callee: &Operand,
    first: Option<&Operand>,
) -> Option<Verdict> {
    let object = callee.of.as_ref().map(|(object, _)| &**object);
    match message {
        "Date value is NaN" => Some(invalid_date(values, object?)),
        "BigInt are forbidden in JSON.stringify" => Some(bigint(values, first)),
        "invalid number of digits" | "invalid repeat count" | "invalid array length" => {
            let said = range(values, message, callee)?;
            let fact = number(values, first).map(|fact| match message {
                "invalid array length" => fact + "; a length is a whole number below 2 ** 32",
                _ => fact,
            });
            Some(judged(values, first, with(said, fact)))
        }
        _ if callee.text.ends_with("JSON.parse") => Some(json(values, message, first)),
        _ => None,
    }
}

/// A message on the first argument. Of several calls of one builtin it is about the one with the argument that failed.
fn judged(values: &Values<'_>, first: Option<&Operand>, said: String) -> Verdict {
    match first.and_then(|first| values.was_given(first)) {
        Some(true) => Verdict::Proven(said),
        Some(false) => Verdict::Excluded,
        None => Verdict::Possible(Some(said)),
    }
}

/// V8's message for a number out of range.
fn range(values: &Values<'_>, message: &str, callee: &Operand) -> Option<String> {
    let name = super::calls::name_of(callee);
    let between = match (message, name) {
        ("invalid number of digits", "toFixed") => "digits argument must be between 0 and 100",
        ("invalid number of digits", "toExponential") => "argument must be between 0 and 100",
        ("invalid number of digits", "toPrecision") => "argument must be between 1 and 100",
        ("invalid repeat count", "repeat") => {
            let given = values.given[0].as_ref().and_then(|given| Values::number(given.raw()))?;
            return Some(format!("Invalid count value: {}", number_text(given)));
        }
        ("invalid array length", _) if callee.text == "Array" => {
            return Some("Invalid array length".to_owned());
        }
        _ => return None,
    };
    Some(format!("{name}() {between}"))
}

/// The number that the builtin got.
fn number(values: &Values<'_>, first: Option<&Operand>) -> Option<String> {
    let given = values.given[0].as_ref().and_then(|given| Values::number(given.raw()))?;
    let number = number_text(given);
    match first {
        Some(first) if first.literal.is_none() && first.text != number => {
            Some(format!("{} is {number}", first.text))
        }
        _ => Some(format!("it got {number}")),
    }
}

/// An invalid date was written as a text.
fn invalid_date(values: &Values<'_>, object: &Operand) -> Verdict {
    let invalid = match values.known(object) {
        Known::Value(value) => values.is_invalid_date(value.raw()),
        _ => None,
    };
    let made = object.made_of.as_deref();
    let origin = made.and_then(|made| origin(values, made)).unwrap_or_default();
    let fact = format!("{} is an invalid date{origin}", object.text);
    let said = with("Invalid time value".to_owned(), Some(fact));
    match invalid {
        Some(true) => Verdict::Proven(said),
        Some(false) => Verdict::Excluded,
        None => Verdict::Possible(Some(said)),
    }
}

/// The value that a date was made of.
fn origin(values: &Values<'_>, made: &Operand) -> Option<String> {
    const REMEDY: &str = "; write a date as YYYY-MM-DD";
    let named = |shown: String| match made.literal {
        Some(_) => shown,
        None => format!("{}, {shown}", made.text),
    };
    match values.known(made) {
        Known::Literal(Literal::String) => Some(format!(", made of {}{REMEDY}", made.text)),
        Known::Value(value) if is_string(value.raw()) => {
            let text = values.state.excerpt(value.raw(), SHOWN);
            Some(format!(", made of {}{REMEDY}", named(format!("'{text}'"))))
        }
        Known::Value(value) => {
            let shown = match Values::number(value.raw()) {
                Some(number) => number_text(number),
                None => values.kind(value.raw()),
            };
            Some(format!(", made of {}", named(shown)))
        }
        Known::Literal(_) | Known::Nothing => None,
    }
}

/// `JSON.stringify` met a bigint.
fn bigint(values: &Values<'_>, first: Option<&Operand>) -> Verdict {
    let found = first.and_then(|first| {
        let value = match values.known(first) {
            Known::Value(value) => value,
            Known::Literal(Literal::BigInt) => return Some(first.text.clone()),
            _ => values.given[0].clone()?,
        };
        let mut left = MOST_LOOKED_AT;
        bigint_in(values, &value, first, DEEPEST, &mut left)
    });
    let fact = match found {
        Some(place) => {
            // A property of a literal is known by its key.
            let place = place.strip_prefix("{…}.").unwrap_or(&place);
            format!("{place} is a bigint: String({place})")
        }
        None => "convert each bigint with String()".to_owned(),
    };
    judged(values, first, with("Do not know how to serialize a BigInt".to_owned(), Some(fact)))
}

/// The values among which a bigint is looked for, and the levels of objects.
const MOST_LOOKED_AT: usize = 200;
const DEEPEST: usize = 5;

/// The first bigint in a value, in words. Reads no getter.
fn bigint_in(
    values: &Values<'_>,
    value: &Local,
    operand: &Operand,
    levels: usize,
    left: &mut usize,
) -> Option<String> {
    *left = left.checked_sub(1)?;
    if matches!(tag_of(value.raw()), sys::JS_TAG_BIG_INT | sys::JS_TAG_SHORT_BIG_INT) {
        return Some(operand.text.clone());
    }
    let levels = levels.checked_sub(1).filter(|_| is_object(value.raw()))?;
    let keys = if is_array(value.raw()) {
        let count = values.elements(value.raw())?;
        (0..count).take(*left).map(|index| index.to_string()).collect()
    } else {
        values.names(value.raw())?
    };
    keys.iter().find_map(|key| {
        let member = values.property(value, key)?;
        bigint_in(values, &member, &operand.property(key), levels, left)
    })
}

/// `JSON.parse` could not read its argument.
fn json(values: &Values<'_>, message: &str, first: Option<&Operand>) -> Verdict {
    let first_known = first.map_or(Known::Literal(Literal::Undefined), |first| values.known(first));
    let given = match (&values.given[0], first_known) {
        (_, Known::Value(value)) => Known::Value(value),
        // An operand whose value is not known: the builtin got it nevertheless.
        (Some(given), _) => Known::Value(given.clone()),
        (None, known) => known,
    };
    let (kind, is_value) = match &given {
        Known::Value(value) if is_string(value.raw()) => {
            let start = values.state.excerpt(value.raw(), SHOWN);
            let fact = match start.trim_start() {
                start if start.starts_with("```") => "the text is fenced in Markdown",
                start if start.starts_with('<') => "the text is markup",
                "" => "the text is empty",
                _ => return Verdict::Possible(None),
            };
            let said = with(message.to_owned(), Some(fact.to_owned()));
            return judged_text(values, first, said);
        }
        Known::Value(value) => {
            let is_function = values.state.realm().cx.is_function(value.raw());
            let is_data = is_object(value.raw()) && !is_promise(value.raw()) && !is_function;
            (values.kind(value.raw()), is_data)
        }
        Known::Literal(Literal::String) | Known::Nothing => return Verdict::Possible(None),
        Known::Literal(literal) => {
            (literal_kind(*literal).to_owned(), matches!(literal, Literal::Object | Literal::Array))
        }
    };
    let subject = first.map_or("it", |first| first.text.as_str());
    let promised = first.and_then(|first| values.promise(first));
    let fact = match (promised, first) {
        (Some(promised), _) => promised,
        (None, None) => "there is no argument".to_owned(),
        (None, Some(_)) if is_value => {
            format!("{subject} is {kind} already: use it without JSON.parse")
        }
        (None, Some(first)) if kind == first.text => format!("it got {kind}"),
        (None, Some(_)) => format!("{subject} is {kind}"),
    };
    let said = match message {
        "unexpected token: 'object'" => "\"[object Object]\" is not valid JSON",
        "unexpected token: 'undefined'" => "\"undefined\" is not valid JSON",
        message => message,
    };
    judged_text(values, first, with(said.to_owned(), Some(fact)))
}

/// A message on the argument of `JSON.parse`, which may be one of several calls.
fn judged_text(values: &Values<'_>, first: Option<&Operand>, said: String) -> Verdict {
    match first.map_or(Some(true), |first| values.was_given(first)) {
        Some(false) => Verdict::Excluded,
        Some(true) => Verdict::Proven(said),
        None => match first.map(|first| values.known(first)) {
            Some(Known::Nothing) => Verdict::Possible(Some(said)),
            _ => Verdict::Proven(said),
        },
    }
}
