//! Who listens to the workers: the driver, or for a moment a thread of the host.
//!
//! In: that such a thread looks for events by itself, again and again. Out: for how long the driver may leave
//! it to that thread. What a worker says need then wake nobody. A thread that has something else to do all of
//! a sudden keeps no run waiting for longer than a moment.

use std::time::{Duration, Instant};

use crate::os::sync::{Condvar, Mutex};

/// For how long one look counts.
const MOMENT: Duration = Duration::from_micros(500);

/// What listens to the workers.
pub(crate) trait Listener: Send + Sync {
    /// Takes up a little of what there is, on a thread of the host; whether there may be more. `None` if its own
    /// thread is at it.
    fn glance(&self) -> Option<bool>;
}

#[derive(Debug, Default)]
pub(crate) struct HostPolling {
    until: Mutex<Option<Instant>>,
    over: Condvar,
}

impl HostPolling {
    /// A thread of the host listens, and will again shortly.
    pub(crate) fn begin(&self) {
        *self.until.lock() = Some(Instant::now() + MOMENT);
    }

    /// It does not any more.
    pub(crate) fn end(&self) {
        let was = self.until.lock().take();
        if was.is_some() {
            self.over.notify_all();
        }
    }

    /// Whether a thread of the host listens.
    pub(crate) fn is_on(&self) -> bool {
        self.until.lock().is_some_and(|until| until > Instant::now())
    }

    /// Waits while a thread of the host listens, but not beyond `due`. Whether one does.
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
