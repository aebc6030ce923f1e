//! Units of measure.
//!
//! In: the number of a unit, and perhaps that of a unit per which it is. Out: the text after a number.

use super::options::UnitDisplay;

/// Rows of `unit|short|short of several|narrow|narrow of several|long|long of several|per: short|narrow|long`, in
/// which a text begins with the blank between a number and it; an empty one is that to its left.
const TABLE: &str = include_str!("data/units.txt");

/// Units per others that have a text of their own: short and narrow.
const WHOLE: [(&str, &str, &str, &str); 2] =
    [("mile", "hour", " mph", "mph"), ("mile", "gallon", " mpg", "mpg")];

/// The place of a unit in the table.
pub(crate) fn number(name: &str) -> Option<u8> {
    let place = TABLE.lines().position(|row| row.split('|').next() == Some(name));
    place.and_then(|place| u8::try_from(place).ok())
}

/// The name of a unit.
pub(crate) fn name(number: u8) -> &'static str {
    row(number).next().unwrap_or_default()
}

fn row(number: u8) -> impl Iterator<Item = &'static str> {
    TABLE.lines().nth(usize::from(number)).unwrap_or_default().split('|')
}

/// The text after a number, with the blank between them.
pub(crate) fn text(unit: u8, per: Option<u8>, display: UnitDisplay, is_one: bool) -> String {
    let of = |number: u8| {
        let fields: Vec<&str> = row(number).collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or_default();
        let at = 1 + 2 * display as usize;
        let own = if is_one || field(at + 1).is_empty() { field(at) } else { field(at + 1) };
        (own, field(7 + display as usize))
    };
    let Some(per) = per else { return of(unit).0.to_owned() };
    let names = (name(unit), name(per));
    let whole = WHOLE.iter().find(|(of, per, ..)| (*of, *per) == names);
    match (whole, display) {
        (Some((.., short, _)), UnitDisplay::Short) => (*short).to_owned(),
        (Some((.., narrow)), UnitDisplay::Narrow) => (*narrow).to_owned(),
        _ => format!("{}{}", of(unit).0, of(per).1),
    }
}
