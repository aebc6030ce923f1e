//! Charges for the answer of a call.
//!
//! In: bytes that an answer is about to take. Out: whether its run may have them. They count against the run's memory
//! limit until the answer has been handed over.

use isolane::{Charge, NativeRun, Value, value::Event};

/// Bytes that are charged at once.
const PORTION_BYTES: usize = 64 << 10;

/// Bytes that an element takes as a value of its own.
const ELEMENT_BYTES: usize = 160;

/// The charges of one answer; an answer for the host itself has none.
#[derive(Debug)]
pub(super) struct Charges {
    run: Option<NativeRun>,
    held: Vec<Charge>,
    charged_bytes: usize,
    used_bytes: usize,
}

impl Charges {
    pub(super) fn new(run: Option<NativeRun>) -> Self {
        Self { run, held: Vec::new(), charged_bytes: 0, used_bytes: 0 }
    }

    /// Counts so many more bytes. After `false` the run has ended, or ends, as `memory`.
    #[must_use]
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        self.used_bytes = self.used_bytes.saturating_add(bytes);
        let Some(run) = self.run.as_ref().filter(|_| self.used_bytes > self.charged_bytes) else {
            return true;
        };
        // Portions grow with the whole, so that there are few of them.
        let missing = self.used_bytes - self.charged_bytes;
        let portion = missing.max(PORTION_BYTES.min(missing * 8)).max(self.charged_bytes / 8);
        let Some(charge) = run.charge(portion) else { return false };
        self.held.push(charge);
        self.charged_bytes += portion;
        true
    }

    /// The elements of an array, each as a value of its own; `None` if the value is none, or the run has no room.
    pub(super) fn elements(&mut self, array: &Value) -> Option<Vec<Value>> {
        let Ok(Event::Array(length) | Event::SparseArray(length)) = array.reader().event() else {
            return None;
        };
        let bytes =
            (length as usize).saturating_mul(ELEMENT_BYTES).saturating_add(array.held_bytes());
        if self.take(bytes) { array.deserialize().ok() } else { None }
    }
}
