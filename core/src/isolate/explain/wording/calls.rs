//! The words for calls that failed.

use super::{
    super::{
        remedies,
        values::{Known, Values, literal_kind},
    },
    Verdict, arguments, did_you_mean, has, is, kind, members, operators, with,
};
use crate::{
    data::nearest::misspelled,
    isolate::engine::{is_object, sys, tag_of},
    modules::program::explain::{Failure, Key, Literal, Operand},
};

/// A value that is no function was called, or one that is no constructor was constructed.
pub(super) fn value(
    values: &Values<'_>,
    failure: &Failure,
    callee: &Operand,
    constructs: bool,
) -> Verdict {
    let known = values.known(callee);
    let is_function = match &known {
        Known::Value(value) => values.state.realm().cx.is_function(value.raw()),
        Known::Literal(literal) => *literal == Literal::Function,
        Known::Nothing => false,
    };
    if is_function && *failure == Failure::Call {
        return Verdict::Excluded;
    }
    let noun = if constructs { "constructor" } else { "function" };
    let said = format!("{} is not a {noun}", callee.text);
    if let Some(promise) = values.promise(callee) {
        return Verdict::Proven(with(said, Some(promise)));
    }
    let detail = match (&known, &callee.of) {
        (Known::Value(value), Some((object, key)))
            if tag_of(value.raw()) == sys::JS_TAG_UNDEFINED =>
        {
            owner(values, object, key)
        }
        (Known::Nothing, Some((object, key))) => {
            let detail = owner(values, object, key);
            // The method of a promise, or one that is not known to be there.
            let proven = values.promise(object).is_some() && !of_promises(key);
            let said = with(said, detail);
            return if proven { Verdict::Proven(said) } else { Verdict::Possible(Some(said)) };
        }
        (Known::Value(value), _) => match values.kind(value.raw()).as_str() {
            "a function" => Some("it is an arrow function or a method".to_owned()),
            kind if kind == callee.text => None,
            kind => Some(format!("it is {kind}")),
        },
        (Known::Literal(_), _) => None,
        (Known::Nothing, None) => return Verdict::Possible(Some(said)),
    };
    Verdict::Proven(with(said, detail))
}

fn of_promises(key: &Key) -> bool {
    matches!(key, Key::Name(name) if matches!(name.as_str(), "then" | "catch" | "finally"))
}

/// The object that lacks a method, in words.
fn owner(values: &Values<'_>, object: &Operand, key: &Key) -> Option<String> {
    let text = &object.text;
    if let Some(promise) = values.promise(object) {
        return Some(promise);
    }
    let key = values.key(key);
    let key = key.as_deref().unwrap_or_default();
    let value = match values.known(object) {
        Known::Value(value) => value,
        Known::Literal(literal) => {
            let kind = literal_kind(literal);
            let meant = remedies::method(kind, key).map(did_you_mean).unwrap_or_default();
            return is(text, kind).map(|said| said + &meant);
        }
        Known::Nothing => return None,
    };
    if values.has_getter(&value, key) {
        return Some("it is a getter: read it without ()".to_owned());
    }
    let kind = values.kind(value.raw());
    let meant = remedies::method(&kind, key).map(str::to_owned).or_else(|| {
        let members = values.members(&value);
        misspelled(key, members.iter().map(String::as_str)).map(str::to_owned)
    });
    let hint = meant.map(|name| did_you_mean(&name)).unwrap_or_default();
    let names =
        values.names(value.raw()).filter(|_| matches!(kind.as_str(), "an object" | "a module"));
    let said = match (names, kind.as_str()) {
        (Some(names), _) if names.iter().any(|name| name == key) => "it is undefined".to_owned(),
        (Some(names), _) => has(text, &names),
        (None, "an object like an array") => format!("{text} is no array: [...{text}] is one"),
        (None, "a function") => "it is undefined".to_owned(),
        (None, kind) => format!("{text} is {kind}"),
    };
    Some(said + &hint)
}

/// A class was called without `new`, by the code or by the builtin that was called.
pub(super) fn class(values: &Values<'_>, callee: &Operand) -> Verdict {
    let nameless = matches!(values.class.as_str(), "" | "default");
    let name = if nameless { &callee.text } else { &values.class };
    let said = format!("{name} is a class: call it with new");
    match values.known(callee) {
        Known::Value(value) if values.was_called(value.raw()) => Verdict::Proven(said),
        Known::Nothing => Verdict::Possible(Some(said)),
        _ => Verdict::Excluded,
    }
}

/// The builtins that take an iterable of entries.
const ENTRIES: [&str; 3] = ["Map", "WeakMap", "Object.fromEntries"];

fn cannot_change(message: &str) -> bool {
    message.ends_with("' is read-only") || message == "object is not extensible"
}

/// The builtins whose second argument is a function.
const SECOND: [&str; 4] = ["Array.from", "Array.fromAsync", "Object.groupBy", "Map.groupBy"];

/// Whether an expression may be the builtin that failed.
fn may_be_called(values: &Values<'_>, callee: &Operand) -> bool {
    match values.known(callee) {
        Known::Value(value) => values.was_called(value.raw()),
        Known::Literal(_) => false,
        Known::Nothing => callee.of.is_some(),
    }
}

/// A builtin refused an argument, or its object.
pub(super) fn builtin(
    values: &Values<'_>,
    message: &str,
    callee: &Operand,
    operands: &[Option<Operand>; 2],
) -> Verdict {
    if !may_be_called(values, callee) {
        return Verdict::Excluded;
    }
    let text = &callee.text;
    let second = message == "not a function" && SECOND.contains(&text.as_str());
    let first = operands[usize::from(second)].as_ref();
    let object = callee.of.as_ref().map(|(object, _)| &**object);
    if cannot_change(message) {
        return object
            .map_or(Verdict::Possible(None), |object| unchangeable(values, callee, object));
    }
    if let Some(verdict) = arguments::refused(values, message, callee, first) {
        return verdict;
    }
    let given = first.map_or(Known::Literal(Literal::Undefined), |first| values.known(first));
    let promised = first.and_then(|first| values.promise(first));
    let known = match &given {
        Known::Value(value) => Some(values.kind(value.raw())),
        Known::Literal(literal) => Some(literal_kind(*literal).to_owned()),
        Known::Nothing => promised.as_ref().map(|_| "a promise".to_owned()),
    };
    let known = known.as_deref();
    let fact = promised.or_else(|| match (first, known) {
        (None, _) if second => Some("there is no second argument".to_owned()),
        (None, _) => Some("there is no argument".to_owned()),
        (Some(first), Some(kind)) => {
            Some(is(&first.text, kind).unwrap_or_else(|| format!("it got {kind}")))
        }
        (Some(_), None) => None,
    });
    let iterates = message == "value is not iterable" || message.contains("Symbol.iterator");
    // A message on the first argument, by whether the argument is right, as far as that is known.
    let judged = |said: String, right: Option<bool>| match right {
        Some(true) => Verdict::Excluded,
        Some(false) => Verdict::Proven(said),
        None => Verdict::Possible(Some(said)),
    };
    match message {
        "must be called with new" => {
            Verdict::Proven(format!("{text} is a class: call it with new"))
        }
        "empty array" => {
            let said = format!("{text} of an empty array needs an initial value");
            let count = object.and_then(|object| match values.known(object) {
                Known::Value(value) => values.elements(value.raw()),
                _ => None,
            });
            judged(said, count.map(|count| count > 0))
        }
        "circular reference" => {
            let Some(first) = first else { return Verdict::Excluded };
            let fact = format!("{} refers to itself, directly or through others", first.text);
            Verdict::Possible(Some(with(message.to_owned(), Some(fact))))
        }
        "not a function" => {
            let optional = first.is_none() && matches!(name_of(callee), "sort" | "toSorted");
            let right = known.map(|kind| kind == "a function" || optional);
            judged(with(format!("{text} needs a function"), fact), right)
        }
        "Cannot convert undefined or null to object" => {
            let absent = first.zip(known).and_then(|(first, word)| {
                matches!(word, "undefined" | "null")
                    .then(|| members::absent(values, first, word))?
            });
            let right = known.map(|kind| !matches!(kind, "undefined" | "null"));
            judged(with(format!("{text} needs an object"), absent.or(fact)), right)
        }
        "cannot convert BigInt to number" if known == Some("a bigint") => {
            let number = first.map(|first| format!(": Number({})", first.text)).unwrap_or_default();
            let fact = fact.map(|fact| fact + &number);
            Verdict::Proven(with(format!("{text} needs a number"), fact))
        }
        "" | "cannot convert BigInt to number" => Verdict::Possible(None),
        "not an object" if ENTRIES.contains(&text.as_str()) => {
            let said = format!("{text} needs entries [key, value]");
            match first.and_then(|first| no_entry(values, first)) {
                Some(fact) => Verdict::Proven(with(said, Some(fact))),
                None => Verdict::Possible(Some(said)),
            }
        }
        _ if iterates => match (first, &given) {
            (None, _) => Verdict::Proven(with(format!("{text} needs an iterable"), fact)),
            (Some(_), Known::Nothing) if known.is_none() => Verdict::Possible(None),
            (Some(_), _) => operators::iteration(values, message, first),
        },
        _ if text == "RegExp" => {
            Verdict::Possible(Some(format!("invalid regular expression: {message}")))
        }
        "eval is not supported" => Verdict::Possible(Some(format!(
            "{text} is not supported; code cannot be made from text here"
        ))),
        _ if message.contains(text.as_str()) => Verdict::Possible(None),
        _ => Verdict::Possible(Some(format!("{text}: {message}"))),
    }
}

/// The first element of an array that is no object, in words.
fn no_entry(values: &Values<'_>, array: &Operand) -> Option<String> {
    const MOST: i64 = 200;
    let Known::Value(value) = values.known(array) else { return None };
    let count = values.elements(value.raw())?.min(MOST);
    for index in 0..count {
        let element = values.property(&value, &index.to_string())?;
        if !is_object(element.raw()) {
            let kind = values.kind(element.raw());
            return Some(format!("element {index} of {} is {kind}", array.text));
        }
    }
    None
}

/// The name of a method, where it is written in the text.
pub(super) fn name_of(callee: &Operand) -> &str {
    match &callee.of {
        Some((_, Key::Name(name))) => name,
        _ => "",
    }
}

/// A builtin tried to change an object that cannot be changed.
fn unchangeable(values: &Values<'_>, callee: &Operand, object: &Operand) -> Verdict {
    let frozen = match values.known(object) {
        Known::Value(value) if values.is_closed(value.raw()) => values.is_frozen(value.raw()),
        Known::Nothing => return Verdict::Possible(None),
        _ => return Verdict::Excluded,
    };
    let text = &object.text;
    let state = if frozen { "is frozen" } else { "takes no new properties" };
    let instead = match name_of(callee) {
        "sort" => format!("; use {text}.toSorted"),
        "reverse" => format!("; use {text}.toReversed"),
        "splice" => format!("; use {text}.toSpliced"),
        _ if kind(values, object).as_deref() == Some("an array") => {
            format!("; copy it: [...{text}]")
        }
        _ => String::new(),
    };
    let said = format!("{} cannot change {text}", callee.text);
    Verdict::Proven(with(said, Some(format!("{text} {state}{instead}"))))
}
