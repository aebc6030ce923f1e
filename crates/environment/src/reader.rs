//! Readers of one process's events.
//!
//! In: events in memory, or in a database. Out: events with ids, in order. A reader holds a place in the events of memory
//! and no events of its own, so a slow reader costs no memory; one that is too far behind is cut off. Of the database it
//! has a page at a time, and reads at its own pace.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use tokio::sync::watch;

use crate::{
    EventKind, Lagged, ProblemType, ProcessEvent,
    event::MOST_BEHIND,
    process::{Body, Process},
    service::inner::Inner,
};

/// A reader of one process's events.
#[derive(Debug)]
pub struct ProcessEvents {
    pid: u64,
    inner: Weak<Inner>,
    /// The process, while it is in memory.
    live: Option<Live>,
    /// Events of the database that come next.
    page: VecDeque<ProcessEvent>,
    /// The id of the last event that was read.
    id: u64,
    /// Whether the execution's last event was read.
    is_over: bool,
    is_lagged: bool,
}

/// A process in memory.
#[derive(Debug)]
struct Live {
    process: Arc<Process>,
    changed: watch::Receiver<()>,
    /// The bytes of all events up to the last one that was read, and at least of those that there were when the reader
    /// began: it may read these at its own pace.
    position: u64,
}

/// Where the next event is.
enum Next {
    Here(Result<Option<ProcessEvent>, Lagged>),
    /// There is none yet.
    Later,
    /// The process has left the memory.
    Stored,
}

impl ProcessEvents {
    pub(crate) fn new(inner: &Arc<Inner>, pid: u64, after: u64) -> Self {
        let live = inner.in_memory(pid).map(Live::new);
        let (inner, page) = (Arc::downgrade(inner), VecDeque::new());
        Self { pid, inner, live, page, id: after, is_over: false, is_lagged: false }
    }

    /// The next event, as soon as there is one. `None` after `exit`, or when the process was deleted. Dropping the
    /// future loses no event.
    ///
    /// # Errors
    /// The reader is too far behind, or the database cannot be read; each later call gives the same.
    pub async fn next(&mut self) -> Result<Option<ProcessEvent>, Lagged> {
        loop {
            if self.is_lagged {
                return Err(Lagged);
            }
            let Some(live) = &mut self.live else {
                match self.stored().await {
                    Some(next) => return next,
                    None => continue,
                }
            };
            live.changed.mark_unchanged();
            match live.take(self.id, self.is_over) {
                Next::Here(next) => return self.seen(next),
                Next::Stored => {
                    self.live = None;
                    continue;
                }
                Next::Later => {}
            }
            if live.changed.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    fn seen(
        &mut self,
        next: Result<Option<ProcessEvent>, Lagged>,
    ) -> Result<Option<ProcessEvent>, Lagged> {
        match &next {
            Ok(Some(event)) => {
                self.id = event.id;
                self.is_over = event.kind == EventKind::Exit;
            }
            Ok(None) => {}
            Err(Lagged) => self.is_lagged = true,
        }
        next
    }

    /// The next event of a process that is not in memory. `None`: look again.
    async fn stored(&mut self) -> Option<Result<Option<ProcessEvent>, Lagged>> {
        if let Some(event) = self.page.pop_front() {
            return Some(self.seen(Ok(Some(event))));
        }
        let Some(inner) = self.inner.upgrade().filter(|_| !self.is_over) else {
            return Some(Ok(None));
        };
        let mut changed = inner.changes.subscribe();
        if let Some(process) = inner.in_memory(self.pid) {
            self.live = Some(Live::new(process));
            return None;
        }
        let Some(database) = &inner.database else { return Some(Ok(None)) };
        match database.events(self.pid, self.id).await {
            Ok(page) if page.is_empty() => {
                // It was never run. A reader keeps no service, so it waits without it.
                drop(inner);
                match changed.changed().await {
                    Ok(()) => None,
                    Err(_) => Some(Ok(None)),
                }
            }
            Ok(page) => {
                self.page = page.into();
                None
            }
            Err(error) if error.code == ProblemType::Internal => {
                inner.log(&error.message);
                Some(self.seen(Err(Lagged)))
            }
            Err(_) => Some(Ok(None)),
        }
    }
}

impl Live {
    fn new(process: Arc<Process>) -> Self {
        let changed = process.changed.subscribe();
        let position = process.body().log.total();
        Self { process, changed, position }
    }

    /// The next event after that id, if it is there.
    fn take(&mut self, id: u64, is_over: bool) -> Next {
        let mut guard = self.process.body();
        let Body { log, stdout, stderr, is_deleted, is_stored, .. } = &mut *guard;
        if is_over || *is_deleted {
            return Next::Here(Ok(None));
        }
        if *is_stored {
            return Next::Stored;
        }
        if log.total_before_last() > self.position + MOST_BEHIND {
            return Next::Here(Err(Lagged));
        }
        let Some((event, position)) = log.after(id, stdout, stderr) else { return Next::Later };
        self.position = self.position.max(position);
        Next::Here(Ok(Some(event)))
    }
}
