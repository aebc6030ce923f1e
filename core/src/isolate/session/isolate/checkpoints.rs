//! The checkpoints of a session.
//!
//! In: a cell that was kept, or one that is undone. Out: an image of the heap and one of the tables, or the session as
//! they have it.

use super::{
    Flights, Limits, SessionIsolate,
    image::{self, Image},
};
use crate::{
    data::cell::SessionState,
    isolate::{
        memory::{escape::forgetting, heap::Heap, snapshot::Snapshot},
        session::{turns::program_of, work::Progress},
        state::State,
    },
};

/// The state before the present cell, or the next one.
pub(in crate::isolate::session) enum Before {
    /// That of a new session.
    Pristine,
    Checkpoint(Box<(Snapshot, Image)>),
    /// The present one, of which the checkpoint is still to be taken.
    Due,
    /// It was too large, or cannot be had.
    Unknown,
}

impl Before {
    /// The state before the first cell.
    pub(super) fn first(limits: Limits) -> Self {
        if limits.checkpoint_bytes > 0 { Self::Pristine } else { Self::Unknown }
    }

    pub(super) fn copy(&self) -> Self {
        match self {
            Self::Pristine => Self::Pristine,
            Self::Checkpoint(checkpoint) => {
                let (snapshot, image) = &**checkpoint;
                Self::Checkpoint(Box::new((snapshot.clone(), image.copy())))
            }
            Self::Due => Self::Due,
            Self::Unknown => Self::Unknown,
        }
    }
}

impl SessionIsolate {
    /// Frees what a cell leaves, and takes the checkpoint. False if the engine was left meanwhile.
    pub(in crate::isolate::session) fn keep(&mut self, number: u32) -> bool {
        let Some(state) = &mut self.state else { return true };
        let occupied = self.tenant.occupy();
        let instance = occupied.instance();
        // Nothing ends this, and nothing is too much for it.
        instance.rest();
        instance.realm().attach(state);
        let left = instance.enter(|_| {
            state.leave_cell();
            state.forget_dead_cells();
            state.cell.set(0);
            state.wanted_cell()
        });
        let wanted = match left {
            Ok(wanted) if !state.failed() => wanted,
            _ => {
                self.present = Progress::Left;
                return false;
            }
        };
        let others_bytes = self.flights.as_ref().map_or(0, |flights| flights.loose_bytes(number));
        discharge(instance.heap(), state, others_bytes);
        drop(occupied);
        // Dropped before the next one is taken, which may then use its memory.
        self.before = Before::Due;
        if let Some(flights) = &mut self.flights {
            flights.complete(number, wanted, program_of(state).next_number());
        }
        self.leave_seat();
        self.present = Progress::Untouched;
        true
    }

    /// Notes that the session has what the host gave and its checkpoint does not: a cell was loaded that did not begin.
    /// Cells in flight may still go back to that checkpoint.
    pub(in crate::isolate::session) fn note_loaded(&mut self) {
        let is_alone = self.flights.as_ref().is_none_or(Flights::has_one);
        if is_alone && matches!(self.before, Before::Checkpoint(_)) {
            self.before = Before::Due;
        }
    }

    /// Takes the checkpoint of a cell that was kept, if it is due: after its result has gone to the host, and before
    /// anything else happens.
    pub(crate) fn take_checkpoint(&mut self) {
        if !matches!(self.before, Before::Due) {
            return;
        }
        self.before = match self.checkpoint() {
            Some(checkpoint) => Before::Checkpoint(Box::new(checkpoint)),
            None => Before::Unknown,
        };
    }

    fn checkpoint(&self) -> Option<(Snapshot, Image)> {
        self.checkpoint_after(None).map(|(checkpoint, _)| checkpoint)
    }

    /// A checkpoint, and its bytes beside those that it shares with an earlier one.
    pub(in crate::isolate::session) fn checkpoint_after(
        &self,
        earlier: Option<&(Snapshot, Image)>,
    ) -> Option<((Snapshot, Image), usize)> {
        let state = self.state.as_ref()?;
        let occupied = self.tenant.occupy();
        let heap = occupied.instance().heap();
        let held_bytes = heap.used_bytes() + heap.charged_bytes();
        let most_bytes = self.limits.checkpoint_bytes;
        let fits = held_bytes <= most_bytes && most_bytes > 0;
        let snapshot = fits.then(|| occupied.checkpoint()).flatten()?;
        let bytes = snapshot.bytes_beyond(earlier.map(|(snapshot, _)| snapshot));
        let (image, more_bytes) = Image::after(state, earlier.map(|(_, image)| image))?;
        Some(((snapshot, image), bytes + more_bytes))
    }

    /// Undoes the present cell.
    pub(in crate::isolate::session) fn undo(&mut self) -> SessionState {
        let Before::Checkpoint(checkpoint) = &self.before else {
            let undone = match self.before {
                Before::Pristine => SessionState::RolledBack,
                _ => SessionState::Reset,
            };
            self.start_again(undone == SessionState::Reset);
            return undone;
        };
        let (snapshot, image) = &**checkpoint;
        if let Some(state) = &mut self.state {
            let mut occupied = self.tenant.occupy();
            // First, for the tables are of no use to the heap from here on.
            image::forget(state);
            occupied.recall(snapshot);
            image.put_back(state);
            program_of(state).forget_cells(self.first_cell);
        }
        self.leave_seat();
        SessionState::RolledBack
    }

    /// Puts the beginning back. `is_reset`: functions that the host has from before are those of a session that was reset.
    pub(in crate::isolate::session) fn start_again(&mut self, is_reset: bool) {
        if let Some(mut state) = self.state.take() {
            self.numbers = self.numbers.of(&state);
            self.program = std::mem::replace(program_of(&mut state), self.program.emptied());
            self.program.reset();
            forgetting(|| drop(state));
        }
        if is_reset {
            self.numbers.first_function = self.numbers.function;
        }
        self.lost = !self.tenant.occupy().recall_pristine();
        self.before = Before::first(self.limits);
    }
}

/// Takes back all charges but those for what the session keeps, and these of other cells.
pub(in crate::isolate::session) fn discharge(heap: &Heap, state: &State, others_bytes: usize) {
    heap.discharge(heap.charged_bytes().saturating_sub(state.kept.get() + others_bytes));
}
