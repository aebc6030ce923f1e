//! Redaction: values of secrets are replaced wherever they occur.
//!
//! In: a text, or bytes in chunks of any size. Out: the same with a replacement for each value, in whichever of these
//! forms it stands: as it is; percent-encoded, in either case, with each character encoded or not, with `+` for a space;
//! with JSON's escapes; in base64 or base64url at any alignment; in base64 that is percent-encoded or escaped; and all of
//! these in Latin-1, and in UTF-8 that was taken for Latin-1 and encoded again, as answers have it in headers. Values
//! that overlap are replaced together, by the longest one's replacement. Of base64 the whole run of its characters is
//! replaced.
//!
//! The time is linear in the input, whatever the number of values: one automaton finds all. It reads only the parts in
//! which a prefilter finds the beginning of one. It holds the values in a
//! form of its own for as long as it lives; nothing here prints them.

mod channel;
mod decoder;
mod finder;
mod patterns;
mod prefilter;
mod stream;

use std::{borrow::Cow, fmt};

use aho_corasick::nfa::contiguous::NFA;

pub use self::stream::Redaction;
use self::stream::{PART_BYTES, Stream};
use self::{
    finder::{Finder, Found},
    patterns::{Pattern, patterns},
    prefilter::Prefilter,
};

/// The mark at a cut.
const ELLIPSIS: &str = "…";

/// The fewest bytes of a value that is found.
const LEAST_BYTES: usize = 8;

/// Finds values, and knows what replaces them.
pub struct Redactor {
    /// `None` without values.
    automaton: Option<NFA>,
    prefilter: Option<Prefilter>,
    patterns: Vec<Pattern>,
    replacements: Vec<String>,
    /// The bytes of the longest pattern.
    longest: usize,
    /// Whether a value has a space, for which a form has `+`.
    has_spaces: bool,
    /// Whether a value could be a part of a number.
    has_numbers: bool,
}

impl Redactor {
    /// A redactor of values, each with its replacement. Of two values that are equal the first counts. Takes time and
    /// memory in proportion to the values, some 200 bytes for each of theirs.
    ///
    /// Values of fewer than eight bytes would be found where they are not meant, and are left out.
    ///
    /// # Panics
    /// If the values have hundreds of megabytes.
    #[must_use]
    pub fn new<'v>(values: impl IntoIterator<Item = (&'v str, String)>) -> Self {
        let (values, replacements): (Vec<_>, Vec<_>) =
            values.into_iter().filter(|(value, _)| value.len() >= LEAST_BYTES).unzip();
        let (texts, patterns) = patterns(&values);
        let build = || {
            let built = NFA::builder().prefilter(false).build(&texts);
            built.expect("it fails for hundreds of megabytes alone")
        };
        Self {
            automaton: (!patterns.is_empty()).then(build),
            prefilter: Prefilter::new(texts.iter().map(|text| text.as_slice())),
            longest: patterns.iter().map(|pattern| pattern.length).max().unwrap_or(0),
            patterns,
            replacements,
            has_spaces: values.iter().any(|value| value.contains(' ')),
            has_numbers: values.iter().any(|value| is_numeric(value)),
        }
    }

    /// Whether there are no values to be found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.automaton.is_none()
    }

    /// Whether a value could be a part of a number as JSON has it.
    pub(crate) fn has_numbers(&self) -> bool {
        self.has_numbers
    }

    /// The text with its values replaced. It is borrowed if there is none.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let bytes = text.as_bytes();
        if bytes.len() < LEAST_BYTES {
            return Cow::Borrowed(text);
        }
        if !self.has_value(bytes) {
            return Cow::Borrowed(text);
        }
        let mut stream = Stream::new(self);
        let mut out = Vec::with_capacity(bytes.len());
        for part in bytes.chunks(PART_BYTES) {
            stream.push(self, part, &mut out);
        }
        stream.finish(self, &mut out);
        // Values and their forms begin and end between characters.
        Cow::Owned(
            String::from_utf8(out)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }

    /// The same of a text that may have been cut to that many bytes, with an ellipsis at the cut: the end, in which a part
    /// of a value may be left, is taken away.
    #[must_use]
    pub fn cut_text<'t>(&self, text: &'t str, most_bytes: usize) -> Cow<'t, str> {
        // Around a text that was cut there may be as much as this: `Symbol(…)`.
        const FRAME_BYTES: usize = 16;
        let redacted = self.text(text);
        // A cut falls between characters.
        let cut =
            most_bytes.saturating_sub(ELLIPSIS.len())..=most_bytes.saturating_add(FRAME_BYTES);
        let is_cut = cut.contains(&text.len()) && text.trim_end_matches(')').ends_with(ELLIPSIS);
        if is_cut { self.without_end(&redacted) } else { redacted }
    }

    /// A text whose end was cut off, without secrets and without the end in which a part of one may be left.
    #[must_use]
    pub fn beginning(&self, text: &str) -> String {
        self.without_end(&self.text(text)).into_owned()
    }

    fn without_end<'t>(&self, redacted: &str) -> Cow<'t, str> {
        // An escape of one byte has six at most.
        const LONGEST_ESCAPE: usize = 6;
        let left = redacted.len().saturating_sub(LONGEST_ESCAPE * self.longest);
        let left = redacted.floor_char_boundary(left);
        Cow::Owned(format!("{}{ELLIPSIS}", &redacted[..left]))
    }

    fn has_value(&self, bytes: &[u8]) -> bool {
        let mut finder = Finder::new(self, bytes.len());
        for part in bytes.chunks(PART_BYTES) {
            finder.read(self, part);
            if !finder.found.is_empty() {
                return true;
            }
        }
        finder.finish(self);
        !finder.found.is_empty()
    }

    fn replacement(&self, found: &Found) -> &str {
        self.replacements.get(found.value).map_or("", String::as_str)
    }
}

fn is_numeric(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e'))
}

/// Shows no value.
impl fmt::Debug for Redactor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Redactor")
            .field("replacements", &self.replacements)
            .finish_non_exhaustive()
    }
}
