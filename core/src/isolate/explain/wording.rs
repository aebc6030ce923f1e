//! The words of an explanation.
//!
//! In: a failure, the engine's message and the suspects. Out: the message for the first suspect whose values allow the
//! failure, and its place.

use super::{
    remedies,
    values::{Known, Scene, is_iterable, literal_kind, nullish},
};
use crate::{
    data::{nearest::misspelled, outcome::Position, text::bounded},
    isolate::engine::{is_object, is_promise, is_string, realm::GLOBALS, sys, tag_of},
    modules::program::explain::{Act, Failure, Literal, Operand, Suspect},
};

/// The names that a message lists.
const LISTED: usize = 8;

/// The longest list of names, in bytes.
const LIST: usize = 200;

/// The new message, if there is more to say than the engine did, and the place.
pub(super) fn word(
    scene: &Scene<'_>,
    failure: &Failure,
    message: &str,
    suspects: &[Suspect],
) -> Option<(Option<String>, Position)> {
    suspects.iter().find_map(|suspect| {
        let text = match &suspect.act {
            Act::Call { callee, first } => match failure {
                Failure::ClassCall => {
                    Verdict::Says(format!("{} is a class: call it with new", callee.text))
                }
                Failure::Builtin(_) => refused(scene, message, callee, first.as_ref()),
                _ => call(scene, failure, callee),
            },
            Act::Member { object, key } => member(scene, failure, message, object, key.as_deref()),
            Act::Pattern { source, key } => pattern(scene, source.as_ref(), key.as_deref()),
            Act::Iteration { value } => iteration(scene, message, value.as_ref()),
            Act::Variable => Verdict::Says(variable(scene, failure, message)),
            Act::Binary { right, .. } if *failure == Failure::Relation => {
                relation(scene, message, right)
            }
            Act::Binary { left, right } => binary(scene, left, right),
            Act::Name { declared } => Verdict::Says(name(scene, failure, message, *declared)),
        };
        match text {
            Verdict::Says(text) => Some((Some(text), suspect.position)),
            Verdict::Silent => Some((None, suspect.position)),
            Verdict::Innocent => None,
        }
    })
}

/// The judgement of one suspect.
enum Verdict {
    /// It failed, and this is the message.
    Says(String),
    /// It failed, and there is nothing to add.
    Silent,
    /// Its values are in order.
    Innocent,
}

/// A value that is no function was called.
fn call(scene: &Scene<'_>, failure: &Failure, callee: &Operand) -> Verdict {
    let cx = scene.state.realm().cx;
    let known = scene.known(callee);
    let constructs = *failure == Failure::Construct;
    if let Known::Value(value) = &known
        && cx.is_function(value.raw())
        && !constructs
    {
        return Verdict::Innocent;
    }
    let noun = if constructs { "constructor" } else { "function" };
    let head = format!("{} is not a {noun}", callee.text);
    let missing = match &known {
        Known::Value(value) => tag_of(value.raw()) == sys::JS_TAG_UNDEFINED,
        _ => false,
    };
    if let Some(promise) = scene.promise(callee) {
        return Verdict::Says(with(head, Some(promise)));
    }
    let detail = match (&known, &callee.of) {
        (known, Some((object, key))) if missing || matches!(known, Known::Nothing) => {
            owner(scene, object, key)
        }
        (Known::Value(value), _) => Some(scene.kind(value.raw()))
            .filter(|kind| *kind != callee.text)
            .map(|kind| format!("it is {kind}")),
        (Known::Literal(_) | Known::Nothing, _) => None,
    };
    Verdict::Says(with(head, detail))
}

/// The object that lacks a method, in words.
fn owner(scene: &Scene<'_>, object: &Operand, key: &str) -> Option<String> {
    let text = &object.text;
    if let Some(promise) = scene.promise(object) {
        return Some(promise);
    }
    let value = match scene.known(object) {
        Known::Value(value) => value,
        Known::Literal(literal) => {
            let kind = literal_kind(literal);
            let meant = remedies::method(kind, key).map(did_you_mean).unwrap_or_default();
            return Some(format!("{text} is {kind}{meant}"));
        }
        Known::Nothing => return None,
    };
    let kind = scene.kind(value.raw());
    let meant = remedies::method(&kind, key).map(str::to_owned);
    let meant = meant.or_else(|| {
        let members = scene.members(&value);
        misspelled(key, members.iter().map(String::as_str)).map(str::to_owned)
    });
    let hint = meant.map(|name| did_you_mean(&name)).unwrap_or_default();
    Some(match scene.names(value.raw()).filter(|_| kind == "an object") {
        Some(names) => format!("{}{hint}", has(text, &names)),
        None => format!("{text} is {kind}{hint}"),
    })
}

/// A property of `undefined` or `null` was read or written, or a property was written that cannot be.
fn member(
    scene: &Scene<'_>,
    failure: &Failure,
    message: &str,
    object: &Operand,
    key: Option<&str>,
) -> Verdict {
    let known = scene.known(object);
    if matches!(failure, Failure::Assign(_) | Failure::Extend) {
        let frozen = match &known {
            Known::Value(value) => scene.is_frozen(value.raw()),
            _ => false,
        };
        return match (failure, key) {
            (Failure::Extend, Some(key)) if message.starts_with("no setter") => {
                Verdict::Says(format!(
                    "cannot set '{}' of {}: it has only a getter",
                    bounded(key.to_owned(), LIST),
                    object.text
                ))
            }
            (Failure::Extend, Some(key)) => Verdict::Says(format!(
                "cannot add '{}' to {}: {message}",
                bounded(key.to_owned(), LIST),
                object.text
            )),
            _ if frozen => {
                Verdict::Says(with(message.to_owned(), Some(format!("{} is frozen", object.text))))
            }
            _ => Verdict::Silent,
        };
    }
    let word = match &known {
        Known::Value(value) => match nullish(value.raw()) {
            Some(word) => word,
            None => return Verdict::Innocent,
        },
        _ if message.ends_with("null") => "null",
        _ => "undefined",
    };
    let head = match (failure, key) {
        (Failure::Destructure, Some(key)) => {
            format!("cannot delete property '{}' of {word}", bounded(key.to_owned(), LIST))
        }
        _ => message.to_owned(),
    };
    Verdict::Says(with(head, absent(scene, object, word)))
}

/// `order.lines is undefined; order has: id, items`.
fn absent(scene: &Scene<'_>, operand: &Operand, word: &str) -> Option<String> {
    if operand.text == word {
        return None;
    }
    let said = format!("{} is {word}", operand.text);
    let clause = operand.of.as_ref().filter(|_| word == "undefined");
    Some(match clause.and_then(|(object, key)| lacks(scene, object, key)) {
        Some(clause) => format!("{said}; {clause}"),
        None => said,
    })
}

/// The clause on an object without a property of that name.
fn lacks(scene: &Scene<'_>, object: &Operand, key: &str) -> Option<String> {
    if let Some(promise) = scene.promise(object) {
        return Some(promise);
    }
    let Known::Value(value) = scene.known(object) else { return None };
    let names = scene.names(value.raw())?;
    if names.iter().any(|name| name == key) {
        return None;
    }
    let meant = misspelled(key, names.iter().map(String::as_str));
    let hint = meant.map(did_you_mean).unwrap_or_default();
    Some(format!("{}{hint}", has(&object.text, &names)))
}

/// A pattern took `undefined` or `null` apart.
fn pattern(scene: &Scene<'_>, source: Option<&Operand>, key: Option<&str>) -> Verdict {
    let key = key.map(|key| format!("'{}' of ", bounded(key.to_owned(), LIST))).unwrap_or_default();
    let Some(source) = source else {
        return Verdict::Says(format!("cannot destructure {key}undefined or null"));
    };
    let word = match scene.known(source) {
        Known::Value(value) => match nullish(value.raw()) {
            Some(word) => word,
            None => return Verdict::Innocent,
        },
        Known::Literal(literal) => match literal_kind(literal) {
            word @ ("undefined" | "null") => word,
            _ => return Verdict::Innocent,
        },
        Known::Nothing => {
            let text = &source.text;
            let said = format!("cannot destructure {key}undefined or null");
            return Verdict::Says(with(said, Some(format!("the value of {text}"))));
        }
    };
    let said = format!("cannot destructure {key}{word}");
    Verdict::Says(with(said, absent(scene, source, word)))
}

/// A value was iterated that is not iterable.
fn iteration(scene: &Scene<'_>, message: &str, value: Option<&Operand>) -> Verdict {
    let Some(operand) = value else { return Verdict::Silent };
    let text = &operand.text;
    let said = format!("{text} is not iterable");
    if let Some(promise) = scene.promise(operand) {
        return Verdict::Says(with(said, Some(promise)));
    }
    let value = match scene.known(operand) {
        Known::Value(value) => value,
        Known::Literal(literal) => match literal_kind(literal) {
            "an array" | "a string" => return Verdict::Innocent,
            kind if kind == text => return Verdict::Says(said),
            kind => return Verdict::Says(with(said, Some(format!("it is {kind}")))),
        },
        Known::Nothing => {
            let word = ["undefined", "null"].into_iter().find(|word| message.ends_with(word));
            return Verdict::Says(with(said, word.map(|word| format!("it is {word}"))));
        }
    };
    if let Some(word) = nullish(value.raw()) {
        return Verdict::Says(with(said, absent(scene, operand, word)));
    }
    if is_iterable(value.raw()) || message.ends_with("undefined") {
        return Verdict::Innocent;
    }
    let detail = match scene.kind(value.raw()).as_str() {
        "an object" => format!("{text} is an object; its entries: Object.entries({text})"),
        kind => format!("{text} is {kind}"),
    };
    Verdict::Says(with(said, Some(detail)))
}

/// The failures of builtins that there is more to say about: each by the builtin's name and the engine's message.
pub(super) const BUILTIN: [fn(&str, &str) -> bool; 5] = [
    |_, message| {
        matches!(
            message,
            "not a function"
                | "value is not iterable"
                | "Cannot convert undefined or null to object"
                | "cannot convert BigInt to number"
                | "empty array"
                | "circular reference"
        )
    },
    |_, message| message.starts_with("cannot read property 'Symbol.iterator' of "),
    |_, message| cannot_change(message),
    |name, message| name == "toISOString" && message == "Date value is NaN",
    |name, _| name == "parse",
];

fn cannot_change(message: &str) -> bool {
    message.ends_with("' is read-only") || message == "object is not extensible"
}

/// A builtin refused its first argument, or its object.
fn refused(scene: &Scene<'_>, message: &str, callee: &Operand, first: Option<&Operand>) -> Verdict {
    let of = callee.of.as_ref();
    if cannot_change(message) {
        return of
            .map_or(Verdict::Silent, |(object, key)| unchangeable(scene, message, object, key));
    }
    let text = &callee.text;
    let given = first.map_or(Known::Literal(Literal::Undefined), |first| scene.known(first));
    let kind = match &given {
        Known::Value(value) if is_promise(value.raw()) => "a promise: await it".to_owned(),
        Known::Value(value) => scene.kind(value.raw()),
        Known::Literal(literal) => literal_kind(*literal).to_owned(),
        Known::Nothing => String::new(),
    };
    let is = match first {
        None => "there is no argument".to_owned(),
        Some(first) if first.text == kind => format!("it got {kind}"),
        Some(first) => format!("{} is {kind}", first.text),
    };
    let kind = kind.as_str();
    match message {
        "empty array" => Verdict::Says(format!("{text} of an empty array needs an initial value")),
        "Date value is NaN" => Verdict::Says(match of {
            Some((object, _)) => format!("{} is an invalid date", object.text),
            None => return Verdict::Silent,
        }),
        "circular reference" => match first {
            Some(first) => {
                let detail = format!("{} refers to itself, directly or through others", first.text);
                Verdict::Says(with(message.to_owned(), Some(detail)))
            }
            None => Verdict::Silent,
        },
        _ if kind.is_empty() => Verdict::Silent,
        "not a function" if kind != "a function" => {
            Verdict::Says(format!("{text} needs a function ({is})"))
        }
        "Cannot convert undefined or null to object" if matches!(kind, "undefined" | "null") => {
            Verdict::Says(format!("{text} needs an object ({is})"))
        }
        "cannot convert BigInt to number" if kind == "a bigint" => {
            let number = first.map(|first| format!(": Number({})", first.text)).unwrap_or_default();
            Verdict::Says(format!("{text} needs a number ({is}{number})"))
        }
        "not a function"
        | "Cannot convert undefined or null to object"
        | "cannot convert BigInt to number" => Verdict::Silent,
        _ if text.ends_with("JSON.parse") => json(scene, message, &given, &is),
        _ if message.contains("iter") => match kind {
            "an array" | "a string" | "a Map" | "a Set" => Verdict::Silent,
            _ => Verdict::Says(format!("{text} needs an iterable ({is})")),
        },
        _ => Verdict::Silent,
    }
}

/// The text that `JSON.parse` could not read.
fn json(scene: &Scene<'_>, message: &str, given: &Known, is: &str) -> Verdict {
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
            format!("{is}, no text")
        }
        _ => is.to_owned(),
    };
    Verdict::Says(with(message.to_owned(), Some(detail)))
}

/// A builtin tried to change an object that cannot be changed.
fn unchangeable(scene: &Scene<'_>, message: &str, object: &Operand, key: &str) -> Verdict {
    let frozen = match scene.known(object) {
        Known::Value(value) => scene.is_frozen(value.raw()),
        _ => false,
    };
    if !frozen {
        return Verdict::Silent;
    }
    let text = &object.text;
    let instead = match key {
        "sort" => format!("; use {text}.toSorted"),
        "reverse" => format!("; use {text}.toReversed"),
        "splice" => format!("; use {text}.toSpliced"),
        "push" | "unshift" | "pop" | "shift" | "fill" | "copyWithin" => {
            format!("; copy it: [...{text}]")
        }
        _ => String::new(),
    };
    Verdict::Says(with(message.to_owned(), Some(format!("{text} is frozen{instead}"))))
}

/// A constant was assigned.
fn variable(scene: &Scene<'_>, failure: &Failure, message: &str) -> String {
    let of_the_host = match failure {
        Failure::Assign(name) => scene.globals().contains(name) && !scene.visible().contains(name),
        _ => false,
    };
    let detail = if of_the_host { "it is a global of this sandbox" } else { "it is a constant" };
    with(message.to_owned(), Some(detail.to_owned()))
}

/// A bigint and a number met.
fn binary(scene: &Scene<'_>, left: &Operand, right: &Operand) -> Verdict {
    let kind = |operand: &Operand| match scene.known(operand) {
        Known::Value(value) => Some(scene.kind(value.raw())),
        Known::Literal(literal) => Some(literal_kind(literal).to_owned()),
        Known::Nothing => None,
    };
    let (first, second) = (kind(left), kind(right));
    let said = |kind: &Option<String>, word: &str| kind.as_deref().is_none_or(|kind| kind == word);
    let mixed = |a: &Option<String>, b: &Option<String>| {
        said(a, "a bigint") && b.as_deref() != Some("a bigint")
    };
    if !mixed(&first, &second) && !mixed(&second, &first) {
        return Verdict::Innocent;
    }
    let facts: Vec<String> = [(left, first), (right, second)]
        .into_iter()
        .filter_map(|(operand, kind)| Some(format!("{} is {}", operand.text, kind?)))
        .collect();
    let detail = (!facts.is_empty()).then(|| facts.join(", "));
    Verdict::Says(with("cannot mix a bigint and a number".to_owned(), detail))
}

/// The value on the right of `in` or `instanceof` is of a wrong kind.
fn relation(scene: &Scene<'_>, message: &str, right: &Operand) -> Verdict {
    let kind = match scene.known(right) {
        Known::Value(value) => scene.kind(value.raw()),
        Known::Literal(literal) => literal_kind(literal).to_owned(),
        Known::Nothing => return Verdict::Silent,
    };
    let text = &right.text;
    let (word, wanted) =
        if message.contains("'in'") { ("in", "object") } else { ("instanceof", "class") };
    Verdict::Says(format!("the right side of {word} is no {wanted} ({text} is {kind})"))
}

/// A name was used that is not declared, or not yet.
fn name(scene: &Scene<'_>, failure: &Failure, message: &str, declared: Option<u32>) -> String {
    let Failure::Name(name) = failure else { return message.to_owned() };
    if message.ends_with("initialized") {
        let detail = declared.map(|line| format!("it is declared on line {line}"));
        return with(message.to_owned(), detail);
    }
    let globals = scene.globals();
    let visible = scene.visible();
    let known = visible.iter().chain(&globals).map(String::as_str).chain(GLOBALS.iter().copied());
    let listed = || {
        let names = list(&globals);
        if names.is_empty() { names } else { format!(", its globals are: {names}") }
    };
    if name == "require" {
        return match scene.importable.first() {
            Some(_) => format!("{message}; use import, which knows: {}", list(&scene.importable)),
            None => format!("{message}; there are no modules to import here"),
        };
    }
    if let Some(clause) = remedies::absent_name(name) {
        let here = if clause.starts_with("this sandbox") { listed() } else { String::new() };
        return format!("{message}; {clause}{here}");
    }
    match misspelled(name, known) {
        Some(meant) => format!("{message}; did you mean '{meant}'?"),
        None => message.to_owned(),
    }
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

fn with(said: String, detail: Option<String>) -> String {
    match detail {
        Some(detail) => format!("{said} ({detail})"),
        None => said,
    }
}
