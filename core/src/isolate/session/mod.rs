//! Sessions: an isolate that stays, and cells that run in it one after another.
//!
//! In: a session's capabilities, then one [`Work`] after another. Out: a [`Turn`](super::Turn) each time a cell stops,
//! its end, and what it did to the state.
//!
//! `isolate` has the session and its checkpoints, `image` what these keep of the tables beside the heap, `blocks` what
//! several of them share. `names` binds
//! the names that cells declare, `capabilities` those that the host gives, and `listing` lists the former. `modules` has
//! the modules that were loaded, and `remains` forgets cells of which nothing lives. `turns` enters the engine, `code`
//! loads a cell, and `cell` goes from the linked cell to its end. Where cells interleave, `seats` has the tables of those
//! that wait, and `interleave` their turns and the points to which they go back.

mod blocks;
mod capabilities;
mod cell;
pub(super) mod code;
mod image;
mod interleave;
mod isolate;
mod listing;
mod modules;
pub(super) mod names;
mod remains;
mod seats;
#[cfg(test)]
mod tests;
mod turns;

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    sync::Arc,
};

use self::{
    capabilities::Builtins,
    cell::Present,
    modules::Loaded,
    names::{Declared, Imports},
    seats::Seats,
};
pub(super) use self::{
    cell::{called, is_held, settled, take_signal},
    seats::is_anothers_turn,
};
pub(crate) use self::{
    interleave::Addressee,
    isolate::{CellSeat, Concluded, SessionIsolate, Work},
};
use crate::{isolate::engine::Local, modules::session_program::LinkedCell};

/// The tables of a session, beside those that any run has.
#[derive(Default)]
pub(super) struct Session {
    /// The names that cells have declared. Shared with the checkpoint until a cell declares another one.
    declared: RefCell<Arc<Declared>>,
    imports: RefCell<Imports>,
    /// The modules that imports have loaded. Shared with the checkpoint, as the names are.
    loaded: RefCell<Loaded>,
    /// The names that the host has given values.
    given: RefCell<Arc<HashSet<String>>>,
    /// How many of the host's messages with values were taken in.
    taken_in: Cell<usize>,
    builtins: Cell<Builtins>,
    /// A cell whose imports are evaluated, its code, and the number of modules that are not done.
    linked: RefCell<Option<(LinkedCell, Local)>>,
    evaluating: Cell<usize>,
    /// The number of the present cell, in the signals of the modules that it imports.
    round: Cell<u32>,
    /// The last such number. It is never given again.
    rounds: Cell<u32>,
    /// The promises of the host that came with messages which are handed in again if the present cell is undone.
    brought: RefCell<HashSet<u32>>,
    /// The first number of a function that the host was given since the session was reset.
    pub(super) first_function: Cell<u32>,
    /// The cell that runs.
    present: RefCell<Option<Present>>,
    /// The cells that wait, if cells interleave.
    seats: Option<Seats>,
}

impl Session {
    /// Frees what only one cell needs.
    pub(super) fn leave_cell(&self) {
        self.linked.take();
        self.present.take();
        self.brought.take();
        self.begin_round();
    }

    /// Gives the present cell another number than all before it.
    fn begin_round(&self) {
        self.rounds.set(self.rounds.get().wrapping_add(1));
        self.round.set(self.rounds.get());
    }
}
