//! The arguments of a console call as a line of text.
//!
//! In: a message, one array. Out: the line that a console prints, with the formats of its first argument. No code of the
//! sandbox runs for that, and the text of values is bounded: a log may name one object often, so that its text would be
//! far longer than its message.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

use super::{inspect::inspect, text::bounded};
use crate::value::{Event, Reader, Str, Value};

/// The fewest bytes to which a value is cut.
const LEAST_BYTES: usize = 16;

/// The arguments of a log as a line, with at most that many bytes of values that are no strings. Costs as much as the
/// message is long.
///
/// ```
/// # use isolane::Value;
/// let args = Value::serialize(&("%d of %s", 2, "three", [1]))?;
/// assert_eq!(isolane::console_line::<1000>(&args), "2 of three [ 1 ]");
/// # Ok::<(), isolane::Error>(())
/// ```
#[must_use]
pub fn console_line<const BYTES: usize>(args: &Value) -> String {
    if let Some(text) = only_text(args) {
        return text;
    }
    let mut room = Room { bytes: BYTES };
    let Ok(Arguments { values, are_all }) = args.deserialize::<Arguments<BYTES>>() else {
        // A message that an isolate has written is a list.
        return room.inspect(args);
    };
    let mut rest = values.iter();
    let mut line = match values.first().and_then(text_of).filter(|text| text.contains('%')) {
        Some(format) => {
            rest.next();
            formatted(&format, &mut rest, &mut room)
        }
        None => rest.next().map(|value| room.show(value)).unwrap_or_default(),
    };
    for value in rest {
        line.push(' ');
        line.push_str(&room.show(value));
    }
    if !are_all {
        line.push_str(" …");
    }
    line
}

/// The arguments of a log, each with a copy of all that it names: of values that are no strings at most that many bytes, and
/// one more.
struct Arguments<const BYTES: usize> {
    values: Vec<Value>,
    /// Whether none was left out.
    are_all: bool,
}

impl<'de, const BYTES: usize> Deserialize<'de> for Arguments<BYTES> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Few::<BYTES>)
    }
}

struct Few<const BYTES: usize>;

impl<'de, const BYTES: usize> Visitor<'de> for Few<BYTES> {
    type Value = Arguments<BYTES>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of arguments")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let (mut values, mut bytes) = (Vec::new(), 0);
        while bytes <= BYTES {
            let Some(value) = from.next_element::<Value>()? else {
                return Ok(Arguments { values, are_all: true });
            };
            if !matches!(value.reader().event(), Ok(Event::String(_))) {
                bytes += value.nodes().len();
            }
            values.push(value);
        }
        let mut are_all = true;
        while from.next_element::<IgnoredAny>()?.is_some() {
            are_all = false;
        }
        Ok(Arguments { values, are_all })
    }
}

/// The room that is left for values that are no strings.
struct Room {
    bytes: usize,
}

impl Room {
    fn show(&mut self, value: &Value) -> String {
        text_of(value).or_else(|| self.stack(value)).unwrap_or_else(|| self.inspect(value))
    }

    /// The stack of an error, which begins with its name and its message and ends with its causes.
    fn stack(&mut self, value: &Value) -> Option<String> {
        let mut reader = value.reader();
        let Event::Error(_) = reader.event().ok()? else { return None };
        reader.text().ok()?;
        reader.text().ok()?;
        let Event::String(stack) = reader.event().ok()? else { return None };
        let stack = bounded(owned(&stack), self.bytes.max(LEAST_BYTES));
        self.bytes = self.bytes.saturating_sub(stack.len());
        Some(stack)
    }

    fn inspect(&mut self, value: &Value) -> String {
        if self.bytes == 0 {
            return "…".to_owned();
        }
        let text = inspect(value, self.bytes.max(LEAST_BYTES));
        self.bytes = self.bytes.saturating_sub(text.len());
        text
    }
}

/// The text of a log that has one argument, a string: most have.
fn only_text(args: &Value) -> Option<String> {
    let mut reader = Reader::new(args.nodes());
    match reader.event().ok()? {
        Event::Array(1) => match reader.event().ok()? {
            Event::String(text) => Some(owned(&text)),
            _ => None,
        },
        _ => None,
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value.reader().event().ok()? {
        Event::String(text) => Some(owned(&text)),
        _ => None,
    }
}

fn owned(text: &Str<'_>) -> String {
    text.to_string_lossy()
}

/// The format with as many values in it as it asks for, as consoles do it.
fn formatted<'v>(
    format: &str,
    values: &mut impl Iterator<Item = &'v Value>,
    room: &mut Room,
) -> String {
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        let kind = rest[at + 1..].chars().next();
        let length = 1 + kind.map_or(0, char::len_utf8);
        let directive = &rest[at..at + length];
        rest = &rest[at + length..];
        match kind {
            Some('%') => text.push('%'),
            Some(kind @ ('s' | 'd' | 'i' | 'f' | 'j' | 'o' | 'O' | 'c')) => match values.next() {
                None => text.push_str(directive),
                Some(_) if kind == 'c' => {}
                Some(value) => text.push_str(&converted(kind, value, room)),
            },
            _ => text.push_str(directive),
        }
    }
    text.push_str(rest);
    text
}

fn converted(kind: char, value: &Value, room: &mut Room) -> String {
    if !matches!(kind, 'd' | 'i' | 'f') {
        return room.show(value);
    }
    let number = match value.reader().event() {
        Ok(Event::Int(number)) => f64::from(number),
        Ok(Event::Double(number)) => number,
        Ok(Event::Bool(value)) => f64::from(u8::from(value)),
        Ok(Event::BigInt { .. }) => return room.show(value),
        Ok(Event::String(text)) => text.to_string_lossy().trim().parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    };
    let number = if kind == 'i' { number.trunc() } else { number };
    Value::serialize(&number).map_or_else(|_| "NaN".to_owned(), |number| room.show(&number))
}
