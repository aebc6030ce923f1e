//! Numbers in JSON.
//!
//! In: a number or a bigint. Out: its text as `JSON.stringify` writes a number; of an unsafe bigint a text of its digits.

use super::{JsonFault, writer::Writer};

/// The largest integer of which each smaller one is a number too.
const MOST_SAFE: u64 = (1 << 53) - 1;

/// Digits in the base of conversion.
const GROUP_DIGITS: usize = 19;
const GROUP: u128 = 10u128.pow(19);

/// Words after which a conversion asks whether it is still wanted.
const WORDS_A_LOOK: usize = 1 << 20;

/// Decimal exponents between which JavaScript writes a number without one.
const LEAST_EXPONENT: i32 = -6;
const END_EXPONENT: i32 = 21;

/// Writes a number; `null` if it is none or infinite.
pub(super) fn write(number: f64, out: &mut Writer<'_>) -> Result<(), JsonFault> {
    if !number.is_finite() {
        return out.push("null");
    }
    if number == 0.0 {
        return out.push("0");
    }
    let scientific = shortest(number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if number < 0.0 { "-" } else { "" };
    let text = match exponent {
        0..END_EXPONENT => {
            let whole = usize::try_from(exponent + 1).unwrap_or_default();
            match digits.split_at_checked(whole) {
                Some((whole, "")) => whole.to_owned(),
                Some((whole, fraction)) => format!("{whole}.{fraction}"),
                None => format!("{digits:0<whole$}"),
            }
        }
        LEAST_EXPONENT..0 => {
            let zeros = usize::try_from(-exponent - 1).unwrap_or_default();
            format!("0.{}{digits}", "0".repeat(zeros))
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let plus = if exponent > 0 { "+" } else { "" };
            format!("{first}{point}{rest}e{plus}{exponent}")
        }
    };
    out.push(sign)?;
    out.push(&text)
}

/// The fewest digits that read as the number, in scientific notation. Of two texts that are as near JavaScript has the
/// even one, Rust the larger one.
fn shortest(number: f64) -> String {
    /// With fewer digits there are no two.
    const MANY_DIGITS: usize = 16;
    let text = format!("{number:e}");
    let digits = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    if digits < MANY_DIGITS {
        return text;
    }
    let even = format!("{number:.*e}", digits - 1);
    if even.parse() == Ok(number) { even } else { text }
}

/// Writes a bigint: as a number if it is safe, else as a text.
///
/// The engine's largest bigint has 128 KiB. Its digits take about half a second, and the work is looked at meanwhile.
pub(super) fn write_bigint(
    negative: bool,
    magnitude: &[u8],
    out: &mut Writer<'_>,
) -> Result<(), JsonFault> {
    let sign = if negative { "-" } else { "" };
    let used = magnitude.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let mut words = words(&magnitude[..used]);
    if let [] | [0..=MOST_SAFE] = words[..] {
        let word = words.first().copied().unwrap_or_default();
        out.push(if word == 0 { "" } else { sign })?;
        return out.push(&word.to_string());
    }
    // A word has fewer than 20 digits more than the groups that it makes; both tables are of that size.
    out.take_beside(6 * used + 2 * GROUP_DIGITS)?;
    let mut groups = Vec::new();
    let mut divided = 0;
    while !words.is_empty() {
        let mut rest = 0u128;
        for word in words.iter_mut().rev() {
            let dividend = rest << 64 | u128::from(*word);
            *word = u64::try_from(dividend / GROUP).unwrap_or_default();
            rest = dividend % GROUP;
        }
        groups.push(rest);
        divided += words.len();
        if divided > WORDS_A_LOOK {
            divided = 0;
            out.look()?;
        }
        while words.last() == Some(&0) {
            words.pop();
        }
    }
    out.push("\"")?;
    out.push(sign)?;
    for (index, group) in groups.iter().rev().enumerate() {
        let width = if index == 0 { 0 } else { GROUP_DIGITS };
        out.push(&format!("{group:0>width$}"))?;
    }
    out.push("\"")
}

/// The words of a magnitude, least significant first.
fn words(magnitude: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    magnitude.chunks(8).map(word).collect()
}
