//! The outcome of a promise that the run waits for.
//!
//! In: the number of the kind of promise, and its value. Out: a [`Signal`], which the run's
//! state keeps until `settle` takes it.

use std::ffi::c_int;

use super::engine::Local;

/// The outcome of a promise that the run waits for.
pub(super) struct Signal {
    pub(super) what: c_int,
    /// Of a module that a cell imports: the number of the cell.
    pub(super) number: u32,
    pub(super) value: Local,
}

impl Signal {
    pub(super) fn of(what: c_int, value: Local) -> Self {
        Self { what, number: 0, value }
    }
}

pub(super) const EVALUATED: c_int = 0;
pub(super) const RESOLVED: c_int = 1;
pub(super) const REJECTED: c_int = 2;
/// A call of the host has settled which is the work of a session's cell.
pub(super) const HELD: c_int = 3;
/// The code of a session's cell has come to its end.
pub(super) const RETURNED: c_int = 4;
/// A module has been evaluated which a session's cell imports.
pub(super) const IMPORTED: c_int = 5;
