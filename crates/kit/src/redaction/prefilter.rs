//! A quick search for the places where a value may begin.
//!
//! In: the texts of patterns. Out: the first place of a text at which one of them begins with its first bytes. It compares
//! only few bytes of each pattern, so the time does not depend on how much of a pattern a text has.

use aho_corasick::packed::Searcher;

/// The bytes of a pattern that are compared.
pub(super) const HEAD_BYTES: usize = 12;

/// Finds beginnings of patterns.
pub(super) struct Prefilter(Searcher);

impl Prefilter {
    /// `None` if there are too many patterns, or the processor has no instructions for this.
    pub(super) fn new<'p>(patterns: impl Iterator<Item = &'p [u8]>) -> Option<Self> {
        Searcher::new(patterns.map(|pattern| &pattern[..pattern.len().min(HEAD_BYTES)])).map(Self)
    }

    /// The first place from there on at which a pattern may begin. The last bytes of the text, fewer than
    /// [`HEAD_BYTES`], may begin one that is not found.
    pub(super) fn find(&self, text: &[u8], from: usize) -> Option<usize> {
        self.0.find(&text[from..]).map(|found| from + found.start())
    }
}
