//! The time that V8 takes to construct regular expressions.
//!
//! In: sources and flags. Out: whether V8 constructs all regular expressions of a message in a short time. V8 parses
//! a pattern when it is constructed and compiles it when it is used. Parsing is fast except for Unicode classes: V8
//! looks up and expands each `\p{…}` again, and with the flag `i` it adds the other cases to each class. The figures
//! are upper bounds of measurements of Node.js 20 (`tests/meter`).

use isolane::value::Str;

/// The time for all regular expressions of a message.
const MOST_NANOS: usize = 40_000_000;

/// Each byte.
const BYTE_NANOS: usize = 70;
/// Each byte, in addition, with the flag `u` or `v`.
const UNICODE_BYTE_NANOS: usize = 3_000;
/// Each Unicode property.
const PROPERTY_NANOS: usize = 80_000;
/// Each Unicode property, if case is ignored.
const ANY_CASE_PROPERTY_NANOS: usize = 500_000;
/// Each Unicode property, in addition, for each property before it in the same class.
const NEXT_PROPERTY_NANOS: usize = 2_000;
/// Each property of strings, such as all emoji.
const STRINGS_NANOS: usize = 2_000_000;
/// Each property of strings, if case is ignored.
const ANY_CASE_STRINGS_NANOS: usize = 25_000_000;
/// Each escape such as `\w`, if case is ignored.
const ANY_CASE_ESCAPE_NANOS: usize = 300_000;
/// Each class with the flag `v`, if case is ignored.
const ANY_CASE_CLASS_NANOS: usize = 100_000;

/// The time that the regular expressions of one message take.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    nanos: usize,
}

impl Budget {
    /// Adds a regular expression; false if all of them take too long.
    pub(crate) fn takes(&mut self, source: Str<'_>, flags: Str<'_>) -> bool {
        let bytes = match source {
            Str::Utf8(text) => text.len(),
            Str::Utf16(units) => units.len(),
        };
        self.nanos += bytes * BYTE_NANOS;
        let flags = flags.to_string_lossy();
        if self.nanos <= MOST_NANOS && flags.contains(['u', 'v']) {
            self.nanos += unicode_nanos(&source.to_string_lossy(), &flags);
        }
        self.nanos <= MOST_NANOS
    }
}

fn unicode_nanos(source: &str, flags: &str) -> usize {
    let has_sets = flags.contains('v');
    let any_case = flags.contains('i') || ignores_case_somewhere(source);
    let price = |any_case_nanos, nanos| if any_case { any_case_nanos } else { nanos };
    let mut nanos = source.len() * UNICODE_BYTE_NANOS;
    if has_sets {
        nanos += source.matches('[').count() * price(ANY_CASE_CLASS_NANOS, 0);
    }
    let (mut rest, mut before) = (source, 0);
    while let Some((plain, escaped)) = rest.split_once('\\') {
        if plain.contains(['[', ']']) {
            before = 0;
        }
        let mut after = escaped.chars();
        nanos += match after.next() {
            Some('p' | 'P') if has_sets && is_of_strings(after.as_str()) => {
                price(ANY_CASE_STRINGS_NANOS, STRINGS_NANOS)
            }
            Some('p' | 'P') => {
                before += 1;
                price(ANY_CASE_PROPERTY_NANOS, PROPERTY_NANOS) + before * NEXT_PROPERTY_NANOS
            }
            Some('w' | 'W' | 'd' | 'D' | 's' | 'S' | 'b' | 'B') => price(ANY_CASE_ESCAPE_NANOS, 0),
            _ => 0,
        };
        rest = after.as_str();
    }
    nanos
}

/// Whether the text after `\p` begins with the name of a property of strings.
fn is_of_strings(name: &str) -> bool {
    let name = name.strip_prefix('{').unwrap_or(name);
    ["RGI_", "Basic_Emoji", "Emoji_Keycap_Sequence"].iter().any(|prefix| name.starts_with(prefix))
}

/// Whether there is a group such as `(?i:`, which newer versions of V8 support.
fn ignores_case_somewhere(source: &str) -> bool {
    source.split("(?").skip(1).any(|group| {
        group.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').any(|c| c == 'i')
    })
}
