//! A JSON display as text.
//!
//! In: a value. Out: one line if that is short, else indented lines, within a bound.

use serde_json::Value as Json;

/// The longest line of a display.
const LINE_CHARACTERS: usize = 80;

/// The text of a value: one line up to 80 characters, else indented by 2, cut at so many bytes.
pub(crate) fn json_text(value: &Json, most_bytes: usize) -> String {
    let line = value.to_string();
    if line.chars().take(LINE_CHARACTERS + 1).count() <= LINE_CHARACTERS {
        return bounded(line, most_bytes);
    }
    bounded(format!("{value:#}"), most_bytes)
}

/// A text of at most so many bytes, and an ellipsis if it was longer.
pub(crate) fn bounded(mut text: String, most_bytes: usize) -> String {
    if text.len() > most_bytes {
        text.truncate(text.floor_char_boundary(most_bytes));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_values_are_lines_and_long_ones_are_indented() {
        assert_eq!(
            json_text(&serde_json::json!({"b": [1, "x"], "a": null}), 100),
            r#"{"b":[1,"x"],"a":null}"#
        );
        let long = serde_json::json!({ "name": "x".repeat(80) });
        assert_eq!(json_text(&long, 1000), format!("{{\n  \"name\": \"{}\"\n}}", "x".repeat(80)));
        assert_eq!(json_text(&long, 10), "{\n  \"name\"…");
    }
}
