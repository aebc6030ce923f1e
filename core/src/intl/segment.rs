//! The characters, words and sentences of a text.
//!
//! In: a part of a text that begins at a boundary. Out: the length of its first segment. Words of scripts without blanks
//! between them (Chinese, Japanese, Thai and others) would need a dictionary: each run of them is cut by rules alone.

use icu_segmenter::{
    GraphemeClusterSegmenter, SentenceSegmenter, WordSegmenter,
    options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions},
};

use super::options::Granularity;

/// Units behind a segment that may decide where it ends.
pub(crate) const LOOKAHEAD: usize = 32;

/// The length of the first segment, and whether it is like a word.
pub(crate) fn first(units: &[u16], granularity: Granularity) -> (usize, bool) {
    let (length, is_word) = match granularity {
        Granularity::Grapheme => {
            let mut ends = GraphemeClusterSegmenter::new().segment_utf16(units);
            (ends.find(|end| *end > 0), false)
        }
        Granularity::Word => {
            let segmenter =
                WordSegmenter::new_for_non_complex_scripts(WordBreakInvariantOptions::default());
            let mut ends = segmenter.segment_utf16(units).iter_with_word_type();
            let found = ends.find(|(end, _)| *end > 0);
            let end = found.map_or(units.len(), |(end, _)| end);
            // The rules forget the kind of some words that end with a mark.
            let has_letter = char::decode_utf16(units.iter().copied().take(end))
                .any(|unit| unit.is_ok_and(char::is_alphabetic));
            (Some(end), has_letter || found.is_some_and(|(_, kind)| kind.is_word_like()))
        }
        Granularity::Sentence => {
            let segmenter = SentenceSegmenter::new(SentenceBreakInvariantOptions::default());
            let mut ends = segmenter.segment_utf16(units);
            (ends.find(|end| *end > 0), false)
        }
    };
    (length.unwrap_or(units.len()), is_word)
}
