//! The cell that runs.
//!
//! In: the names of a cell, and its value once the cell has given one. Out: both until the cell ends, and an image while
//! the cell waits.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
};

use super::declared::Slots;
use crate::{isolate::engine::Local, modules::compile::cell::CellValue};

/// The cell that runs.
pub(super) struct Present {
    pub(super) slots: Slots,
    /// Whether it came to its end, without a `return`.
    pub(super) came_to_end: Cell<bool>,
    /// Whether it has given its value, which may have to be awaited.
    pub(super) has_value: Cell<bool>,
    /// The value that it has given, until that is awaited.
    pub(super) value: RefCell<Option<Local>>,
    /// The source of its value, unless it returned.
    pub(super) source: CellValue,
    /// The host's calls that it is, if the host called functions: those of them that have no outcome.
    pub(super) held: Option<RefCell<HashSet<u32>>>,
}

impl Present {
    /// As [`Local::image`].
    pub(super) fn image(&self) -> Self {
        Self {
            slots: self.slots.image(),
            came_to_end: self.came_to_end.clone(),
            has_value: self.has_value.clone(),
            value: RefCell::new(self.value.borrow().as_ref().map(Local::image)),
            source: self.source,
            held: self.held.clone(),
        }
    }
}
