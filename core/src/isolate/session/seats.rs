//! The tables of cells that wait while another one computes.
//!
//! In: cells that interleave, each with a number. Out: the tables of the cells that wait; `seating` puts these tables here
//! and takes them back.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use super::present::Present;
use crate::{
    isolate::{
        crossing::throws::Throws,
        engine::{
            Local,
            jobs::{self, Layout},
        },
    },
    modules::session_program::LinkedCell,
};

/// The cells of a session that wait.
pub(super) struct Seats {
    pub(super) layout: Layout,
    pub(super) waiting: RefCell<HashMap<u32, Seat>>,
    /// Cells that were undone, though the heap has things of theirs: a later cell had completed.
    pub(super) undone: RefCell<HashSet<u32>>,
}

/// The tables of one cell.
pub(super) struct Seat {
    pub(super) present: Option<Present>,
    pub(super) linked: Option<(LinkedCell, Local)>,
    pub(super) evaluating: usize,
    pub(super) round: u32,
    pub(super) module: Option<Local>,
    pub(super) throws: Throws,
    pub(super) passing: usize,
}

impl Seats {
    /// No cells; `None` if the engine's jobs are not known.
    pub(super) fn new() -> Option<Self> {
        let layout = jobs::layout()?;
        Some(Self { layout, waiting: RefCell::default(), undone: RefCell::default() })
    }

    /// As [`Local::image`].
    pub(super) fn image(&self) -> HashMap<u32, Seat> {
        self.waiting.borrow().iter().map(|(number, seat)| (*number, seat.image())).collect()
    }

    /// Replaces all seats; returns those before.
    pub(super) fn put_back(&self, seats: HashMap<u32, Seat>) -> HashMap<u32, Seat> {
        self.waiting.replace(seats)
    }

    pub(super) fn is_undone(&self, number: u32) -> bool {
        self.undone.borrow().contains(&number)
    }
}

impl Seat {
    /// As [`Local::image`].
    pub(super) fn image(&self) -> Self {
        let linked = self.linked.as_ref();
        Self {
            present: self.present.as_ref().map(Present::image),
            linked: linked.map(|(cell, code)| (cell.clone(), code.image())),
            evaluating: self.evaluating,
            round: self.round,
            module: self.module.as_ref().map(Local::image),
            throws: self.throws.image(),
            passing: self.passing,
        }
    }
}
