//! Text that the compiler inserted into a source.
//!
//! In: the insertions, in order: the place of each in the source, and its length. None of them has a line terminator,
//! and nothing is taken away, so the code has the lines of its source, and a column moves only behind an insertion on its
//! line. Out: the place in the source of a place in the code, and back, for errors alone.

use crate::data::portable::portable;

/// The insertions into one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Edits {
    insertions: Box<[Insertion]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Insertion {
    /// The place in the source.
    at: u32,
    /// The bytes that were inserted up to here, with these.
    total: u32,
}

portable!(struct Edits { insertions });
portable!(struct Insertion { at, total });

impl Edits {
    /// From places in the source, ascending, and lengths.
    pub(in super::super) fn new(insertions: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut total = 0_u32;
        let mut packed: Vec<Insertion> = Vec::with_capacity(insertions.size_hint().0);
        for (at, length) in insertions {
            total = total.saturating_add(length);
            match packed.last_mut() {
                Some(last) if last.at == at => last.total = total,
                _ => packed.push(Insertion { at, total }),
            }
        }
        Self { insertions: packed.into_boxed_slice() }
    }

    /// The insertions into a text without two parentheses, at the places where these are inserted now. Here they are
    /// part of the source, one place before `open` and one behind `close`.
    pub(in super::super) fn within_parentheses(&self, open: usize, close: usize) -> Self {
        let saturated = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let (open, close) = (saturated(open), saturated(close));
        let mut lengths = Vec::with_capacity(self.insertions.len() + 2);
        let mut before = 0;
        for Insertion { at, total } in &self.insertions {
            let shift = u32::from(*at > open) + u32::from(*at > close.saturating_add(1));
            lengths.push((at - shift, total - before));
            before = *total;
        }
        lengths.extend([(open, 1), (close, 1)]);
        lengths.sort_by_key(|(at, _)| *at);
        Self::new(lengths.into_iter())
    }

    /// The place in the source of a place in the code; of inserted text, the place where it was inserted.
    pub(in super::super) fn source(&self, code: usize) -> usize {
        let starts = |insertion: &Insertion| self.code(insertion.at as usize) <= code;
        let next = self.insertions.partition_point(starts);
        let last = next.checked_sub(1).and_then(|last| self.insertions.get(last));
        // Within the inserted text, its place.
        last.map_or(code, |last| code.saturating_sub(last.total as usize).max(last.at as usize))
    }

    /// The place in the code of a place in the source that is the start of a line.
    pub(in super::super) fn code(&self, source: usize) -> usize {
        source + self.total_before(u32::try_from(source).unwrap_or(u32::MAX))
    }

    /// The bytes that were inserted before a place.
    fn total_before(&self, at: u32) -> usize {
        let next = self.insertions.partition_point(|insertion| insertion.at < at);
        let last = next.checked_sub(1).and_then(|last| self.insertions.get(last));
        last.map_or(0, |last| last.total as usize)
    }

    /// The size of the list in bytes.
    pub(in super::super) fn size(&self) -> usize {
        size_of_val(&*self.insertions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_to_the_source_and_back() {
        // `ab|cd||e` with `XY` at the first bar, `Z` and `W` at the two others.
        let edits = Edits::new([(2, 2), (4, 1), (4, 1)].into_iter());
        let places: Vec<_> = (0..=9).map(|code| edits.source(code)).collect();
        assert_eq!(places, [0, 1, 2, 2, 2, 3, 4, 4, 4, 5]);
        assert_eq!([0, 2, 3, 4, 5].map(|source| edits.code(source)), [0, 2, 5, 6, 9]);
        assert_eq!(Edits::default().source(7), 7);
    }
}
