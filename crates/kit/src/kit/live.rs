//! The runs and sessions of a kit that have not ended.
//!
//! In: handles on them, and the closing of the kit. Out: their end.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use isolane::RunHandle;

/// The reason why a closed kit ends its runs.
const CLOSED: &str = "kit closed";

/// Ends a session. Of one that has ended it does nothing.
type Close = Box<dyn Fn() + Send + Sync>;

/// All that a kit has to end when it is closed.
#[derive(Default)]
pub(super) struct Live(Mutex<Open>);

#[derive(Default)]
struct Open {
    is_closed: bool,
    last: u64,
    runs: HashMap<u64, RunHandle>,
    /// Ends of sessions, each with a token that the session holds.
    sessions: Vec<(Weak<()>, Close)>,
    /// From so many sessions on those that have ended are taken out.
    most_sessions: usize,
}

impl Live {
    /// Adds a run; its number here.
    pub(super) fn add(&self, run: &RunHandle) -> u64 {
        let mut open = self.locked();
        open.last += 1;
        let number = open.last;
        if open.is_closed {
            drop(open);
            run.terminate(Some(CLOSED));
        } else {
            open.runs.insert(number, run.clone());
        }
        number
    }

    /// A run has ended.
    pub(super) fn remove(&self, number: u64) {
        let run = self.locked().runs.remove(&number);
        drop(run);
    }

    /// Adds a session, which holds the token for as long as it lives.
    pub(super) fn add_session(&self, token: &Arc<()>, close: Close) {
        let mut open = self.locked();
        if open.is_closed {
            drop(open);
            close();
        } else {
            open.sessions.push((Arc::downgrade(token), close));
            if open.sessions.len() > open.most_sessions {
                open.sessions.retain(|(token, _)| token.strong_count() > 0);
                open.most_sessions = 2 * open.sessions.len() + 16;
            }
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.locked().is_closed
    }

    /// Ends all of them, and those that come later. Says whether it was the first time.
    pub(super) fn close(&self) -> bool {
        let (runs, sessions) = {
            let mut open = self.locked();
            if std::mem::replace(&mut open.is_closed, true) {
                return false;
            }
            (std::mem::take(&mut open.runs), std::mem::take(&mut open.sessions))
        };
        for run in runs.into_values() {
            run.terminate(Some(CLOSED));
        }
        for (_, close) in sessions {
            close();
        }
        true
    }

    fn locked(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Live").field("runs", &self.locked().runs.len()).finish_non_exhaustive()
    }
}
