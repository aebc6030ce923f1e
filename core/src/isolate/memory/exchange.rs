//! The parts of a heap that move when the content of its range is exchanged for another.
//!
//! In: a heap in a range. Out: the [`Figures`] that belong to the content, for a snapshot; and the [`Account`] of the run
//! that uses it, which goes on when the content is back.

use super::{accounting::Blocks, arena::ArenaState, heap::Heap, termination::Termination};
use crate::data::portable::portable;
use std::sync::Arc;

/// The bytes of free blocks that a heap at rest may keep: a share of those in use, and some more.
const FREE_SHARE: usize = 8;
const FREE_BYTES: usize = 1 << 20;

/// The figures of a heap in a range that belong to the range's content, for a heap whose content is exchanged.
#[derive(Clone)]
pub(crate) struct Figures {
    used_bytes: usize,
    charged_bytes: usize,
    high_bytes: usize,
    arena: ArenaState,
}

portable!(struct Figures { used_bytes, charged_bytes, high_bytes, arena });

impl Figures {
    /// Bytes that the engine holds, and those that the code makes others hold.
    #[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(isolane_portable)))]
    pub(crate) fn held_bytes(&self) -> usize {
        self.used_bytes + self.charged_bytes
    }

    /// How many bytes of the range had been written.
    pub(crate) fn high_bytes(&self) -> usize {
        self.high_bytes
    }

    /// Whether they can be those of a range of so many bytes that starts there.
    pub(crate) fn fit(&self, start: usize, bytes: usize) -> bool {
        self.high_bytes <= bytes && self.arena.high_bytes(start) == Some(self.high_bytes)
    }

    /// Whether the system has the page of the range with that number.
    pub(crate) fn has_returned(&self, page: usize) -> bool {
        self.arena.has_returned(page)
    }
}

/// The accounting of a run while the range has the content of another. By default that of no run: without a limit.
pub(crate) struct Account {
    limit_bytes: usize,
    peak_bytes: usize,
    exhausted: bool,
    leaves: bool,
    termination: Option<Arc<Termination>>,
}

impl Default for Account {
    fn default() -> Self {
        let (limit_bytes, peak_bytes) = (usize::MAX, 0);
        Self { limit_bytes, peak_bytes, exhausted: false, leaves: false, termination: None }
    }
}

impl Heap {
    /// The figures that belong to the content of the range; `None` for a heap without one.
    pub(crate) fn figures(&self) -> Option<Figures> {
        let accounting = self.accounting();
        let Blocks::Arena(arena) = &accounting.blocks else { return None };
        Some(Figures {
            used_bytes: accounting.used_bytes.get(),
            charged_bytes: accounting.charged_bytes.get(),
            high_bytes: arena.high_bytes(),
            arena: arena.state(),
        })
    }

    /// Sets the figures that belong to the content which the range has by now.
    pub(crate) fn set_figures(&self, figures: &Figures) {
        let accounting = self.accounting();
        accounting.used_bytes.set(figures.used_bytes);
        accounting.charged_bytes.set(figures.charged_bytes);
        if let Blocks::Arena(arena) = &accounting.blocks {
            arena.set_state(&figures.arena);
        }
    }

    /// Takes the accounting of a run away. No thread but this one reaches into the heap from then on.
    pub(crate) fn take_account(&self) -> Account {
        let accounting = self.accounting();
        let termination = accounting.termination.take();
        if let Some(termination) = &termination {
            termination.detach();
        }
        Account {
            limit_bytes: accounting.limit_bytes.replace(usize::MAX),
            peak_bytes: accounting.peak_bytes.replace(0),
            exhausted: accounting.exhausted.replace(false),
            leaves: accounting.leaves.replace(false),
            termination,
        }
    }

    /// Goes on with the accounting of a run. The engine soon sees a request to end that came meanwhile.
    pub(crate) fn set_account(&self, account: Account) {
        let accounting = self.accounting();
        accounting.limit_bytes.set(account.limit_bytes);
        accounting.peak_bytes.set(account.peak_bytes);
        accounting.exhausted.set(account.exhausted);
        accounting.leaves.set(account.leaves);
        self.set_termination(account.termination);
        if accounting.must_end() {
            accounting.hurry();
        }
    }

    /// Clears the whole pages within free blocks, so that a snapshot leaves them out.
    pub(crate) fn clear_free(&self) {
        if let Blocks::Arena(arena) = &self.accounting().blocks {
            arena.clear_free();
        }
    }

    /// Gives the pages of free blocks back to the system where these are much of what the process holds.
    pub(crate) fn give_back_free(&self) {
        let accounting = self.accounting();
        if let Blocks::Arena(arena) = &accounting.blocks {
            let used_bytes = accounting.used_bytes.get();
            if arena.held_bytes() > used_bytes + used_bytes / FREE_SHARE + FREE_BYTES {
                arena.give_back_free();
            }
        }
    }
}
