//! The turns of cells that interleave.
//!
//! In: cells, each with a number. Out: the tables of the one that computes, in their usual places, and those of the others
//! in their seats. Every promise has the number of the cell that made it, and the code behind an `await` or a `then`
//! belongs to the cell of its promise. So before each job it is known whose it is. A job of another cell waits for that
//! cell's turn. One of a cell that was undone is dropped. One whose cell has completed, or cannot be told, belongs to the
//! cell that computes.

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

use std::{collections::HashSet, ffi::c_void, ptr};

use super::seats::{Seat, Seats};
use crate::isolate::{
    crossing::numbered::Sender,
    engine::{Cx, Raw, jobs, sys},
    state::State,
};

/// Whether the next job belongs to another cell in flight, which has to have its turn first.
pub(in crate::isolate) fn is_anothers_turn(state: &State) -> bool {
    let number = state.cell.get();
    if number == 0 {
        return false;
    }
    let Some(seats) = state.seats() else {
        return false;
    };
    match state.next_cell(seats) {
        Some(next) => next != number && seats.waiting.borrow().contains_key(&next),
        None => false,
    }
}

/// Whether a cell that has sent a function to the host is in flight, has completed, or was undone.
pub(in crate::isolate) fn sender(state: &State, cell: u32) -> Sender {
    let Some(seats) = state.seats() else { return Sender::Completed };
    if seats.is_undone(cell) {
        Sender::Undone
    } else if cell == state.cell.get() || seats.waiting.borrow().contains_key(&cell) {
        Sender::InFlight
    } else {
        Sender::Completed
    }
}

impl State {
    fn seats(&self) -> Option<&Seats> {
        self.session.as_ref()?.seats.as_ref()
    }

    /// The number behind the next job, zero if it cannot be told. Drops the jobs of cells that were undone.
    fn next_cell(&self, seats: &Seats) -> Option<u32> {
        let cx = self.realm().cx;
        loop {
            let next = jobs::next_number(cx, seats.layout)?;
            if !seats.is_undone(next) {
                return Some(next);
            }
            jobs::drop_next(cx, seats.layout);
        }
    }

    /// The cell that has to compute next, because a job waits for it; zero if any cell may. `None` if no job waits. The
    /// engine must be entered.
    pub(super) fn wanted_cell(&self) -> Option<u32> {
        let seats = self.seats()?;
        let next = self.next_cell(seats)?;
        Some(if seats.waiting.borrow().contains_key(&next) { next } else { 0 })
    }

    /// Puts the tables of the cell that computes aside: it waits.
    pub(super) fn sit_down(&self) {
        let number = self.cell.take();
        let Some(session) = self.session.as_ref().filter(|_| number != 0) else { return };
        let Some(seats) = &session.seats else { return };
        let seat = Seat {
            present: session.present.take(),
            linked: session.linked.take(),
            evaluating: session.evaluating.take(),
            round: session.round.get(),
            module: self.module.take(),
            throws: self.throws.take(),
            passing: self.passing.take(),
        };
        let former = seats.waiting.borrow_mut().insert(number, seat);
        debug_assert!(former.is_none(), "a cell has one seat");
    }

    /// Has the cell with that number compute. One that begins has no seat yet.
    pub(super) fn stand_up(&self, number: u32) {
        self.cell.set(number);
        let Some(session) = &self.session else { return };
        let Some(seats) = &session.seats else { return };
        let Some(seat) = seats.waiting.borrow_mut().remove(&number) else {
            // Another one than those of all cells in flight.
            return session.begin_round();
        };
        session.present.replace(seat.present);
        session.linked.replace(seat.linked);
        session.evaluating.set(seat.evaluating);
        session.round.set(seat.round);
        self.module.replace(seat.module);
        self.throws.replace(seat.throws);
        self.passing.set(seat.passing);
    }

    /// The cells that were undone, though the heap has things of theirs.
    pub(super) fn undone(&self) -> HashSet<u32> {
        self.seats().map(|seats| seats.undone.borrow().clone()).unwrap_or_default()
    }

    /// Knows these cells as undone, as the session does that this is a copy of.
    pub(super) fn know_undone(&self, undone: HashSet<u32>) {
        if let Some(seats) = self.seats() {
            seats.undone.replace(undone);
        }
    }

    /// Notes that these cells were undone, and forgets what they have in the heap. The engine must be entered.
    pub(super) fn forget_cells(&self, is_undone: impl Fn(u32) -> bool) {
        let Some(seats) = self.seats() else {
            return;
        };
        let gone: Vec<_> =
            seats.waiting.borrow_mut().extract_if(|number, _| is_undone(*number)).collect();
        for (number, seat) in gone {
            seats.undone.borrow_mut().insert(number);
            let Seat { present, linked, module, throws, passing, .. } = seat;
            self.throws.replace(throws);
            self.forget_throws();
            self.kept.set(self.kept.get().saturating_sub(passing));
            // Frees values of the engine, with nothing borrowed.
            drop((present, linked, module));
        }
    }

    /// Has the engine give every promise the number of the cell that makes it.
    pub(super) fn number_promises(&self) {
        let cx = self.realm().cx;
        // SAFETY: a live runtime; the function finds the tables through the context.
        unsafe {
            let runtime = sys::JS_GetRuntime(cx.0);
            sys::JS_SetPromiseHook(runtime, Some(note_promise), ptr::null_mut());
        }
    }
}

/// Called by the engine when it makes a promise, and at other times.
unsafe extern "C" fn note_promise(
    ctx: *mut sys::JSContext,
    kind: sys::JSPromiseHookType,
    promise: Raw,
    _parent: Raw,
    _opaque: *mut c_void,
) {
    if kind != sys::JSPromiseHookType_JS_PROMISE_HOOK_INIT {
        return;
    }
    let state = Cx(ctx).opaque().cast::<State>();
    // SAFETY: the session puts its tables there before any code runs and removes them afterwards.
    if let Some(state) = unsafe { state.as_ref() }
        && let Some(seats) = state.seats()
    {
        jobs::set_number(seats.layout, promise, state.cell.get());
    }
}
