//! Events of processes, and their readers.
//!
//! In: what the service stores of each process. Out: events with ids, in order. A reader holds a place in the stored
//! events and no events of its own, so a slow reader costs no memory; one that is too far behind is cut off.

use std::{fmt, sync::Arc};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// `{ "state": … }`
    State,
    /// `{ "text": … }`
    Stdout,
    /// `{ "text": … }`
    Stderr,
    /// The fields that were merged into the output.
    Output,
    /// The record without its output. It is the last event of an execution.
    Exit,
    /// In the stream of all processes: the record, without its output, of one that has changed.
    Process,
}

impl EventKind {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Output => "output",
            Self::Exit => "exit",
            Self::Process => "process",
        }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessEvent {
    /// Its number, from 1 on; those of a process go on through a `run`.
    pub id: u64,
    /// Its kind.
    pub kind: EventKind,
    /// Its data as JSON in one line, ready to be sent.
    pub data: Arc<str>,
}

/// The reader is more than 1 MiB behind, and was cut off. It may begin anew after the last event that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged;

impl fmt::Display for Lagged {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the reader is more than 1 MiB behind")
    }
}

impl std::error::Error for Lagged {}

/// A reader of one process's events.
#[derive(Debug)]
pub struct ProcessEvents {}

impl ProcessEvents {
    /// The next event, as soon as there is one. `None` after `exit`, or when the process was deleted. Dropping the
    /// future loses no event.
    ///
    /// # Errors
    /// The reader is too far behind; each later call gives the same.
    pub async fn next(&mut self) -> Result<Option<ProcessEvent>, Lagged> {
        todo!()
    }
}

/// A reader of the events of all processes.
#[derive(Debug)]
pub struct AllEvents {}

impl AllEvents {
    /// The next event, as soon as there is one. `None` when the service has shut down. Dropping the future loses no
    /// event.
    ///
    /// # Errors
    /// The reader is too far behind; each later call gives the same.
    pub async fn next(&mut self) -> Result<Option<ProcessEvent>, Lagged> {
        todo!()
    }
}
