//! The words around numbers and lists: kinds of plural, lists of texts, and distances in time.
//!
//! In: numbers or texts, and options. Out: a kind's name, or the parts of a text.

use super::{
    Part,
    decimal::Decimal,
    number::{Digits, Number, NumberOptions, Size},
    options::{ListKind, Named, RelativeUnit, TextWidth},
};

/// The kind of a number among those that count things, or those that give things an order.
pub(crate) fn plural(mut number: Number, digits: &Digits, is_ordinal: bool) -> &'static str {
    let Size::Finite(decimal) = &mut number.size else { return "other" };
    let least = digits.round(decimal, number.is_negative);
    if is_ordinal {
        ordinal(decimal)
    } else if decimal.is(1) && least == 0 {
        "one"
    } else {
        "other"
    }
}

fn ordinal(number: &Decimal) -> &'static str {
    if number.fraction_count() > 0 {
        return "other";
    }
    let last = number.last_two();
    match (last % 10, last / 10) {
        (_, 1) => "other",
        (1, _) => "one",
        (2, _) => "two",
        (3, _) => "few",
        _ => "other",
    }
}

/// The names of all kinds.
pub(crate) fn plural_names(is_ordinal: bool) -> &'static [&'static str] {
    if is_ordinal { &["few", "one", "two", "other"] } else { &["one", "other"] }
}

/// A list of texts in one text.
pub(crate) fn list(items: Vec<String>, kind: ListKind, width: TextWidth) -> Vec<Part> {
    let word = match (kind, width) {
        (ListKind::Conjunction, TextWidth::Long) => "and ",
        (ListKind::Conjunction, TextWidth::Short) => "& ",
        (ListKind::Disjunction, _) => "or ",
        _ => "",
    };
    let is_bare = kind == ListKind::Unit && width == TextWidth::Narrow;
    let comma = if is_bare { " " } else { ", " };
    let last = items.len().saturating_sub(1);
    let mut parts = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 && index == last {
            let comma = if last == 1 && !word.is_empty() { " " } else { comma };
            parts.push(Part::new("literal", format!("{comma}{word}")));
        } else if index > 0 {
            parts.push(Part::new("literal", comma));
        }
        parts.push(Part::new("element", item));
    }
    parts
}

/// The unit of a distance in time, with or without the `s` of the plural.
pub(crate) fn relative_unit(name: &str) -> Option<RelativeUnit> {
    RelativeUnit::of(name).or_else(|| RelativeUnit::of(name.strip_suffix('s')?))
}

/// A distance in time: the parts that belong to the number, and those around it are told apart by `literal`.
pub(crate) fn relative(
    value: f64,
    unit: RelativeUnit,
    width: TextWidth,
    is_auto: bool,
) -> Vec<Part> {
    if let Some(word) = is_auto.then(|| day_word(value, unit, width)).flatten() {
        return vec![Part::new("literal", word)];
    }
    let is_past = value.is_sign_negative();
    let number = NumberOptions::PLAIN.parts(Number::of_double(value.abs()));
    let digits = Digits::of_fraction(0, 3);
    let is_one = plural(Number::of_double(value.abs()), &digits, false) == "one";
    let name = unit_text(unit, width, is_one);
    let mut parts = Vec::new();
    if !is_past {
        parts.push(Part::new("literal", "in "));
    }
    parts.extend(number);
    parts.push(Part::new("literal", if is_past { format!("{name} ago") } else { name }));
    parts
}

/// The unit after a number, with the blank between them.
fn unit_text(unit: RelativeUnit, width: TextWidth, is_one: bool) -> String {
    let full = unit.name();
    let many = if is_one { "" } else { "s" };
    match width {
        TextWidth::Long => format!(" {full}{many}"),
        TextWidth::Short => match unit {
            RelativeUnit::Day => format!(" {full}{many}"),
            RelativeUnit::Quarter => format!(" qtr{many}."),
            _ => format!(" {}.", short(unit)),
        },
        TextWidth::Narrow => match unit {
            RelativeUnit::Month => "mo".to_owned(),
            _ => full.chars().take(1).collect(),
        },
    }
}

fn short(unit: RelativeUnit) -> &'static str {
    match unit {
        RelativeUnit::Second => "sec",
        RelativeUnit::Minute => "min",
        RelativeUnit::Hour => "hr",
        RelativeUnit::Day => "day",
        RelativeUnit::Week => "wk",
        RelativeUnit::Month => "mo",
        RelativeUnit::Quarter => "qtr",
        RelativeUnit::Year => "yr",
    }
}

/// The word for the unit before this one, for this one, and for the next.
fn day_word(value: f64, unit: RelativeUnit, width: TextWidth) -> Option<String> {
    // As in ICU, hundredths count.
    let place = match (value * 100.0).round() {
        -100.0 => 0,
        0.0 => 1,
        100.0 => 2,
        _ => return None,
    };
    Some(match unit {
        RelativeUnit::Second => (place == 1).then(|| "now".to_owned())?,
        RelativeUnit::Minute | RelativeUnit::Hour => {
            (place == 1).then(|| format!("this {}", unit.name()))?
        }
        RelativeUnit::Day => ["yesterday", "today", "tomorrow"][place].to_owned(),
        _ => {
            let which = ["last", "this", "next"][place];
            match width {
                TextWidth::Long => format!("{which} {}", unit.name()),
                _ => format!("{which} {}.", short(unit)),
            }
        }
    })
}
