//! Texts in HTML.
//!
//! In: a text of anybody. Out: characters that are no markup, in an element as in a quoted attribute.

use crate::render::plain::visible;

/// The text with every character of markup escaped, and nothing hidden.
pub(super) fn escaped(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}
