//! A list of things that happened in the cells of a session, as far as they may be undone.
//!
//! In: entries in their order, and the beginnings and ends of cells. Out: the entries that are undone with a cell. Nothing
//! before the end of a cell that was kept is ever undone. A cell that is rolled back takes everything back that happened
//! since its beginning, or since that end if it is later.

use std::collections::HashMap;

/// Entries since the last cell that was kept.
#[derive(Clone, Debug)]
pub(crate) struct Journal<T> {
    entries: Vec<T>,
    /// How many entries there were when each cell in flight began.
    beginnings: HashMap<u32, usize>,
}

impl<T> Default for Journal<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), beginnings: HashMap::new() }
    }
}

impl<T> Journal<T> {
    pub(crate) fn note(&mut self, entry: T) {
        self.entries.push(entry);
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets entries that need not be undone any more.
    pub(crate) fn retain(&mut self, is_needed: impl Fn(&T) -> bool) {
        let needed: Vec<bool> = self.entries.iter().map(is_needed).collect();
        for at in self.beginnings.values_mut() {
            *at = needed.iter().take(*at).filter(|needed| **needed).count();
        }
        let mut needed = needed.into_iter();
        self.entries.retain(|_| needed.next().unwrap_or(true));
    }

    /// A cell begins which has that number.
    pub(crate) fn begin(&mut self, number: u32) {
        self.beginnings.insert(number, self.entries.len());
    }

    /// The cell with that number is over, and is kept, with all entries so far.
    pub(crate) fn keep(&mut self, number: u32) {
        self.entries.clear();
        self.beginnings.remove(&number);
        self.beginnings.values_mut().for_each(|at| *at = 0);
    }

    /// The cell with that number is over, and has changed nothing.
    pub(crate) fn forget(&mut self, number: u32) {
        self.beginnings.remove(&number);
    }

    /// The cell with that number is undone, and these with it. Returns the entries that are undone.
    pub(crate) fn undo(&mut self, number: u32, undone: &[u32]) -> Vec<T> {
        let since = self.beginnings.remove(&number).unwrap_or(0);
        for other in undone {
            self.beginnings.remove(other);
        }
        self.entries.split_off(since.min(self.entries.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::Journal;

    #[test]
    fn a_cell_takes_back_all_since_its_beginning() {
        let mut journal = Journal::default();
        for number in 1..=3 {
            journal.begin(number);
            journal.note(number);
        }
        assert_eq!(journal.undo(3, &[]), [3]);
        journal.begin(4);
        journal.note(4);
        assert_eq!(journal.undo(2, &[4]), [2, 4]);
        assert_eq!(journal.undo(1, &[]), [1]);
    }

    #[test]
    fn nothing_before_a_kept_cell_is_undone() {
        let mut journal = Journal::default();
        journal.begin(1);
        journal.note("before");
        journal.begin(2);
        journal.note("other");
        journal.keep(2);
        journal.note("after");
        assert_eq!(journal.undo(1, &[]), ["after"]);
        // One that is not known began when nothing had happened.
        journal.note("unnumbered");
        assert_eq!(journal.undo(0, &[]), ["unnumbered"]);
    }

    #[test]
    fn entries_that_are_not_needed_move_no_beginning() {
        let mut journal = Journal::default();
        for number in 0..10 {
            journal.begin(number);
            journal.note(number);
        }
        journal.retain(|number| number % 2 == 0);
        assert_eq!(journal.undo(7, &[8, 9]), [8]);
        assert_eq!(journal.undo(4, &[5, 6]), [4, 6]);
        assert_eq!(journal.len(), 2);
    }
}
