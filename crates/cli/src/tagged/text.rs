//! Texts of the values that have no others inside.
//!
//! In: numbers, strings, bytes. Out: JSON, tagged where JSON has no such value.

use isolane::value::Str;

/// A number; `NaN`, the infinities and `-0` are tagged.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 && value.is_sign_negative() {
        return "{\"$number\":\"-0\"}".to_owned();
    }
    if value.is_nan() {
        return "{\"$number\":\"NaN\"}".to_owned();
    }
    if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{{\"$number\":\"{sign}Infinity\"}}");
    }
    if value == 0.0 || (1e-6..1e21).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// A string; one with a lone surrogate is tagged.
pub(super) fn string(text: Str<'_>) -> String {
    match text {
        Str::Utf8(_) => key(text),
        Str::Utf16(_) => {
            let units: Vec<String> = text.units().iter().map(u16::to_string).collect();
            format!("{{\"$string\":[{}]}}", units.join(","))
        }
    }
}

/// A text where a tag cannot stand; lone surrogates are escaped.
pub(super) fn key(text: Str<'_>) -> String {
    if let Str::Utf8(text) = text {
        return serde_json::Value::from(text).to_string();
    }
    let units = text.units();
    let mut out = String::from("\"");
    for decoded in char::decode_utf16(units) {
        match decoded {
            Ok(char) => {
                let quoted = serde_json::Value::from(char.to_string()).to_string();
                out.push_str(quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default());
            }
            Err(lone) => out.push_str(&format!("\\u{:04x}", lone.unpaired_surrogate())),
        }
    }
    out.push('"');
    out
}

pub(super) fn bytes(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
    format!("[{}]", bytes.join(","))
}

/// The digits of a bigint, from its bytes, the least one first. Costs the square of their number.
pub(super) fn bigint(negative: bool, magnitude: &[u8]) -> String {
    const PART: u64 = 1_000_000_000_000_000_000;
    let mut limbs: Vec<u64> = magnitude
        .chunks(8)
        .map(|chunk| chunk.iter().rev().fold(0, |limb, byte| limb << 8 | u64::from(*byte)))
        .collect();
    let mut parts = Vec::new();
    while limbs.last() == Some(&0) {
        limbs.pop();
    }
    while !limbs.is_empty() {
        let mut rest: u64 = 0;
        for limb in limbs.iter_mut().rev() {
            let all = u128::from(rest) << 64 | u128::from(*limb);
            let (quotient, left) = (all / u128::from(PART), all % u128::from(PART));
            // Both fit: the rest before was less than the divisor.
            *limb = u64::try_from(quotient).unwrap_or(u64::MAX);
            rest = u64::try_from(left).unwrap_or(u64::MAX);
        }
        parts.push(rest);
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
    }
    let mut digits = parts.pop().unwrap_or(0).to_string();
    for part in parts.iter().rev() {
        digits.push_str(&format!("{part:018}"));
    }
    if negative { format!("-{digits}") } else { digits }
}
