//! JSON of values that cross the boundary of an isolate.
//!
//! In: a message of the sandbox. Out: JSON, or the reason why it has none: what JSON would lose or refuse is an error
//! with its path. And back: JSON as a message. Nothing here recurses deeper than [`MOST_DEPTH`].

mod read;
mod write;

use serde_json::Value;

pub(crate) use self::{
    read::{JsonFault, Reading, to_json},
    write::to_message,
};

/// The deepest nesting.
pub(crate) const MOST_DEPTH: usize = 128;

/// The bytes of a value's JSON, as `JSON.stringify` writes it.
pub(crate) fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(is) => 5 - usize::from(*is),
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text_bytes(text),
        Value::Array(list) => {
            let elements: usize = list.iter().map(json_bytes).sum();
            2 + elements + list.len().saturating_sub(1)
        }
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| text_bytes(key) + 1 + json_bytes(value));
            2 + fields.sum::<usize>() + map.len().saturating_sub(1)
        }
    }
}

/// The bytes of a text's JSON.
pub(crate) fn text_bytes(text: &str) -> usize {
    let bytes = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..0x20 => 6,
        _ => 1,
    };
    2 + text.bytes().map(bytes).sum::<usize>()
}

/// Whether a value nests deeper than may be. Does not recurse.
pub(crate) fn is_too_deep(value: &Value) -> bool {
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        if depth > MOST_DEPTH {
            return true;
        }
        match value {
            Value::Array(list) => open.extend(list.iter().map(|value| (value, depth + 1))),
            Value::Object(map) => open.extend(map.values().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_are_those_of_the_text() {
        let value = json!({
            "a": [1, -2.5, 1e300, true, false, null], "b\"\\": "\u{1}\n\u{8}ä😀\u{7f}", "c": {}, "d": [],
        });
        assert_eq!(json_bytes(&value), value.to_string().len());
    }
}
