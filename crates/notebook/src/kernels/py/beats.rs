//! The heartbeats of a kernel.
//!
//! In: looks at the kernel, and its answers. Out: whether it is asked, and whether it is dead: without a cell it has left
//! two heartbeats without an answer. One with a cell has the clock of that.

use std::sync::{Mutex, PoisonError};

/// The heartbeats that a kernel may miss, and one more.
const MOST_MISSED: u32 = 2;

/// The heartbeats of a kernel.
#[derive(Debug, Default)]
pub(super) struct Beats(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Whether the kernel was asked and has not answered.
    is_asked: bool,
    missed: u32,
}

/// The act that a look at a kernel leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    /// It is asked.
    Asks,
    /// It was asked before.
    Waits,
    /// It is dead.
    Dead,
}

impl Beats {
    /// The kernel has answered.
    pub(super) fn answered(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }

    /// The time between two heartbeats is over.
    pub(super) fn next(&self, is_busy: bool) -> Beat {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut state.is_asked, true) {
            return Beat::Asks;
        }
        state.missed = if is_busy { 0 } else { state.missed + 1 };
        if state.missed < MOST_MISSED { Beat::Waits } else { Beat::Dead }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_a_cell_that_misses_two_is_dead() {
        let beats = Beats::default();
        assert_eq!([(); 3].map(|()| beats.next(false)), [Beat::Asks, Beat::Waits, Beat::Dead]);
    }

    #[test]
    fn an_answer_counts_however_late_it_is() {
        let beats = Beats::default();
        for _ in 0..3 {
            assert_eq!([(); 2].map(|()| beats.next(false)), [Beat::Asks, Beat::Waits]);
            beats.answered();
        }
    }

    #[test]
    fn a_kernel_with_a_cell_has_its_clock() {
        let beats = Beats::default();
        assert_eq!(beats.next(false), Beat::Asks);
        assert_eq!([(); 9].map(|()| beats.next(true)), [Beat::Waits; 9]);
        // It begins anew once the cell has ended.
        assert_eq!([(); 2].map(|()| beats.next(false)), [Beat::Waits, Beat::Dead]);
    }
}
