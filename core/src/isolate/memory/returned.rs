//! The pages of a range that were given back to the system, and not handed out again since.
//!
//! In: addresses that were given back, and those of blocks that are handed out. Out: the number of bytes that the
//! system has back. Together with the bytes ever written this shows how much the process holds for a range, without
//! asking the system.

use super::range::PAGE_BYTES;
use crate::data::portable::portable;
use std::cell::{Cell, RefCell};

const PAGES_PER_WORD: usize = u64::BITS as usize;

/// A bit for each page, as far up as any was given back.
#[derive(Default)]
pub(in crate::isolate) struct Returned {
    pages: RefCell<Vec<u64>>,
    count: Cell<usize>,
}

/// The record of a range at one time.
#[derive(Clone)]
pub(in crate::isolate) struct ReturnedPages {
    pages: Vec<u64>,
    count: usize,
}

portable!(struct ReturnedPages { pages, count });

impl ReturnedPages {
    /// Whether the system has the page with that number.
    pub(in crate::isolate) fn has(&self, page: usize) -> bool {
        let word = self.pages.get(page / PAGES_PER_WORD);
        word.is_some_and(|word| word >> (page % PAGES_PER_WORD) & 1 == 1)
    }
}

impl Returned {
    pub(in crate::isolate) fn bytes(&self) -> usize {
        self.count.get() * PAGE_BYTES
    }

    /// Whether the system has all pages between two offsets.
    pub(in crate::isolate) fn has_all(&self, from: usize, to: usize) -> bool {
        let mut pages = self.pages.borrow_mut();
        let count = each_word(&mut pages, from, to, |word, mask| mask & *word);
        count == to.div_ceil(PAGE_BYTES) - from / PAGE_BYTES
    }

    /// Forgets all pages: every one is held again, or none was written.
    pub(in crate::isolate) fn clear(&self) {
        if self.count.replace(0) > 0 {
            self.pages.take();
        }
    }

    /// The record as it is now.
    pub(in crate::isolate) fn record(&self) -> ReturnedPages {
        let count = self.count.get();
        // Without a returned page all bits are zero.
        let pages = if count > 0 { self.pages.borrow().clone() } else { Vec::new() };
        ReturnedPages { pages, count }
    }

    /// Goes back to a record.
    pub(in crate::isolate) fn set(&self, record: &ReturnedPages) {
        self.pages.borrow_mut().clone_from(&record.pages);
        self.count.set(record.count);
    }

    /// Records that the system has these pages back; both are offsets of pages.
    pub(in crate::isolate) fn insert(&self, from: usize, to: usize) {
        let mut pages = self.pages.borrow_mut();
        let words = to.div_ceil(PAGE_BYTES).div_ceil(PAGES_PER_WORD);
        if pages.len() < words {
            pages.resize(words, 0);
        }
        let count = each_word(&mut pages, from, to, |word, mask| {
            let new = mask & !*word;
            *word |= mask;
            new
        });
        self.count.set(self.count.get() + count);
    }

    /// Records that these bytes may be written from now on: every page that they touch is held again.
    pub(in crate::isolate) fn remove(&self, from: usize, to: usize) {
        if self.count.get() == 0 {
            return;
        }
        let count = each_word(&mut self.pages.borrow_mut(), from, to, |word, mask| {
            let old = mask & *word;
            *word &= !mask;
            old
        });
        self.count.set(self.count.get() - count);
    }
}

/// Changes the words with the pages that the offsets touch; returns the number of these pages.
fn each_word(
    pages: &mut [u64],
    from: usize,
    to: usize,
    change: impl Fn(&mut u64, u64) -> u64,
) -> usize {
    let (first, end) = (from / PAGE_BYTES, to.div_ceil(PAGE_BYTES));
    let words = first / PAGES_PER_WORD..end.div_ceil(PAGES_PER_WORD).min(pages.len());
    let mut count = 0;
    for index in words {
        let Some(word) = pages.get_mut(index) else { break };
        let start = index * PAGES_PER_WORD;
        let low = first.saturating_sub(start);
        let high = (end - start).min(PAGES_PER_WORD);
        let mask = u64::MAX << low & u64::MAX >> (PAGES_PER_WORD - high);
        count += change(word, mask).count_ones() as usize;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_once() {
        let returned = Returned::default();
        let page = |number: usize| number * PAGE_BYTES;
        returned.remove(0, page(1_000));
        returned.insert(page(60), page(200));
        returned.insert(page(100), page(130));
        assert_eq!(returned.bytes(), page(140));
        assert!(returned.has_all(page(60), page(200)) && !returned.has_all(page(59), page(61)));
        assert!(!returned.has_all(page(199), page(2_000)));
        // A range that touches a page takes all of it.
        returned.remove(page(64) - 1, page(65) + 1);
        assert_eq!(returned.bytes(), page(137));
        returned.remove(page(199), page(5_000));
        assert_eq!(returned.bytes(), page(136));
        returned.insert(page(0), page(1));
        returned.remove(0, 16);
        assert_eq!(returned.bytes(), page(136));
        returned.clear();
        assert_eq!(returned.bytes(), 0);
    }
}
