//! Events, and the readers of the changes of all processes.
//!
//! In: processes that change. Out: events with ids, in order. The latest ones are kept, and a reader holds a place among
//! them, so a slow reader costs no memory; one that is too far behind is cut off.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex},
};

use tokio::sync::watch;

use crate::{ProcessRecord, locks::lock, process::record_text};

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

/// The bytes that a reader may be behind.
pub(crate) const MOST_BEHIND: u64 = 1 << 20;

/// The latest changes of all processes.
#[derive(Debug)]
pub(crate) struct Changes {
    latest: Mutex<Latest>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Latest {
    events: VecDeque<(u64, Arc<str>)>,
    bytes: u64,
    last_id: u64,
    is_over: bool,
}

impl Changes {
    /// Ids go on after that one.
    pub(crate) fn new(last_id: u64) -> Self {
        let latest = Latest { last_id, ..Latest::default() };
        Self { latest: Mutex::new(latest), changed: watch::Sender::new(()) }
    }

    /// The id of the last change.
    pub(crate) fn last_id(&self) -> u64 {
        lock(&self.latest).last_id
    }

    /// Told of each change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// A process has changed.
    pub(crate) fn push(&self, record: &ProcessRecord) {
        let text: Arc<str> = record_text(record).into();
        {
            let mut latest = lock(&self.latest);
            latest.last_id += 1;
            let id = latest.last_id;
            latest.bytes += text.len() as u64;
            latest.events.push_back((id, text));
            while latest.bytes > MOST_BEHIND && latest.events.len() > 1 {
                let oldest = latest.events.pop_front();
                latest.bytes -= oldest.map_or(0, |(_, text)| text.len() as u64);
            }
        }
        self.changed.send_replace(());
    }

    /// There are no further changes.
    pub(crate) fn end(&self) {
        lock(&self.latest).is_over = true;
        self.changed.send_replace(());
    }
}

/// A reader of the events of all processes.
#[derive(Debug)]
pub struct AllEvents {
    changes: Arc<Changes>,
    changed: watch::Receiver<()>,
    /// The id of the last event that was read.
    id: u64,
    is_lagged: bool,
}

impl AllEvents {
    pub(crate) fn new(changes: &Arc<Changes>, after: Option<u64>) -> Self {
        let id = {
            let latest = lock(&changes.latest);
            let oldest = latest.events.front().map_or(latest.last_id, |(id, _)| id - 1);
            after.filter(|id| *id <= latest.last_id).map_or(latest.last_id, |id| id.max(oldest))
        };
        let changed = changes.changed.subscribe();
        Self { changes: Arc::clone(changes), changed, id, is_lagged: false }
    }

    /// The next event, as soon as there is one. `None` when the service has shut down. Dropping the future loses no
    /// event.
    ///
    /// # Errors
    /// The reader is too far behind; each later call gives the same.
    pub async fn next(&mut self) -> Result<Option<ProcessEvent>, Lagged> {
        loop {
            self.changed.mark_unchanged();
            if let Some(next) = self.take() {
                return next;
            }
            if self.changed.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    fn take(&mut self) -> Option<Result<Option<ProcessEvent>, Lagged>> {
        let latest = lock(&self.changes.latest);
        let oldest = latest.events.front().map_or(latest.last_id + 1, |(id, _)| *id);
        if self.is_lagged || self.id + 1 < oldest {
            self.is_lagged = true;
            return Some(Err(Lagged));
        }
        let at = usize::try_from(self.id + 1 - oldest).unwrap_or(usize::MAX);
        match latest.events.get(at) {
            Some((id, data)) => {
                self.id = *id;
                let (kind, data) = (EventKind::Process, Arc::clone(data));
                Some(Ok(Some(ProcessEvent { id: *id, kind, data })))
            }
            None => latest.is_over.then_some(Ok(None)),
        }
    }
}
