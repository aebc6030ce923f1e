//! The choice between the driver and a thread of the host, which may read from the workers for a moment.
//!
//! In: a thread of the host polls for events, again and again. Out: for how long the driver leaves the workers to that
//! thread. Their frames then need not wake any thread. If that thread suddenly has something else to do, runs wait only
//! for a moment.

use std::time::{Duration, Instant};

use crate::os::sync::{Condvar, Mutex};

/// How long one poll counts.
const MOMENT: Duration = Duration::from_micros(500);

/// Reads from the workers.
pub(crate) trait Listener: Send + Sync {
    /// Handles a few events on a thread of the host; returns whether there may be more. `None` if the driver's own
    /// thread is doing so.
    fn glance(&self) -> Option<bool>;
}

#[derive(Debug, Default)]
pub(crate) struct HostPolling {
    until: Mutex<Option<Instant>>,
    over: Condvar,
}

impl HostPolling {
    /// A thread of the host polls, and will poll again shortly.
    pub(crate) fn begin(&self) {
        *self.until.lock() = Some(Instant::now() + MOMENT);
    }

    /// It polls no longer.
    pub(crate) fn end(&self) {
        let was = self.until.lock().take();
        if was.is_some() {
            self.over.notify_all();
        }
    }

    /// Whether a thread of the host polls.
    pub(crate) fn is_on(&self) -> bool {
        self.until.lock().is_some_and(|until| until > Instant::now())
    }

    /// Waits while a thread of the host polls, but not beyond `due`. Returns whether one does.
    pub(crate) fn wait(&self, due: Option<Instant>) -> bool {
        let mut until = self.until.lock();
        match *until {
            Some(end) if end > Instant::now() => {
                drop(self.over.wait_until(until, due.map_or(end, |due| due.min(end))));
                true
            }
            _ => {
                *until = None;
                false
            }
        }
    }
}
