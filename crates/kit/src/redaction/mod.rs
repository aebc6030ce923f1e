//! Redaction: values of secrets are replaced wherever they occur.
//!
//! In: a text, or bytes in chunks of any size. Out: the same with a replacement for each value, in whichever of these
//! forms it stands: as it is; percent-encoded, in either case, with each character encoded or not, with `+` for a space;
//! with JSON's escapes; in base64 or base64url at any alignment; and in base64 that is percent-encoded or escaped. Values
//! that overlap are replaced together, by the longest one's replacement. Of base64 the whole run of its characters is
//! replaced.
//!
//! The time is linear in the input, whatever the number of values: one automaton finds all. It holds the values in a
//! form of its own for as long as it lives; nothing here prints them.

mod channel;
mod decoder;
mod finder;
mod patterns;
mod stream;

use std::{borrow::Cow, fmt};

use aho_corasick::nfa::contiguous::NFA;

pub use self::stream::Redaction;
use self::stream::{PART_BYTES, Stream};
use self::{
    finder::{Finder, Found},
    patterns::{Pattern, patterns},
};

/// The fewest bytes of a value that is found.
const LEAST_BYTES: usize = 8;

/// Finds values, and knows what replaces them.
pub struct Redactor {
    /// `None` without values.
    automaton: Option<NFA>,
    patterns: Vec<Pattern>,
    replacements: Vec<String>,
    /// The bytes of the longest pattern.
    longest: usize,
    /// Whether a value has a space, for which a form has `+`.
    has_spaces: bool,
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
            longest: patterns.iter().map(|pattern| pattern.length).max().unwrap_or(0),
            patterns,
            replacements,
            has_spaces: values.iter().any(|value| value.contains(' ')),
        }
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

/// Shows no value.
impl fmt::Debug for Redactor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Redactor")
            .field("replacements", &self.replacements)
            .finish_non_exhaustive()
    }
}
