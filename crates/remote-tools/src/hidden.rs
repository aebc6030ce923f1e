//! Values that no message may show: tokens, and all else that a configuration hands to servers.
//!
//! In: values, and texts that may repeat them, whole, in part or spelled in another way. Out: the texts without them.

use std::{collections::BTreeSet, fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The shortest value that is hidden: `1` or `true` is no secret, and is a part of many texts.
const LEAST_BYTES: usize = 6;

/// The shortest part of a value that is hidden by itself, such as the token behind `Bearer`.
const LEAST_PART_BYTES: usize = 8;

/// The beginning and the end of a longer value are hidden from so many bytes on: a text may be cut within a value.
const LEAST_PIECE_BYTES: usize = 12;

/// The text in the place of a value.
const MARK: &str = "[hidden]";

/// All that queries and paths may spell with a percent sign.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Values that no message may show. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Hidden(Arc<[String]>);

impl Hidden {
    /// Hides these values, their lines and words, and the content of a header `Basic`, each as JSON and URLs spell it, too.
    /// Short ones are left out.
    pub(crate) fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut all = BTreeSet::new();
        for value in values {
            for part in parts(&value) {
                all.extend(spellings(&part));
            }
        }
        Self(all.into_iter().collect())
    }

    /// The text without them, in letters of either case. Costs the product of the lengths.
    pub(crate) fn hide(&self, text: &str) -> String {
        let mut pieces = Vec::new();
        for (at, next) in text.char_indices() {
            let end = at + next.len_utf8();
            // Values may begin or end alike: the longest piece counts.
            let begun = self.0.iter().filter_map(|value| beginning(&text[at..], value)).max();
            let ended = self.0.iter().filter_map(|value| ending(&text[..end], value)).max();
            pieces.extend(begun.map(|bytes| (at, at + bytes)));
            pieces.extend(ended.map(|bytes| (end - bytes, end)));
        }
        pieces.sort_unstable();
        let mut shown = String::with_capacity(text.len());
        let mut done = 0;
        for (from, to) in pieces {
            if from >= done {
                shown.push_str(&text[done..from]);
                shown.push_str(MARK);
            }
            // A piece that overlaps the one before it makes that one longer.
            done = done.max(to);
        }
        shown.push_str(&text[done..]);
        shown
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Hidden").field("count", &self.0.len()).finish()
    }
}

/// A value, and the parts of it that are secrets themselves.
fn parts(value: &str) -> Vec<String> {
    let mut parts = Vec::new();
    if value.len() >= LEAST_BYTES {
        parts.push(value.to_owned());
    }
    let mut words: Vec<&str> = value.lines().map(str::trim).collect();
    words.extend(value.split_whitespace());
    let encoded = value.get(..6).filter(|scheme| scheme.eq_ignore_ascii_case("basic "));
    let decoded = encoded.and_then(|_| STANDARD.decode(value[6..].trim()).ok());
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some(decoded) = &decoded {
        words.push(decoded);
        words.extend(decoded.split_once(':').map(|(_, password)| password));
    }
    let long = words.into_iter().filter(|word| word.len() >= LEAST_PART_BYTES);
    parts.extend(long.map(str::to_owned));
    parts
}

/// A value as texts spell it.
fn spellings(value: &str) -> Vec<String> {
    let json = serde_json::Value::from(value).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let escaped = utf8_percent_encode(value, ESCAPED).to_string();
    let mut spellings = vec![
        value.to_owned(),
        json.replace('/', "\\/"),
        in_ascii(&json),
        json,
        escaped.replace("%20", "+"),
        escaped,
    ];
    // An address has its values escaped.
    if let Ok(plain) = percent_decode_str(value).decode_utf8() {
        spellings.push(plain.into_owned());
    }
    spellings.retain(|spelling| spelling.len() >= LEAST_BYTES);
    spellings
}

/// JSON with the escapes of an encoder that writes ASCII alone.
fn in_ascii(json: &str) -> String {
    let mut text = String::new();
    for c in json.chars() {
        if c.is_ascii() {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            text.push_str(&format!("\\u{unit:04x}"));
        }
    }
    text
}

/// The bytes at the beginning of a text that repeat a value, if they repeat enough of it.
fn beginning(text: &str, value: &str) -> Option<usize> {
    let same = text.char_indices().zip(value.chars());
    let same = same.take_while(|((_, a), b)| a.eq_ignore_ascii_case(b));
    let bytes = same.last().map_or(0, |((at, last), _)| at + last.len_utf8());
    let enough = value.len().min(LEAST_PIECE_BYTES);
    (bytes >= enough).then_some(bytes)
}

/// The bytes at the end of a text that repeat the end of a value, if they repeat enough of it.
fn ending(text: &str, value: &str) -> Option<usize> {
    let same = text.char_indices().rev().zip(value.chars().rev());
    let same = same.take_while(|((_, a), b)| a.eq_ignore_ascii_case(b));
    let bytes = same.last().map_or(0, |((at, _), _)| text.len() - at);
    let enough = value.len().min(LEAST_PIECE_BYTES);
    (bytes >= enough).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hide(values: &[&str], text: &str) -> String {
        Hidden::new(values.iter().map(|value| (*value).to_owned())).hide(text)
    }

    #[test]
    fn values_are_hidden_and_short_ones_are_not() {
        let values = ["1", "token-1", "Bearer token-12"];
        assert_eq!(hide(&values, "1: Bearer token-12, token-1"), "1: [hidden], [hidden]");
        assert_eq!(hide(&values, "Bearer of token-12"), "Bearer of [hidden]");
    }

    #[test]
    fn parts_of_values_are_hidden() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n-----END KEY-----";
        assert_eq!(hide(&[key], "no key in BgkqhkiG9w0B"), "no key in [hidden]");
        let basic = "Basic dXNlcjpwYXNzd29yZC0x";
        assert_eq!(hide(&[basic], "dXNlcjpwYXNzd29yZC0x"), "[hidden]");
        assert_eq!(hide(&[basic], "for user: password-1"), "for user: [hidden]");
    }

    #[test]
    fn other_spellings_are_hidden() {
        let value = "a \"b\"/ç+d";
        for text in [
            r#"{"key":"a \"b\"/ç+d"}"#,
            "?key=a%20%22b%22%2F%C3%A7%2Bd",
            "?key=a+%22b%22%2F%C3%A7%2Bd",
        ] {
            let shown = hide(&[value], text);
            assert!(shown.contains("[hidden]") && !shown.contains('b'), "{shown}");
        }
        assert_eq!(hide(&["a%20b%20c%20d"], "a b c d"), "[hidden]");
    }

    #[test]
    fn values_that_were_cut_are_hidden() {
        let value = "sk-live-0123456789abcdef";
        assert_eq!(hide(&[value], "sk-live-0123456..."), "[hidden]...");
        assert_eq!(hide(&[value], "sk-live-0123"), "[hidden]");
        assert_eq!(hide(&[value], "sk-live-01"), "sk-live-01");
        assert_eq!(hide(&["schlüßelschlüßel"], "der schlüßelschl-"), "der [hidden]-");
    }

    #[test]
    fn values_that_lost_their_beginning_are_hidden() {
        let value = "sk-live-0123456789abcdef";
        assert_eq!(hide(&[value], "...56789abcdef is wrong"), "...56789abcdef is wrong");
        assert_eq!(hide(&[value], "...456789ABCDEF is wrong"), "...[hidden] is wrong");
        assert_eq!(
            hide(&[value], "...23456789abcdef, sk-live-0123456..."),
            "...[hidden], [hidden]..."
        );
        assert_eq!(hide(&["schlüßelschlüßel"], "-üßelschlüßel!"), "-[hidden]!");
        // A piece may begin in one value and end in another.
        assert_eq!(
            hide(&[value, "abcdef-0123456789"], "sk-live-0123456789abcdef-0123456789"),
            "[hidden]"
        );
    }

    #[test]
    fn values_that_begin_alike_are_hidden() {
        let values = ["sk-api-03-0123456789", "sk-api-03-01234567-longer"];
        for value in values {
            assert_eq!(hide(&values, value), "[hidden]");
        }
        let odd = "wJalrXUtnFEMI/K7MDENG/bPx";
        for text in [odd, "wJalrXUtnFEMI%2fK7MDENG%2FbPx", r"wJalrXUtnFEMI\/K7MDENG\/bPx"] {
            assert_eq!(hide(&[odd], text), "[hidden]");
        }
        assert_eq!(hide(&["geheimnisvolle-küche"], r"geheimnisvolle-k\u00fcche"), "[hidden]");
    }
}
