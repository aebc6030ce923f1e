//! A value as one line of text, for people: `{ a: 1, b: [ 'x' ] }`.
//!
//! In: a message. Out: a limited number of characters. Reads the message once, with a stack of its own, and stops as
//! soon as the text is full.

mod bytes;

use crate::value::{Event, Reader, Str, Value};

/// The number of nested levels that are shown; deeper objects are `…`.
const DEPTH: usize = 4;

/// A value as a console shows it, as one line in at most `limit` bytes and an ellipsis. A string is bare, and quoted
/// inside of something. Functions of the host have no names.
///
/// ```
/// # use isolane::Value;
/// let rows = Value::serialize(&[("north", 3)])?;
/// assert_eq!(isolane::inspect(&rows, 100), "[ [ 'north', 3 ] ]");
/// # Ok::<(), isolane::Error>(())
/// ```
#[must_use]
pub fn inspect(value: &Value, limit: usize) -> String {
    let style = Style { value, limit, mark: None, names: &|_| String::new() };
    shown(value, style)
}

/// As `inspect`. A string that begins with `mark` is bare, without the mark; and functions of the host have names.
pub(crate) fn inspect_with(
    value: &Value,
    limit: usize,
    mark: &str,
    names: &dyn Fn(u32) -> String,
) -> String {
    shown(value, Style { value, limit, mark: Some(mark), names })
}

fn shown(value: &Value, style: Style<'_>) -> String {
    let mut reader = value.reader();
    let mut text = String::new();
    // A message with an error is shown up to the error.
    let _ = show(&mut reader, &mut text, style);
    super::text::bounded(text, style.limit)
}

#[derive(Clone, Copy)]
struct Style<'s> {
    value: &'s Value,
    limit: usize,
    mark: Option<&'s str>,
    names: &'s dyn Fn(u32) -> String,
}

enum Frame {
    Object { first: bool },
    List { left: u32, first: bool, close: &'static str },
    Map { left: u32, first: bool, close: &'static str },
    Sparse { first: bool },
}

fn show(reader: &mut Reader<'_>, text: &mut String, style: Style<'_>) -> Option<()> {
    let limit = style.limit;
    let mut frames = Vec::new();
    node(reader, text, &mut frames, style)?;
    loop {
        let depth = frames.len();
        let Some(frame) = frames.last_mut() else { return Some(()) };
        if text.len() > limit || depth > DEPTH {
            text.push('…');
            return None;
        }
        match frame {
            Frame::Object { first } => match reader.key().ok()? {
                None => {
                    text.push_str(if *first { "}" } else { " }" });
                    frames.pop();
                }
                Some(key) => {
                    text.push_str(if *first { " " } else { ", " });
                    *first = false;
                    key_text(text, key.text, limit);
                    text.push_str(": ");
                    node(reader, text, &mut frames, style)?;
                }
            },
            Frame::Sparse { first } => match reader.sparse_index().ok()? {
                None => {
                    text.push_str(if *first { "]" } else { " ]" });
                    frames.pop();
                }
                Some(index) => {
                    text.push_str(if *first { " " } else { ", " });
                    *first = false;
                    text.push_str(&format!("{index}: "));
                    node(reader, text, &mut frames, style)?;
                }
            },
            Frame::List { left: 0, first, close } | Frame::Map { left: 0, first, close } => {
                text.push_str(if *first { "" } else { " " });
                text.push_str(close);
                frames.pop();
            }
            Frame::List { left, first, .. } => {
                *left -= 1;
                text.push_str(if *first { " " } else { ", " });
                *first = false;
                node(reader, text, &mut frames, style)?;
            }
            Frame::Map { left, first, .. } => {
                *left -= 1;
                let key = left.is_multiple_of(2);
                text.push_str(match (key, *first) {
                    (false, true) => " ",
                    (false, false) => ", ",
                    (true, _) => " => ",
                });
                *first = false;
                node(reader, text, &mut frames, style)?;
            }
        }
    }
}

fn node(
    reader: &mut Reader<'_>,
    text: &mut String,
    frames: &mut Vec<Frame>,
    style: Style<'_>,
) -> Option<()> {
    let limit = style.limit;
    let nested = !frames.is_empty();
    match reader.event().ok()? {
        Event::Undefined => text.push_str("undefined"),
        Event::Null => text.push_str("null"),
        Event::Bool(value) => text.push_str(if value { "true" } else { "false" }),
        Event::Int(value) => text.push_str(&value.to_string()),
        Event::Double(value) => text.push_str(&number(value)),
        Event::BigInt { negative, magnitude } => bigint(text, negative, magnitude),
        Event::String(value) => string(text, value, nested, style),
        Event::Hole => text.push_str("<empty>"),
        Event::Ref(_) => text.push_str("[Circular]"),
        Event::Object => {
            text.push('{');
            frames.push(Frame::Object { first: true });
        }
        Event::Array(left) => {
            text.push('[');
            frames.push(Frame::List { left, first: true, close: "]" });
        }
        Event::SparseArray(length) => {
            text.push_str(&format!("({length}) ["));
            frames.push(Frame::Sparse { first: true });
        }
        Event::Map(entries) => {
            text.push_str(&format!("Map({entries}) {{"));
            let left = entries.checked_mul(2)?;
            frames.push(Frame::Map { left, first: true, close: "}" });
        }
        Event::Set(left) => {
            text.push_str(&format!("Set({left}) {{"));
            frames.push(Frame::List { left, first: true, close: "}" });
        }
        Event::Date(time) => text.push_str(&format!("Date({})", number(time))),
        Event::RegExp => {
            let (source, flags) = (reader.text().ok()?, reader.text().ok()?);
            text.push('/');
            push(text, source, limit);
            text.push('/');
            push(text, flags, limit);
        }
        Event::Error(_) => {
            let (name, message) = (reader.text().ok()?, reader.text().ok()?);
            reader.event().ok()?;
            reader.event().ok()?;
            text.push('[');
            push(text, name, limit);
            text.push_str(": ");
            push(text, message, limit);
            text.push(']');
        }
        Event::Buffer(blob) => bytes::buffer(text, style.value, blob),
        Event::View { kind, blob, byte_offset, length } => {
            bytes::view(text, style.value, kind, (blob, byte_offset, length));
        }
        Event::HostFunction(number) => {
            reader.text().ok()?;
            function(text, &(style.names)(number));
        }
        Event::SandboxFunction(_) => function(text, &reader.text().ok()?.to_string_lossy()),
        Event::HostPromise(_) | Event::SandboxPromise(_) => text.push_str("[Promise]"),
    }
    Some(())
}

fn function(text: &mut String, name: &str) {
    match name {
        "" => text.push_str("[Function (anonymous)]"),
        name => text.push_str(&format!("[Function: {name}]")),
    }
}

fn string(text: &mut String, value: Str<'_>, nested: bool, style: Style<'_>) {
    let from = text.len();
    push(text, value, style.limit);
    let shown = text.split_off(from);
    match style.mark.and_then(|mark| shown.strip_prefix(mark)) {
        Some(placeholder) => text.push_str(placeholder),
        None if nested => quote(text, &shown),
        None => text.push_str(&shown),
    }
}

/// A key, in quotes unless it is a plain name.
fn key_text(text: &mut String, key: Str<'_>, limit: usize) {
    let from = text.len();
    push(text, key, limit);
    let shown = text.split_off(from);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if shown.bytes().all(plain)
        && !shown.is_empty()
        && !shown.starts_with(|c: char| c.is_ascii_digit())
    {
        text.push_str(&shown);
    } else {
        quote(text, &shown);
    }
}

/// A string in quotes: single ones, or others that it does not have.
fn quote(text: &mut String, string: &str) {
    let has = |part: &str| string.contains(part);
    let quote = match (has("'"), has("\""), has("`") || has("${")) {
        (false, ..) | (true, true, true) => '\'',
        (true, false, _) => '"',
        (true, true, false) => '`',
    };
    text.push(quote);
    for char in string.chars() {
        match char {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{b}' => text.push_str("\\v"),
            '\u{c}' => text.push_str("\\f"),
            '\\' => text.push_str("\\\\"),
            char if char == quote => text.extend(['\\', char]),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
                text.push_str(&format!("\\x{:02X}", u32::from(char)));
            }
            char => text.push(char),
        }
    }
    text.push(quote);
}

/// Adds the part of a text that can be shown, and one character more, which marks it as cut.
fn push(text: &mut String, value: Str<'_>, limit: usize) {
    let room = (limit + 1).saturating_sub(text.len());
    match value {
        Str::Utf8(value) => text.push_str(&value[..value.ceil_char_boundary(room)]),
        Str::Utf16(bytes) => {
            // A unit takes at least one byte.
            let beginning = bytes.get(..2 * room).unwrap_or(bytes);
            text.push_str(&Str::Utf16(beginning).to_string_lossy());
        }
    }
}

/// A bigint of up to 128 bits as JavaScript writes it, a larger one by its size.
fn bigint(text: &mut String, negative: bool, magnitude: &[u8]) {
    let mut bytes = [0; size_of::<u128>()];
    match bytes.get_mut(..magnitude.len()) {
        Some(low) => {
            low.copy_from_slice(magnitude);
            let sign = if negative { "-" } else { "" };
            text.push_str(&format!("{sign}{}n", u128::from_le_bytes(bytes)));
        }
        None => text.push_str(&format!("<a bigint of {} bytes>", magnitude.len())),
    }
}

/// A number as JavaScript writes it, except that `-0` keeps its sign.
fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else if value != 0.0 && !(1e-6..1e21).contains(&value.abs()) {
        let text = format!("{value:e}");
        if value.abs() < 1.0 { text } else { text.replace('e', "e+") }
    } else {
        format!("{value}")
    }
}
