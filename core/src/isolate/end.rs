//! The ends of turns and of runs.
//!
//! In: whatever stopped the code. Out: data for the caller of the isolate, which makes a status of it.

use super::engine::Thrown;
use crate::{
    data::{
        cell::ValueFrom,
        outcome::{ExecutionError, Status},
    },
    modules::program::Oversized,
    value::Value,
};

/// The end of a run, as far as the isolate can tell.
#[derive(Debug)]
pub(crate) enum End {
    /// The selected export resolved to this.
    Success(Value),
    /// A cell of a session came to its end.
    Cell(Box<CellEnd>),
    /// Linking failed, or sandbox code threw.
    Failed(Status, Box<ExecutionError>),
    /// The limit was hit.
    Memory,
    /// The limit leaves no room to compile this module.
    Oversized(Box<Oversized>),
    /// The embedder asked the run to end.
    Asked,
    /// One of the two, in code whose place is known.
    Stopped(Box<Stopped>),
    /// This crate itself failed.
    Broken,
}

/// The end of code that was stopped.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// Whether the limit was hit; otherwise the embedder asked the run to end.
    pub(crate) is_memory: bool,
    /// The file, the line and the column, and as its stack the frames alone.
    pub(crate) place: ExecutionError,
}

impl End {
    /// The end of a run that the embedder asked to end, in code at that place.
    pub(crate) fn asked_at(place: Option<ExecutionError>) -> Self {
        place.map_or(Self::Asked, |place| {
            Self::Stopped(Box::new(Stopped { is_memory: false, place }))
        })
    }

    /// Whether the embedder asked the run to end.
    pub(crate) fn is_asked(&self) -> bool {
        match self {
            Self::Asked => true,
            Self::Stopped(stopped) => !stopped.is_memory,
            _ => false,
        }
    }
}

impl Stopped {
    /// The end, and the place.
    pub(crate) fn parts(self) -> (End, ExecutionError) {
        (if self.is_memory { End::Memory } else { End::Asked }, self.place)
    }
}

/// The outcome of a cell that came to its end.
#[derive(Debug, Default)]
pub(crate) struct CellEnd {
    /// The value, `undefined` if the cell has none; `None` if the value cannot cross.
    pub(crate) value: Option<Value>,
    /// The text that a console would show of the value; `None` for `undefined`.
    pub(crate) text: Option<String>,
    /// The message of the error that says why the value cannot cross.
    pub(crate) uncloned: Option<String>,
    /// The part of the cell that the value is from; `None` if there is no value.
    pub(crate) value_from: Option<ValueFrom>,
}

/// The result of a turn of the isolate.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Nothing is left to do until the host sends a message.
    Idle {
        /// Whether the host has anything pending that can lead to a message.
        waits_for_host: bool,
    },
    /// The run is over.
    Ended(End),
}

/// The reason why the run could not start.
pub(super) enum NotStarted {
    /// The static graph could not be loaded; nothing has run.
    Unlinked(Box<ExecutionError>),
    /// An exception is pending.
    Thrown,
}

impl From<Thrown> for NotStarted {
    fn from(Thrown: Thrown) -> Self {
        Self::Thrown
    }
}
