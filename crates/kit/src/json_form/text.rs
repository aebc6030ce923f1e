//! Texts in JSON.
//!
//! In: a text, a date or bytes. Out: a text between quotes, with the escapes of `JSON.stringify`.

use base64::{Engine, engine::general_purpose::STANDARD};
use isolane::value::Str;

use super::{JsonFault, writer::Writer};
use crate::wtf8;

/// Bytes of Base64 that are made at a time: whole groups of three.
const BASE64_BYTES: usize = 3 << 10;

/// Units of a text that are escaped at a time.
const TEXT_BYTES: usize = 1 << 16;

/// Writes a text. A lone surrogate is an escape.
pub(super) fn write(text: Str<'_>, out: &mut Writer<'_>) -> Result<(), JsonFault> {
    out.push("\"")?;
    match text {
        Str::Utf8(text) => write_escaped(text, out)?,
        Str::Utf16(units) => write_units(units, out)?,
    }
    out.push("\"")
}

fn write_escaped(text: &str, out: &mut Writer<'_>) -> Result<(), JsonFault> {
    let mut from = 0;
    for (index, byte) in text.bytes().enumerate() {
        if index % TEXT_BYTES == TEXT_BYTES - 1 {
            out.look()?;
        }
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push(&text[from..index])?;
        from = index + 1;
        match byte {
            b'"' => out.push("\\\"")?,
            b'\\' => out.push("\\\\")?,
            8 => out.push("\\b")?,
            b'\t' => out.push("\\t")?,
            b'\n' => out.push("\\n")?,
            12 => out.push("\\f")?,
            b'\r' => out.push("\\r")?,
            _ => out.push(&format!("\\u{byte:04x}"))?,
        }
    }
    out.push(&text[from..])
}

/// Some units at a time: their copy is small.
fn write_units(units: &[u8], out: &mut Writer<'_>) -> Result<(), JsonFault> {
    let mut rest = units;
    while !rest.is_empty() {
        let mut end = rest.len().min(TEXT_BYTES);
        // A pair of surrogates stays together: the high one has D8 to DB as its second byte.
        if end < rest.len() && rest.get(end - 1).is_some_and(|high| (0xD8..0xDC).contains(high)) {
            end += 2;
        }
        let (part, after) = rest.split_at(end.min(rest.len()));
        rest = after;
        for piece in wtf8::split(&wtf8::from_utf16(part)) {
            match piece {
                Ok(text) => write_escaped(text, out)?,
                Err(unit) => out.push(&format!("\\u{unit:04x}"))?,
            }
        }
    }
    Ok(())
}

/// Writes bytes in Base64.
pub(super) fn write_base64(bytes: &[u8], out: &mut Writer<'_>) -> Result<(), JsonFault> {
    out.push("\"")?;
    for part in bytes.chunks(BASE64_BYTES) {
        out.push(&STANDARD.encode(part))?;
    }
    out.push("\"")?;
    out.look()
}

/// Writes a date as `toISOString` does; `null` if it is invalid.
pub(super) fn write_date(epoch_ms: f64, out: &mut Writer<'_>) -> Result<(), JsonFault> {
    match isolane::iso_date(epoch_ms) {
        Some(text) => out.push(&format!("\"{text}\"")),
        None => out.push("null"),
    }
}
