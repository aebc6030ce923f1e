//! The words for iterations, conversions and operators that failed.

use super::{
    super::values::{Known, Values, is_iterable, literal_kind, nullish},
    Verdict, is, kind, members, with,
};
use crate::modules::program::explain::Operand;

/// A value was iterated that is not iterable.
pub(super) fn iteration(values: &Values<'_>, message: &str, value: Option<&Operand>) -> Verdict {
    let Some(operand) = value else { return Verdict::Possible(None) };
    let text = &operand.text;
    let said = format!("{text} is not iterable");
    if let Some(promise) = values.promise(operand) {
        return Verdict::Proven(with(said, Some(promise)));
    }
    let value = match values.known(operand) {
        Known::Value(value) => value,
        Known::Literal(literal) => match literal_kind(literal) {
            "an array" | "a string" => return Verdict::Excluded,
            kind => return Verdict::Proven(with(said, is(text, kind))),
        },
        Known::Nothing => {
            let word = ["undefined", "null"].into_iter().find(|word| message.ends_with(word));
            let fact = word.map(|word| format!("it is {word}"));
            return Verdict::Possible(Some(with(said, fact)));
        }
    };
    if let Some(word) = nullish(value.raw()) {
        return Verdict::Proven(with(said, members::absent(values, operand, word)));
    }
    if is_iterable(value.raw()) || message.ends_with("undefined") || message.ends_with("null") {
        return Verdict::Excluded;
    }
    let detail = match values.kind(value.raw()).as_str() {
        "an object" if !text.contains(' ') => {
            format!("{text} is an object; its entries: Object.entries({text})")
        }
        kind => format!("{text} is {kind}"),
    };
    Verdict::Proven(with(said, Some(detail)))
}

/// A bigint and a number met.
pub(super) fn mixed(values: &Values<'_>, left: &Operand, right: &Operand) -> Verdict {
    let (first, second) = (kind(values, left), kind(values, right));
    let mixed = |a: &Option<String>, b: &Option<String>| {
        a.as_deref().is_none_or(|kind| kind == "a bigint") && b.as_deref() != Some("a bigint")
    };
    if !mixed(&first, &second) && !mixed(&second, &first) {
        return Verdict::Excluded;
    }
    let facts: Vec<String> = [(left, first), (right, second)]
        .into_iter()
        .filter_map(|(operand, kind)| Some(format!("{} is {}", operand.text, kind?)))
        .collect();
    let detail = (!facts.is_empty()).then(|| facts.join(", "));
    let certain = facts.len() == 2;
    let said = with("cannot mix a bigint and a number".to_owned(), detail);
    if certain { Verdict::Proven(said) } else { Verdict::Possible(Some(said)) }
}

/// A bigint was shifted to the right without a sign.
pub(super) fn shifted(
    values: &Values<'_>,
    message: &str,
    left: &Operand,
    right: &Operand,
) -> Verdict {
    let mut facts = Vec::new();
    for operand in [left, right] {
        match kind(values, operand).as_deref() {
            Some("a bigint") => facts.push(format!("{} is a bigint", operand.text)),
            Some(_) => return Verdict::Excluded,
            None => {}
        }
    }
    let proven = facts.len() == 2;
    let detail = (!facts.is_empty()).then(|| facts.join(", "));
    let said = with(message.to_owned(), detail);
    if proven { Verdict::Proven(said) } else { Verdict::Possible(Some(said)) }
}

/// A value was converted that cannot be.
pub(super) fn conversion(values: &Values<'_>, message: &str, operand: &Operand) -> Verdict {
    let text = &operand.text;
    let Some(kind) = kind(values, operand) else { return Verdict::Excluded };
    match (message, kind.as_str()) {
        ("toPrimitive", kind) if kind.starts_with("an object") => {
            let said = "cannot convert an object to a text or a number".to_owned();
            Verdict::Proven(with(said, Some(format!("{text} has neither toString nor valueOf"))))
        }
        ("bigint argument with unary +", "a bigint") => {
            let converts = format!("{text} is a bigint: Number({text}) converts it");
            Verdict::Proven(with(message.to_owned(), Some(converts)))
        }
        (message, "a symbol") if message.ends_with("to number") => {
            Verdict::Proven(with(message.to_owned(), Some(format!("{text} is a symbol"))))
        }
        (message, "a symbol") if message.ends_with("to string") => {
            let converts = format!("{text} is a symbol: String({text}) converts it");
            Verdict::Proven(with(message.to_owned(), Some(converts)))
        }
        _ => Verdict::Excluded,
    }
}

/// The value on the right of `in` or `instanceof` is of a wrong kind.
pub(super) fn relation(values: &Values<'_>, message: &str, right: &Operand) -> Verdict {
    let Some(kind) = kind(values, right) else { return Verdict::Possible(None) };
    let (word, wanted) =
        if message.contains("'in'") { ("in", "object") } else { ("instanceof", "class") };
    let said = format!("the right side of '{word}' is no {wanted}");
    Verdict::Proven(with(said, is(&right.text, &kind)))
}
