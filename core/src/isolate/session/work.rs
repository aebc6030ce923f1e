//! The work of a cell, its surroundings, its progress and its effect.
//!
//! In: a cell, as the host asks for it. Out: plain data on its way to the isolate of the session, and back.

use std::sync::Arc;

use crate::{
    binding::inbound::Inbound,
    data::{
        cell::SessionState,
        source::{Language, SourceText},
    },
    isolate::{embedder::Embedder, memory::termination::Termination},
    value::Value,
};

/// The work of a cell.
#[derive(Debug)]
pub(crate) enum Work {
    /// Runs a source. The caller has filled in the file name (`<cell N>`) and the language.
    Source { source: SourceText, filename: String, language: Language },
    /// Calls what a cell declared under that name. `args` is a message that is an array.
    Call { name: String, args: Value },
    /// Calls a function that the host holds. The outcome goes to [`Embedder::function_settled`], and the cell ends as
    /// [`End::Cell`](crate::isolate::End::Cell) without a value, whatever the outcome. If the cell ends in any other way, the function has not
    /// settled.
    Held { function: u32, args: Value, call: u32 },
}

/// The surroundings of a cell.
#[derive(Clone)]
pub(crate) struct CellSeat {
    /// Its number among all cells of the session, if cells interleave; otherwise zero.
    pub(crate) number: u32,
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) termination: Arc<Termination>,
    /// Whether the built-in `report` exists.
    pub(crate) report: bool,
}

/// The effect of a cell on the state.
#[derive(Debug)]
pub(crate) struct Concluded {
    pub(crate) state: SessionState,
    /// Messages of the host that a cell was handed which has been undone, or which never ran. The next cell must be
    /// handed them first.
    pub(crate) again: Vec<Inbound>,
    /// Other cells in flight that were undone with it.
    pub(crate) undone: Vec<u32>,
    /// Whether no code of it ran, so that nothing has changed.
    pub(crate) is_untouched: bool,
}

impl Concluded {
    pub(crate) fn of(state: SessionState, again: Vec<Inbound>) -> Self {
        Self { state, again, undone: Vec::new(), is_untouched: false }
    }
}

/// The progress of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// No code ran, so nothing has changed.
    Untouched,
    Running,
    /// The engine was left, and its heap is broken.
    Left,
}
