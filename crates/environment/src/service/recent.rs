//! Processes that have just ended, and that the database has.
//!
//! In: processes that were saved. Out: those that may leave the memory. The last few stay, because most clients read the
//! results of a process right after its end.

use std::collections::VecDeque;

/// The most processes.
const MOST: usize = 256;

/// The most bytes of their results.
const MOST_BYTES: u64 = 16 << 20;

/// Processes in the order of their ends.
#[derive(Debug, Default)]
pub(super) struct Recent {
    ends: VecDeque<Ended>,
    bytes: u64,
}

/// The end of an execution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) pid: u64,
    pub(super) attempt: u64,
    pub(super) bytes: u64,
}

impl Recent {
    pub(super) fn push(&mut self, ended: Ended) {
        self.bytes += ended.bytes;
        self.ends.push_back(ended);
    }

    /// One that is too many.
    pub(super) fn pop(&mut self) -> Option<Ended> {
        if self.ends.len() <= MOST && self.bytes <= MOST_BYTES {
            return None;
        }
        let oldest = self.ends.pop_front()?;
        self.bytes -= oldest.bytes;
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_leave_by_number_and_by_bytes() {
        let mut recent = Recent::default();
        let ended = |pid, bytes| Ended { pid, attempt: 1, bytes };
        for pid in 0..300 {
            recent.push(ended(pid, 0));
        }
        let left = std::iter::from_fn(|| recent.pop()).map(|ended| ended.pid);
        assert!(left.eq(0..44));
        recent.push(ended(300, MOST_BYTES));
        assert!(recent.pop().is_some_and(|ended| ended.pid == 44));
        recent.push(ended(301, 1));
        let left = std::iter::from_fn(|| recent.pop()).map(|ended| ended.pid);
        assert!(left.eq(45..=300));
    }
}
