//! The time for reading messages in one turn of an event loop.
//!
//! In: the approximate cost of each step. Out: whether the time is over. The clock is checked only every few
//! hundred steps.

use std::time::{Duration, Instant};

/// The time for reading in one turn of an event loop.
const TURN: Duration = Duration::from_millis(15);

/// Steps between two checks of the clock. The longest ones take some 100 microseconds together.
const STEPS: u32 = 256;

/// Bytes that are copied in the time of a step.
const BYTES_PER_STEP: usize = 2 << 10;

/// The rest of the time.
#[derive(Debug)]
pub(crate) struct Budget {
    steps: u32,
    until: Option<Instant>,
}

impl Budget {
    /// The budget of one turn of a loop.
    pub(crate) fn of_a_turn() -> Self {
        Self { steps: STEPS, until: Some(Instant::now() + TURN) }
    }

    /// A budget without a limit, for a small message or for a thread without other work.
    pub(crate) fn endless() -> Self {
        Self { steps: STEPS, until: None }
    }

    pub(crate) fn spend(&mut self, steps: u32) {
        self.steps = self.steps.saturating_sub(steps);
    }

    pub(crate) fn spend_bytes(&mut self, bytes: usize) {
        self.spend(u32::try_from(bytes / BYTES_PER_STEP).unwrap_or(u32::MAX));
    }

    /// Whether the time is over.
    #[inline]
    pub(crate) fn is_spent(&mut self) -> bool {
        self.steps == 0 && self.check_clock()
    }

    #[cold]
    fn check_clock(&mut self) -> bool {
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        if !is_over {
            self.steps = STEPS;
        }
        is_over
    }
}
