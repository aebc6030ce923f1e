//! The words for calls that failed.

use super::{
    super::{
        remedies,
        values::{Known, Scene, is_iterable, literal_kind},
    },
    Verdict, did_you_mean, has, is, kind, list, operators, with,
};
use crate::{
    data::nearest::misspelled,
    isolate::engine::{is_object, is_promise, is_string, sys, tag_of},
    modules::program::explain::{Failure, Key, Literal, Operand},
};

/// A value that is no function was called, or one that is no constructor was constructed.
pub(super) fn value(scene: &Scene<'_>, failure: &Failure, callee: &Operand) -> Verdict {
    let constructs = matches!(failure, Failure::Construct | Failure::Extends);
    let known = scene.known(callee);
    if let Known::Value(value) = &known
        && scene.state.realm().cx.is_function(value.raw())
        && !constructs
    {
        return Verdict::Innocent;
    }
    let noun = if constructs { "constructor" } else { "function" };
    let said = format!("{} is not a {noun}", callee.text);
    if let Some(promise) = scene.promise(callee) {
        return Verdict::Says(with(said, Some(promise)));
    }
    let detail = match (&known, &callee.of) {
        (Known::Value(value), Some((object, key)))
            if tag_of(value.raw()) == sys::JS_TAG_UNDEFINED =>
        {
            owner(scene, object, key)
        }
        (Known::Nothing, Some((object, key))) => owner(scene, object, key),
        (Known::Value(value), _) => match scene.kind(value.raw()).as_str() {
            "a function" => Some("it is an arrow function or a method".to_owned()),
            kind if kind == callee.text => None,
            kind => Some(format!("it is {kind}")),
        },
        (Known::Literal(_) | Known::Nothing, _) => None,
    };
    Verdict::Says(with(said, detail))
}

/// The object that lacks a method, in words.
fn owner(scene: &Scene<'_>, object: &Operand, key: &Key) -> Option<String> {
    let text = &object.text;
    if let Some(promise) = scene.promise(object) {
        return Some(promise);
    }
    let key = scene.key(key);
    let key = key.as_deref().unwrap_or_default();
    let value = match scene.known(object) {
        Known::Value(value) => value,
        Known::Literal(literal) => {
            let kind = literal_kind(literal);
            let meant = remedies::method(kind, key).map(did_you_mean).unwrap_or_default();
            return is(text, kind).map(|said| said + &meant);
        }
        Known::Nothing => return None,
    };
    if scene.has_getter(&value, key) {
        return Some("it is a getter: read it without ()".to_owned());
    }
    let kind = scene.kind(value.raw());
    let meant = remedies::method(&kind, key).map(str::to_owned).or_else(|| {
        let members = scene.members(&value);
        misspelled(key, members.iter().map(String::as_str)).map(str::to_owned)
    });
    let hint = meant.map(|name| did_you_mean(&name)).unwrap_or_default();
    let names =
        scene.names(value.raw()).filter(|_| matches!(kind.as_str(), "an object" | "a module"));
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
pub(super) fn class(scene: &Scene<'_>, callee: &Operand) -> Verdict {
    let name = if scene.class.is_empty() { &callee.text } else { &scene.class };
    Verdict::Says(format!("{name} is a class: call it with new"))
}

fn cannot_change(message: &str) -> bool {
    message.ends_with("' is read-only") || message == "object is not extensible"
}

/// A builtin refused its first argument, or its object.
pub(super) fn builtin(
    scene: &Scene<'_>,
    message: &str,
    callee: &Operand,
    first: Option<&Operand>,
) -> Verdict {
    let text = &callee.text;
    let object = callee.of.as_ref().map(|(object, _)| &**object);
    if cannot_change(message) {
        return object.map_or(Verdict::Silent, |object| unchangeable(scene, callee, object));
    }
    let given = first.map_or(Known::Literal(Literal::Undefined), |first| scene.known(first));
    let promised = first.and_then(|first| scene.promise(first));
    let known = match &given {
        Known::Value(value) => Some(scene.kind(value.raw())),
        Known::Literal(literal) => Some(literal_kind(*literal).to_owned()),
        Known::Nothing => None,
    };
    let known = known.as_deref();
    let fact = promised.clone().or_else(|| match (first, known) {
        (None, _) => Some("there is no argument".to_owned()),
        (Some(first), Some(kind)) => {
            Some(is(&first.text, kind).unwrap_or(format!("it got {kind}")))
        }
        (Some(_), None) => None,
    });
    let iterates = message == "value is not iterable" || message.contains("Symbol.iterator");
    match message {
        "must be called with new" => Verdict::Says(format!("{text} is a class: call it with new")),
        "empty array" => Verdict::Says(format!("{text} of an empty array needs an initial value")),
        "Date value is NaN" => match object {
            Some(object) => Verdict::Says(format!("{} is an invalid date", object.text)),
            None => Verdict::Silent,
        },
        "circular reference" => match first {
            Some(first) => {
                let fact = format!("{} refers to itself, directly or through others", first.text);
                Verdict::Says(with(message.to_owned(), Some(fact)))
            }
            None => Verdict::Silent,
        },
        "" => Verdict::Silent,
        "not a function" if known != Some("a function") => {
            Verdict::Says(with(format!("{text} needs a function"), fact))
        }
        "Cannot convert undefined or null to object"
            if matches!(known, Some("undefined" | "null")) =>
        {
            let absent = first.and_then(|first| super::members::absent(scene, first, known?));
            Verdict::Says(with(format!("{text} needs an object"), absent.or(fact)))
        }
        "cannot convert BigInt to number" if known == Some("a bigint") => {
            let number = first.map(|first| format!(": Number({})", first.text)).unwrap_or_default();
            Verdict::Says(with(format!("{text} needs a number"), fact.map(|fact| fact + &number)))
        }
        _ if iterates => match &given {
            Known::Value(value) if is_iterable(value.raw()) => Verdict::Silent,
            _ if promised.is_none() && known.is_none() => Verdict::Silent,
            _ if first.is_none() => Verdict::Says(with(format!("{text} needs an iterable"), fact)),
            _ => operators::iteration(scene, message, first),
        },
        _ if text.ends_with("JSON.parse") => json(scene, message, &given, fact),
        _ if text == "RegExp" => Verdict::Says(format!("invalid regular expression: {message}")),
        _ if message.contains(text.as_str()) || message == "eval is not supported" => {
            Verdict::Silent
        }
        _ => Verdict::Says(format!("{text}: {message}")),
    }
}

/// The text that `JSON.parse` could not read.
fn json(scene: &Scene<'_>, message: &str, given: &Known, fact: Option<String>) -> Verdict {
    const SHOWN: usize = 16;
    let detail = match given {
        Known::Value(value) if is_string(value.raw()) => {
            let start = scene.state.excerpt(value.raw(), SHOWN);
            match start.trim_start() {
                start if start.starts_with("```") => "the text is fenced in Markdown".to_owned(),
                start if start.starts_with('<') => "the text is markup".to_owned(),
                "" => "the text is empty".to_owned(),
                _ => return Verdict::Silent,
            }
        }
        Known::Literal(Literal::String) | Known::Nothing => return Verdict::Silent,
        Known::Value(value) if is_object(value.raw()) && !is_promise(value.raw()) => {
            fact.map(|fact| fact + ", no text").unwrap_or_default()
        }
        _ => fact.unwrap_or_default(),
    };
    Verdict::Says(with(message.to_owned(), Some(detail)))
}

/// A builtin tried to change an object that cannot be changed.
fn unchangeable(scene: &Scene<'_>, callee: &Operand, object: &Operand) -> Verdict {
    let frozen = match scene.known(object) {
        Known::Value(value) => scene.is_frozen(value.raw()),
        _ => false,
    };
    if !frozen {
        return Verdict::Silent;
    }
    let text = &object.text;
    let method = match &callee.of {
        Some((_, Key::Name(name))) => name.as_str(),
        _ => "",
    };
    let instead = match method {
        "sort" => format!("; use {text}.toSorted"),
        "reverse" => format!("; use {text}.toReversed"),
        "splice" => format!("; use {text}.toSpliced"),
        _ if kind(scene, object).as_deref() == Some("an array") => {
            format!("; copy it: [...{text}]")
        }
        _ => String::new(),
    };
    let said = format!("{} cannot change {text}", callee.text);
    Verdict::Says(with(said, Some(format!("{text} is frozen{instead}"))))
}

/// The specifiers that an import may name.
pub(super) fn imports(scene: &Scene<'_>) -> Option<String> {
    (!scene.importable.is_empty()).then(|| list(&scene.importable))
}
