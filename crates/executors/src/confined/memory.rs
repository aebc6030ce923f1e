//! Amounts of memory, as container engines write them.
//!
//! In: `256m`. Out: bytes.

use crate::ExecutorError;

/// The least memory in which a program is started. With less there is none to become the program in.
const LEAST_BYTES: u64 = 1 << 20;

/// The bytes that a text stands for.
///
/// # Errors
/// `bad_input`: it is no positive number with one of the units, or none; or it is too little for any program.
pub(super) fn parse_memory(text: &str) -> Result<u64, ExecutorError> {
    let (number, unit) = match text.as_bytes().last() {
        Some(b'b' | b'B') => (&text[..text.len() - 1], 1),
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let is_number = number.bytes().all(|digit| digit.is_ascii_digit());
    let bytes =
        number.parse().ok().filter(|_| is_number).and_then(|number: u64| number.checked_mul(unit));
    let bytes = bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        let message =
            format!("memory must be a positive number with 'b', 'k', 'm' or 'g', not {text:?}");
        ExecutorError::bad_input(message)
    })?;
    if bytes < LEAST_BYTES {
        return Err(ExecutorError::bad_input(format!("memory must be at least 1m, not {text:?}")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::parse_memory;

    #[test]
    fn numbers_have_the_units_of_container_engines() {
        for (text, bytes) in
            [("256m", 256 << 20), ("1g", 1 << 30), ("2000000", 2_000_000), ("1024K", 1 << 20)]
        {
            assert_eq!(parse_memory(text).expect("it is valid"), bytes);
        }
        for text in ["", "0", "m", "-1m", "+1m", "1.5g", "1t", "256 m", "99999999999g", "1é"] {
            assert!(parse_memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn too_little_for_any_program_is_refused() {
        for text in ["5b", "64k", "1048575"] {
            let message = parse_memory(text).expect_err("misuse").message().to_owned();
            assert_eq!(message, format!("memory must be at least 1m, not {text:?}"));
        }
        assert_eq!(parse_memory("1m").expect("it is valid"), 1 << 20);
    }
}
