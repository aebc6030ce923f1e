//! The tables of a session, beside those that any run has.
//!
//! In: an empty session. Out: the names, the modules and the cells that it has by now. Each part of a session changes its
//! own tables.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{
    declared::{Declared, Imports},
    present::Present,
    seats::Seats,
};
use crate::{
    data::portable::portable, isolate::engine::Local, modules::session_program::LinkedCell,
};

/// The tables of a session, beside those that any run has.
#[derive(Default)]
pub(in crate::isolate) struct Session {
    /// The names that cells have declared. Shared with the checkpoint until a cell declares another one.
    pub(super) declared: RefCell<Arc<Declared>>,
    pub(super) imports: RefCell<Imports>,
    /// The modules that imports have loaded. Shared with the checkpoint, as the names are.
    pub(super) loaded: RefCell<Loaded>,
    /// The names that the host has given values.
    pub(super) given: RefCell<Arc<HashSet<String>>>,
    /// How many of the host's messages with values were taken in.
    pub(super) taken_in: Cell<usize>,
    pub(super) builtins: Cell<Builtins>,
    /// A cell whose imports are evaluated, its code, and the number of modules that are not done.
    pub(super) linked: RefCell<Option<(LinkedCell, Local)>>,
    pub(super) evaluating: Cell<usize>,
    /// The number of the present cell, in the signals of the modules that it imports.
    pub(super) round: Cell<u32>,
    /// The last such number. It is never given again.
    pub(super) rounds: Cell<u32>,
    /// The promises of the host that came with messages which are handed in again if the present cell is undone.
    pub(super) brought: RefCell<HashSet<u32>>,
    /// The first number of a function that the host was given since the session was reset.
    pub(in crate::isolate) first_function: Cell<u32>,
    /// The cell that runs.
    pub(super) present: RefCell<Option<Present>>,
    /// The cells that wait, if cells interleave.
    pub(super) seats: Option<Seats>,
}

impl Session {
    /// Frees what only one cell needs.
    pub(in crate::isolate) fn leave_cell(&self) {
        self.linked.take();
        self.present.take();
        self.brought.take();
        self.begin_round();
    }

    /// Gives the present cell another number than all before it.
    pub(super) fn begin_round(&self) {
        self.rounds.set(self.rounds.get().wrapping_add(1));
        self.round.set(self.rounds.get());
    }
}

/// The built-in names that are bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Builtins {
    pub(super) console: bool,
    pub(super) report: bool,
}

portable!(struct Builtins { console, report });

/// Addresses of modules.
pub(super) type Loaded = Arc<HashMap<Box<str>, usize>>;
