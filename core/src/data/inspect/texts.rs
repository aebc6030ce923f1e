//! Strings, keys, numbers and functions as text.
//!
//! In: a primitive of a message, and the limit of the text. Out: its form in a console. Strings are quoted inside of
//! something.

use super::Style;
use crate::value::Str;

pub(super) fn function(text: &mut String, name: &str) {
    match name {
        "" => text.push_str("[Function (anonymous)]"),
        name => text.push_str(&format!("[Function: {name}]")),
    }
}

pub(super) fn string(text: &mut String, value: Str<'_>, nested: bool, style: Style<'_>) {
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
pub(super) fn key_text(text: &mut String, key: Str<'_>, limit: usize) {
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
pub(super) fn push(text: &mut String, value: Str<'_>, limit: usize) {
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
pub(super) fn bigint(text: &mut String, negative: bool, magnitude: &[u8]) {
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
pub(crate) fn number(value: f64) -> String {
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
