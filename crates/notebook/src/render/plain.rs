//! Texts and values of cells that are safe to show.
//!
//! In: anything that a cell may have left. Out: texts without control characters and without characters that reorder the
//! text around them, and values of a bounded depth.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::text::clean::cleaned;

/// The depth of values that are shown; what is deeper becomes an ellipsis.
pub(super) const MOST_DEPTH: usize = 100;

/// A text as it is, but for what a reader cannot see: control characters become U+FFFD, those that reorder text get their
/// name. Line breaks and tabs stay.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |letter: char| {
        (letter.is_control() && letter != '\n' && letter != '\t') || is_override(letter)
    };
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' if letters.peek() == Some(&'\n') => {}
            letter if is_override(letter) => {
                shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(letter)));
            }
            letter if is_hidden(letter) => shown.push('\u{fffd}'),
            letter => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

/// The embeddings, overrides and isolates of bidirectional text.
fn is_override(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text of an output: without escape sequences, leading blank lines and trailing white space, and visible.
pub(super) fn output(text: &str) -> String {
    visible(&cleaned(text)).into_owned()
}

/// A text on one line, of so many characters at the most.
pub(super) fn line(text: &str, most_characters: usize) -> String {
    let mut shown = String::new();
    let words = text.split_whitespace().flat_map(|word| [" ", word]).skip(1);
    let mut letters = words.flat_map(str::chars);
    shown.extend(letters.by_ref().take(most_characters));
    if letters.next().is_some() {
        shown.push('…');
    }
    visible(&shown).into_owned()
}

/// A value whose parts below a depth are ellipses.
pub(super) fn shallow(value: &Json, depth: usize) -> Cow<'_, Json> {
    if is_deeper(value, depth) { Cow::Owned(cut(value, depth)) } else { Cow::Borrowed(value) }
}

fn is_deeper(value: &Json, depth: usize) -> bool {
    let is_deeper = |value: &Json| depth == 0 || self::is_deeper(value, depth - 1);
    match value {
        Json::Array(items) => items.iter().any(is_deeper),
        Json::Object(fields) => fields.values().any(is_deeper),
        _ => false,
    }
}

fn cut(value: &Json, depth: usize) -> Json {
    match value {
        Json::Array(_) | Json::Object(_) if depth == 0 => "…".into(),
        Json::Array(items) => items.iter().map(|item| cut(item, depth - 1)).collect(),
        Json::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), cut(value, depth - 1)));
            Json::Object(fields.collect())
        }
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_hidden() {
        assert_eq!(visible("a\tb\nç 担"), "a\tb\nç 担");
        assert_eq!(
            visible("a\r\nb\rc\u{1b}[1m\u{9b}\u{7f}"),
            "a\nb\u{fffd}c\u{fffd}[1m\u{fffd}\u{fffd}"
        );
        assert_eq!(visible("x\u{202e}y\u{2066}"), "x⟨U+202E⟩y⟨U+2066⟩");
        assert_eq!(output("\n\u{1b}]0;title\u{7}a\u{1b}[31mb\u{1b}[0m \n"), "ab");
        assert_eq!(line(" a\n b\tc ", 9), "a b c");
        assert_eq!(line("abc def", 5), "abc d…");
    }

    #[test]
    fn values_have_a_depth() {
        let value = json!({ "a": [1, [2, {}]], "b": [] });
        assert_eq!(*shallow(&value, 4), value);
        assert_eq!(*shallow(&value, 2), json!({ "a": [1, "…"], "b": [] }));
        assert_eq!(*shallow(&value, 1), json!({ "a": "…", "b": "…" }));
        assert!(matches!(shallow(&value, 3), Cow::Borrowed(_)));
    }
}
