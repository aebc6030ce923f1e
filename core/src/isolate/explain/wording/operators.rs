//! The words for iterations, conversions and operators that failed.

use super::{
    super::values::{Known, Scene, is_iterable, literal_kind, nullish},
    Verdict, is, kind, members, with,
};
use crate::{
    isolate::engine::{sys, tag_of},
    modules::program::explain::Operand,
};

/// A value was iterated that is not iterable.
pub(super) fn iteration(scene: &Scene<'_>, message: &str, value: Option<&Operand>) -> Verdict {
    let Some(operand) = value else { return Verdict::Suspected(None) };
    let text = &operand.text;
    let said = format!("{text} is not iterable");
    if let Some(promise) = scene.promise(operand) {
        return Verdict::Guilty(with(said, Some(promise)));
    }
    let value = match scene.known(operand) {
        Known::Value(value) => value,
        Known::Literal(literal) => match literal_kind(literal) {
            "an array" | "a string" => return Verdict::Innocent,
            kind => return Verdict::Guilty(with(said, is(text, kind))),
        },
        Known::Nothing => {
            let word = ["undefined", "null"].into_iter().find(|word| message.ends_with(word));
            let fact = word.map(|word| format!("it is {word}"));
            return Verdict::Suspected(Some(with(said, fact)));
        }
    };
    if let Some(word) = nullish(value.raw()) {
        return Verdict::Guilty(with(said, members::absent(scene, operand, word)));
    }
    if is_iterable(value.raw()) || message.ends_with("undefined") || message.ends_with("null") {
        return Verdict::Innocent;
    }
    let detail = match scene.kind(value.raw()).as_str() {
        "an object" if !text.contains(' ') => {
            format!("{text} is an object; its entries: Object.entries({text})")
        }
        kind => format!("{text} is {kind}"),
    };
    Verdict::Guilty(with(said, Some(detail)))
}

/// A bigint and a number met.
pub(super) fn mixed(scene: &Scene<'_>, left: &Operand, right: &Operand) -> Verdict {
    let (first, second) = (kind(scene, left), kind(scene, right));
    let mixed = |a: &Option<String>, b: &Option<String>| {
        a.as_deref().is_none_or(|kind| kind == "a bigint") && b.as_deref() != Some("a bigint")
    };
    if !mixed(&first, &second) && !mixed(&second, &first) {
        return Verdict::Innocent;
    }
    let facts: Vec<String> = [(left, first), (right, second)]
        .into_iter()
        .filter_map(|(operand, kind)| Some(format!("{} is {}", operand.text, kind?)))
        .collect();
    let detail = (!facts.is_empty()).then(|| facts.join(", "));
    let certain = facts.len() == 2;
    let said = with("cannot mix a bigint and a number".to_owned(), detail);
    if certain { Verdict::Guilty(said) } else { Verdict::Suspected(Some(said)) }
}

/// A value was converted that cannot be.
pub(super) fn conversion(scene: &Scene<'_>, message: &str, operand: &Operand) -> Verdict {
    let Known::Value(value) = scene.known(operand) else { return Verdict::Innocent };
    let text = &operand.text;
    let symbol = tag_of(value.raw()) == sys::JS_TAG_SYMBOL;
    match message {
        "toPrimitive" if scene.kind(value.raw()).starts_with("an object") => {
            let said = "cannot convert an object to a text or a number".to_owned();
            Verdict::Guilty(with(said, Some(format!("{text} has neither toString nor valueOf"))))
        }
        _ if symbol && message != "toPrimitive" => {
            let converts = format!("{text} is a symbol: String({text}) converts it");
            Verdict::Guilty(with(message.to_owned(), Some(converts)))
        }
        _ => Verdict::Innocent,
    }
}

/// The value on the right of `in` or `instanceof` is of a wrong kind.
pub(super) fn relation(scene: &Scene<'_>, message: &str, right: &Operand) -> Verdict {
    let Some(kind) = kind(scene, right) else { return Verdict::Suspected(None) };
    let (word, wanted) =
        if message.contains("'in'") { ("in", "object") } else { ("instanceof", "class") };
    let said = format!("the right side of '{word}' is no {wanted}");
    Verdict::Guilty(with(said, is(&right.text, &kind)))
}
