//! A value as one line of text, for people: `{ a: 1, b: [ 'x' ] }`.
//!
//! In: a message. Out: a limited number of characters. Reads the message once, with a stack of its own, and stops as
//! soon as the text is full.

use crate::value::{Event, Reader, Str, Value};

/// The number of nested levels that are shown; deeper objects are `…`.
const DEPTH: usize = 4;

/// Shows a value in at most `limit` bytes and an ellipsis.
pub(crate) fn inspect(value: &Value, limit: usize) -> String {
    let mut reader = value.reader();
    let mut text = String::new();
    // A message with an error is shown up to the error.
    let _ = show(&mut reader, &mut text, limit);
    super::text::bounded(text, limit)
}

enum Frame {
    Object { first: bool },
    List { left: u32, first: bool, close: &'static str },
    Map { left: u32, first: bool, close: &'static str },
    Sparse { first: bool },
}

fn show(reader: &mut Reader<'_>, text: &mut String, limit: usize) -> Option<()> {
    let mut frames = Vec::new();
    node(reader, text, &mut frames, limit)?;
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
                    push(text, key.text, limit);
                    text.push_str(": ");
                    node(reader, text, &mut frames, limit)?;
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
                    node(reader, text, &mut frames, limit)?;
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
                node(reader, text, &mut frames, limit)?;
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
                node(reader, text, &mut frames, limit)?;
            }
        }
    }
}

fn node(
    reader: &mut Reader<'_>,
    text: &mut String,
    frames: &mut Vec<Frame>,
    limit: usize,
) -> Option<()> {
    let nested = !frames.is_empty();
    match reader.event().ok()? {
        Event::Undefined => text.push_str("undefined"),
        Event::Null => text.push_str("null"),
        Event::Bool(value) => text.push_str(if value { "true" } else { "false" }),
        Event::Int(value) => text.push_str(&value.to_string()),
        Event::Double(value) => text.push_str(&number(value)),
        Event::BigInt { negative, magnitude } => bigint(text, negative, magnitude),
        Event::String(value) => string(text, value, nested, limit),
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
        Event::Buffer(_) => text.push_str("ArrayBuffer"),
        Event::View { kind, length, .. } => text.push_str(&format!("{kind:?}({length})")),
        Event::HostFunction(_) | Event::SandboxFunction(_) => {
            let name = reader.text().ok()?;
            text.push_str("[Function: ");
            push(text, name, limit);
            text.push(']');
        }
        Event::HostPromise(_) | Event::SandboxPromise(_) => text.push_str("[Promise]"),
    }
    Some(())
}

fn string(text: &mut String, value: Str<'_>, nested: bool, limit: usize) {
    if nested {
        text.push('\'');
        let from = text.len();
        push(text, value, limit);
        if text[from..].contains('\n') {
            let escaped = text[from..].replace('\n', "\\n");
            text.truncate(from);
            text.push_str(&escaped);
        }
        text.push('\'');
    } else {
        push(text, value, limit);
    }
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
