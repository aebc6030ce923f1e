//! How long a message may be read at once.
//!
//! In: what each step costs, about. Out: whether it is time to let others go on. The clock is only
//! looked at every few hundred steps.

use std::time::{Duration, Instant};

/// How long one turn of an event loop may be taken up by reading.
const TURN: Duration = Duration::from_millis(15);

/// Steps between two looks at the clock; the longest take some 100 microseconds together.
const STEPS: u32 = 256;

/// Bytes that are copied in the time of a step.
const BYTES_PER_STEP: usize = 2 << 10;

/// What is left of a time to read in.
#[derive(Debug)]
pub(crate) struct Budget {
    steps: u32,
    until: Option<Instant>,
}

impl Budget {
    /// For one turn of a loop.
    pub(crate) fn of_a_turn() -> Self {
        Self { steps: STEPS, until: Some(Instant::now() + TURN) }
    }

    /// For a message that is small, or a thread that has nothing else to do.
    pub(crate) fn endless() -> Self {
        Self { steps: STEPS, until: None }
    }

    pub(crate) fn spend(&mut self, steps: u32) {
        self.steps = self.steps.saturating_sub(steps);
    }

    pub(crate) fn spend_bytes(&mut self, bytes: usize) {
        self.spend(u32::try_from(bytes / BYTES_PER_STEP).unwrap_or(u32::MAX));
    }

    /// Whether it is time to stop.
    #[inline]
    pub(crate) fn is_spent(&mut self) -> bool {
        self.steps == 0 && self.look()
    }

    #[cold]
    fn look(&mut self) -> bool {
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        if !is_over {
            self.steps = STEPS;
        }
        is_over
    }
}
