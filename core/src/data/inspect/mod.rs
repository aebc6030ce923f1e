//! A value as one line of text, for people: `{ a: 1, b: [ 'x' ] }`.
//!
//! In: a message. Out: a limited number of characters, in the form of the console of Node.js. `walk` reads the message
//! once, with a stack of its own, and stops as soon as the text is full; `texts`, `date` and `bytes` have the forms of
//! strings and numbers, of dates and of buffers.

mod bytes;
mod date;
mod texts;
mod walk;

use std::fmt;

pub(crate) use self::texts::number as number_text;
use self::walk::Walk;
use super::options::{self, Spelling};
use crate::{error::Error, value::Value};

/// The bytes of a text whose limit nobody says.
const DEFAULT_LIMIT: usize = 10_000;

/// Checks the limit of a text that a caller gave; without one, 10,000 bytes.
///
/// # Errors
///
/// When it is no whole number of at least 1.
pub fn inspect_limit(limit: Option<f64>) -> Result<usize, Error> {
    let Some(limit) = limit else { return Ok(DEFAULT_LIMIT) };
    let limit = options::read_count("limit", limit, 1, Spelling::Camel)?;
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// A value as a console shows it, as one line in at most `limit` bytes and an ellipsis. A string is bare, and quoted
/// inside of something. Functions of the host have no names. At most 100 items of each container are shown, and three
/// levels of containers.
///
/// ```
/// # use isolane::Value;
/// let rows = Value::serialize(&[("north", 3)])?;
/// assert_eq!(isolane::inspect(&rows, 100), "[ [ 'north', 3 ] ]");
/// # Ok::<(), isolane::Error>(())
/// ```
#[must_use]
pub fn inspect(value: &Value, limit: usize) -> String {
    shown(Style { value, limit, mark: None, names: &|_| String::new() })
}

/// As [`inspect`]. A string that begins with `mark` is bare, without the mark: it stands for a value that cannot be
/// cloned. If the first key of an object begins with the mark, the rest of that key is the name of its class, and the
/// value of that key is not shown.
#[must_use]
pub fn inspect_marked(value: &Value, limit: usize, mark: &str) -> String {
    inspect_with(value, limit, mark, &|_| String::new())
}

/// As `inspect_marked`, and functions of the host have names.
pub(crate) fn inspect_with(
    value: &Value,
    limit: usize,
    mark: &str,
    names: &dyn Fn(u32) -> String,
) -> String {
    shown(Style { value, limit, mark: Some(mark), names })
}

fn shown(style: Style<'_>) -> String {
    super::text::bounded(Walk::new(style).run(), style.limit)
}

#[derive(Clone, Copy)]
struct Style<'s> {
    value: &'s Value,
    limit: usize,
    mark: Option<&'s str>,
    names: &'s dyn Fn(u32) -> String,
}

/// The text of [`inspect`], in at most 10,000 bytes or as many as the precision says.
///
/// ```
/// # use isolane::Value;
/// let rows = Value::serialize(&[1, 2, 3])?;
/// assert_eq!(format!("{rows}"), "[ 1, 2, 3 ]");
/// assert_eq!(format!("{rows:.8}"), "[ 1, …");
/// # Ok::<(), isolane::Error>(())
/// ```
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&inspect(self, out.precision().unwrap_or(DEFAULT_LIMIT)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Writer;

    fn list(length: u32) -> Value {
        let mut writer = Writer::new();
        writer.array(2);
        writer.array(length);
        (0..length).for_each(|_| writer.int(7));
        writer.string("after");
        writer.finish()
    }

    #[test]
    fn long_lists_are_cut() {
        assert!(inspect(&list(100), 10_000).ends_with(" 7, 7 ], 'after' ]"));
        assert!(inspect(&list(101), 10_000).ends_with(" 7, ... 1 more item ], 'after' ]"));
        assert!(inspect(&list(3000), 10_000).ends_with(" 7, ... 2900 more items ], 'after' ]"));
    }

    #[test]
    fn deep_containers_are_named_and_the_rest_is_shown() {
        let mut writer = Writer::new();
        writer.array(2);
        for _ in 0..2 {
            writer.array(1);
        }
        writer.array(4);
        writer.object();
        writer.key("a");
        writer.array(1);
        writer.int(1);
        writer.end_object();
        writer.array(0);
        writer.map(1);
        writer.int(1);
        writer.set(0);
        writer.int(5);
        writer.int(6);
        let shown = inspect(&writer.finish(), 1000);
        assert_eq!(shown, "[ [ [ [Array] ] ], 6 ]");
    }

    #[test]
    fn shared_values_are_shown_again_and_circles_are_named() {
        let mut writer = Writer::new();
        writer.object();
        writer.key("a");
        writer.array(1);
        writer.int(1);
        writer.key("b");
        writer.reference(1);
        writer.key("self");
        writer.reference(0);
        writer.end_object();
        let shown = inspect(&writer.finish(), 1000);
        assert_eq!(shown, "<ref *1> { a: [ 1 ], b: [ 1 ], self: [Circular *1] }");
    }

    #[test]
    fn holes_are_counted() {
        let mut writer = Writer::new();
        writer.array(4);
        writer.hole();
        writer.hole();
        writer.int(1);
        writer.hole();
        let shown = inspect(&writer.finish(), 1000);
        assert_eq!(shown, "[ <2 empty items>, 1, <1 empty item> ]");
        let mut writer = Writer::new();
        writer.sparse_array(10);
        writer.sparse_index(2);
        writer.int(5);
        writer.end_sparse_array();
        let shown = inspect(&writer.finish(), 1000);
        assert_eq!(shown, "[ <2 empty items>, 5, <7 empty items> ]");
    }

    #[test]
    fn a_marked_key_is_the_name_of_the_class() {
        let mut writer = Writer::new();
        writer.array(3);
        for _ in 0..2 {
            writer.object();
            writer.key("\u{1}Acc");
            writer.undefined();
            writer.key("total");
            writer.int(3);
            writer.end_object();
        }
        writer.string("\u{1}[Pool]");
        let value = writer.finish();
        let shown = inspect_marked(&value, 1000, "\u{1}");
        assert_eq!(shown, "[ Acc { total: 3 }, Acc { total: 3 }, [Pool] ]");
    }

    #[test]
    fn a_text_that_grows_by_sharing_is_cut() {
        let mut writer = Writer::new();
        writer.array(2);
        writer.string(&"x".repeat(500));
        writer.array(100);
        writer.array(1);
        writer.string(&"y".repeat(400));
        (0..99).for_each(|_| writer.reference(2));
        let shown = inspect(&writer.finish(), 2000);
        assert!(shown.len() <= 2000 && shown.ends_with('…'));
    }
}
