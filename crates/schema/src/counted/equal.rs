//! Whether elements of an array are equal.
//!
//! In: values. Out: whether no two of them are equal, as JSON Schema has it: numbers by their value, objects in any order.
//! The time is that of writing them once; the library's own way compares each with each where hashes collide.

use std::collections::HashSet;

use serde_json::{Number, Value};

use super::steps;
use crate::pieces;

/// The beginnings of values, by kind.
mod kind {
    pub(super) const NULL: u8 = 0;
    pub(super) const FALSE: u8 = 1;
    pub(super) const TRUE: u8 = 2;
    pub(super) const WHOLE: u8 = 3;
    pub(super) const NUMBER: u8 = 4;
    pub(super) const STRING: u8 = 5;
    pub(super) const ARRAY: u8 = 6;
    pub(super) const OBJECT: u8 = 7;
}

pub(super) fn are_unique(list: &[Value]) -> bool {
    let mut seen = HashSet::with_capacity(list.len());
    list.iter().all(|value| {
        let mut bytes = Vec::new();
        write(value, &mut bytes);
        seen.insert(bytes)
    })
}

/// Writes a value so that equal values have equal bytes, and others do not. It goes as deep as the value does.
fn write(value: &Value, bytes: &mut Vec<u8>) {
    steps(1);
    match value {
        Value::Null => bytes.push(kind::NULL),
        Value::Bool(false) => bytes.push(kind::FALSE),
        Value::Bool(true) => bytes.push(kind::TRUE),
        Value::Number(number) => write_number(number, bytes),
        Value::String(text) => {
            bytes.push(kind::STRING);
            write_text(text, bytes);
        }
        Value::Array(list) => {
            bytes.push(kind::ARRAY);
            bytes.extend(list.len().to_le_bytes());
            for value in list {
                write(value, bytes);
            }
        }
        Value::Object(map) => {
            bytes.push(kind::OBJECT);
            bytes.extend(map.len().to_le_bytes());
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in fields {
                write_text(key, bytes);
                write(value, bytes);
            }
        }
    }
}

fn write_text(text: &str, bytes: &mut Vec<u8>) {
    steps(pieces(text));
    bytes.extend(text.len().to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn write_number(number: &Number, bytes: &mut Vec<u8>) {
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let double = number.as_f64().unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "a whole number in range")]
    let whole =
        whole.or_else(|| (double.fract() == 0.0 && double.abs() < 1e36).then_some(double as i128));
    match whole {
        Some(whole) => {
            bytes.push(kind::WHOLE);
            bytes.extend(whole.to_le_bytes());
        }
        None => {
            bytes.push(kind::NUMBER);
            bytes.extend(double.to_bits().to_le_bytes());
        }
    }
}
