//! The words for properties and patterns that failed.

use super::{
    super::values::{Known, Values},
    Verdict, did_you_mean, has, is, kind, nothing, quoted, with,
};
use crate::{
    data::nearest::misspelled,
    isolate::engine::is_object,
    modules::program::explain::{Failure, Key, Operand},
};

/// A property was read or written where that is not possible.
pub(super) fn member(
    values: &Values<'_>,
    failure: &Failure,
    message: &str,
    object: &Operand,
    key: Option<&str>,
) -> Verdict {
    match failure {
        Failure::Assign(_) | Failure::Extend | Failure::Delete => {
            return unchangeable(values, failure, message, object, key);
        }
        Failure::Primitive => return primitive(values, object, key),
        _ => {}
    }
    let (word, known) = match nothing(values, object) {
        Ok(Some(word)) => (word, true),
        Ok(None) if message.ends_with("null") => ("null", false),
        Ok(None) if *failure == Failure::Change => ("undefined or null", false),
        Ok(None) => ("undefined", false),
        Err(()) => return Verdict::Excluded,
    };
    let said = match (failure, key) {
        (Failure::Destructure, Some(key)) => {
            format!("cannot delete property {} of {word}", quoted(key))
        }
        (Failure::Change, Some(key)) => format!("cannot read property {} of {word}", quoted(key)),
        (Failure::Change, None) => format!("cannot read a property of {word}"),
        _ => message.to_owned(),
    };
    let absent = absent(values, object, word).filter(|_| known || *failure != Failure::Change);
    let said = with(said, absent);
    if known { Verdict::Proven(said) } else { Verdict::Possible(Some(said)) }
}

/// A property of an object that exists was written or deleted, and must stay as it is.
fn unchangeable(
    values: &Values<'_>,
    failure: &Failure,
    message: &str,
    object: &Operand,
    key: Option<&str>,
) -> Verdict {
    let text = &object.text;
    let frozen = match values.known(object) {
        Known::Value(value) if message.starts_with("no setter") => {
            // Another one of several assignments may have failed.
            match key {
                Some(key) if !values.has_getter(&value, key) => return Verdict::Excluded,
                _ => None,
            }
        }
        Known::Value(value) if values.is_closed(value.raw()) => {
            Some(match values.kind(value.raw()).as_str() {
                "a module" => format!("{text} is a module"),
                _ if values.is_frozen(value.raw()) => format!("{text} is frozen"),
                _ => format!("{text} takes no new properties"),
            })
        }
        _ => None,
    };
    let known = frozen.is_some();
    let said = match (failure, key) {
        (Failure::Extend, Some(key)) if message.starts_with("no setter") => {
            format!("cannot set property {} of {text}: it has only a getter", quoted(key))
        }
        (Failure::Extend, Some(key)) => match frozen {
            Some(frozen) => with(format!("cannot add property {}", quoted(key)), Some(frozen)),
            None => format!("cannot add property {}: {message}", quoted(key)),
        },
        (Failure::Delete, Some(key)) => {
            with(format!("cannot delete property {}", quoted(key)), frozen)
        }
        _ if known => with(message.to_owned(), frozen),
        _ => return Verdict::Possible(None),
    };
    if known { Verdict::Proven(said) } else { Verdict::Possible(Some(said)) }
}

/// A property of a primitive value was written.
fn primitive(values: &Values<'_>, object: &Operand, key: Option<&str>) -> Verdict {
    let Some(kind) = kind(values, object) else { return Verdict::Possible(None) };
    if matches!(values.known(object), Known::Value(value) if is_object(value.raw())) {
        return Verdict::Excluded;
    }
    let key = key.map(|key| format!(" {}", quoted(key))).unwrap_or_default();
    Verdict::Proven(with(format!("cannot set property{key} of {kind}"), is(&object.text, &kind)))
}

/// `order.lines is undefined; order has: id, items`.
pub(super) fn absent(values: &Values<'_>, operand: &Operand, word: &str) -> Option<String> {
    let said = is(&operand.text, word)?;
    let owner = operand.of.as_ref().or(operand.taken.as_ref());
    let owner = owner.filter(|_| word == "undefined");
    Some(match owner.and_then(|(object, key)| lacks(values, object, key)) {
        Some(clause) => format!("{said}; {clause}"),
        None => said,
    })
}

/// The clause on an object without a property of that name.
fn lacks(values: &Values<'_>, object: &Operand, key: &Key) -> Option<String> {
    let text = &object.text;
    if let Some(promise) = values.promise(object) {
        return Some(promise);
    }
    let Known::Value(value) = values.known(object) else { return None };
    let is_text = values.is_text(key);
    let key = values.key(key)?;
    if let Some(count) = values.elements(value.raw()) {
        let is_index = key.parse::<u32>().is_ok();
        return Some(match (count, is_index) {
            (0, true) => format!("{text} is empty"),
            (1, true) => format!("{text} has 1 element"),
            (_, true) => format!("{text} has {count} elements"),
            (0, false) => format!("{text} is an empty array"),
            (_, false) => format!("{text} is an array of {count}"),
        });
    }
    if values.kind(value.raw()) == "a Map" {
        let key = if !is_text && key.parse::<u32>().is_ok() { key } else { quoted(&key) };
        return Some(format!("{text} is a Map: {text}.get({key})"));
    }
    let names = values.names(value.raw())?;
    if names.contains(&key) {
        return None;
    }
    let meant = misspelled(&key, names.iter().map(String::as_str));
    Some(has(text, &names) + &meant.map(did_you_mean).unwrap_or_default())
}

/// A pattern took `undefined` or `null` apart.
pub(super) fn pattern(values: &Values<'_>, source: Option<&Operand>, key: Option<&str>) -> Verdict {
    let key = key.map(|key| format!("{} of ", quoted(key))).unwrap_or_default();
    let unknown = format!("cannot destructure {key}undefined or null");
    let Some(source) = source else { return Verdict::Possible(Some(unknown)) };
    if values.promise(source).is_some() {
        return Verdict::Excluded;
    }
    match nothing(values, source) {
        Err(()) => Verdict::Excluded,
        Ok(Some(word)) => {
            let said = format!("cannot destructure {key}{word}");
            Verdict::Proven(with(said, absent(values, source, word)))
        }
        Ok(None) => {
            let owner = source.of.as_ref().filter(|(_, key)| !matches!(key, Key::Element(_)));
            if let Some(promise) = owner.and_then(|(object, _)| values.promise(object)) {
                let said = format!("cannot destructure {key}undefined");
                return Verdict::Proven(with(said, Some(promise)));
            }
            let value = format!("the value of {}", source.text);
            // A default may have taken its place.
            let value = (!source.defaulted).then_some(value);
            Verdict::Possible(Some(with(unknown, value)))
        }
    }
}
