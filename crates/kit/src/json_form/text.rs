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

/// The most milliseconds on either side of the epoch.
const DATE_MS: f64 = 8.64e15;

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
    const DAY_MS: i64 = 86_400_000;
    if epoch_ms.is_nan() || epoch_ms.abs() > DATE_MS {
        return out.push("null");
    }
    #[expect(clippy::cast_possible_truncation, reason = "an integer of at most 8.64e15")]
    let ms = epoch_ms as i64;
    let (year, month, day) = civil(ms.div_euclid(DAY_MS));
    let of_day = ms.rem_euclid(DAY_MS);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, ms) = (of_day / 1000 % 60, of_day % 1000);
    let year = match year {
        0..10_000 => format!("{year:04}"),
        _ => format!("{year:+07}"),
    };
    out.push(&format!("\"{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z\""))
}

/// Year, month and day of a day counted from the epoch, in the proleptic Gregorian calendar.
fn civil(epoch_day: i64) -> (i64, i64, i64) {
    // Years that begin in March, so that the day of a leap year is the last one; eras of 400 years.
    const ERA_DAYS: i64 = 146_097;
    const MARCH_YEAR_0: i64 = 719_468;
    let day = epoch_day + MARCH_YEAR_0;
    let (era, of_era) = (day.div_euclid(ERA_DAYS), day.rem_euclid(ERA_DAYS));
    let of_years = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of_years + of_years / 4 - of_years / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let is_next_year = i64::from(month >= 10);
    let month = if month < 10 { month + 3 } else { month - 9 };
    (of_years + era * 400 + is_next_year, month, day)
}
