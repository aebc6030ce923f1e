//! The worker of a session, from the first cell in it until it is gone.
//!
//! In: frames of the worker, and its end. Out: calls of the run whose turn it is. Between cells a worker may send
//! nothing. A session whose worker is gone gets another one with its next cell, and begins anew there.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use super::{Run, most_bytes, place::Session};
use crate::{
    os::sync::Mutex,
    protocol::{
        control::ZygoteCommand,
        frame::{Frame, Unreadable},
        messages::session::most_state_bytes,
    },
    runtime::processes::{
        dealings::Dealings,
        ledger::Ledger,
        lost::Lost,
        timer::{Check, Timer, What},
        worker_socket::{FrameSink, WorkerSocket},
        workers::Workers,
    },
};

/// The worker of one session.
pub(crate) struct SessionWorker {
    workers: Arc<Workers<Run>>,
    session: Weak<Session>,
    pub(crate) link: Arc<WorkerSocket>,
    pub(crate) dealings: Arc<Mutex<Dealings>>,
    memory_limit: usize,
    /// The run that the worker has.
    current: Mutex<Option<Arc<Run>>>,
    /// Whether the session has no use for the worker any more.
    dismissed: AtomicBool,
    /// The next time at which the worker's run is checked.
    next_check: Mutex<Option<Instant>>,
}

impl fmt::Debug for SessionWorker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SessionWorker").field("link", &self.link).finish_non_exhaustive()
    }
}

impl SessionWorker {
    pub(crate) fn new(
        workers: Arc<Workers<Run>>,
        session: Weak<Session>,
        link: Arc<WorkerSocket>,
        memory_limit: usize,
        ledger: Option<Ledger>,
    ) -> Self {
        let ledger = ledger.unwrap_or_else(|| Ledger::of_session(most_bytes(memory_limit)));
        Self {
            workers,
            session,
            link,
            dealings: Arc::new(Mutex::new(Dealings::of_session(ledger))),
            memory_limit,
            current: Mutex::default(),
            dismissed: AtomicBool::new(false),
            next_check: Mutex::default(),
        }
    }

    /// The run that the worker has, or that computes there.
    pub(crate) fn current(&self) -> Option<Arc<Run>> {
        self.current.lock().clone()
    }

    /// The cells that the worker has, and the run that computes there.
    fn runs(&self) -> Vec<Arc<Run>> {
        let session = self.session.upgrade();
        let mut runs = session.map_or_else(Vec::new, |session| session.runs_in_worker());
        runs.extend(self.current());
        runs
    }

    /// Gives the worker a run.
    pub(crate) fn set_current(&self, run: &Arc<Run>) {
        *self.current.lock() = Some(Arc::clone(run));
    }

    /// Takes away the run that the worker has, or that computes there.
    pub(crate) fn take_current(&self) -> Option<Arc<Run>> {
        self.current.lock().take()
    }

    /// Has the worker's run checked from time to time.
    pub(crate) fn watch(self: &Arc<Self>, now: Instant) {
        if let Some(at) = self.check_run(now) {
            self.check_at(at);
        }
    }

    /// The session has no use for the worker any more, which is gone or being killed.
    pub(crate) fn give_up(&self) {
        self.dismissed.store(true, Ordering::Release);
        drop(self.take_current());
    }

    /// Ends the worker.
    pub(crate) fn dismiss(&self) {
        self.give_up();
        self.link.close();
        self.workers.order(ZygoteCommand::Kill(self.link.worker));
    }

    fn check_run(&self, now: Instant) -> Option<Instant> {
        self.runs().iter().filter_map(|run| run.check(now)).min()
    }

    /// Sets the timer, unless that rings earlier.
    fn check_at(self: &Arc<Self>, at: Instant) {
        {
            let mut next = self.next_check.lock();
            if next.is_some_and(|next| next <= at) {
                return;
            }
            *next = Some(at);
        }
        let this: Weak<Self> = Arc::downgrade(self);
        self.workers.set_timer(Timer { at, what: What::Check(this) });
    }
}

impl Check for SessionWorker {
    fn check(self: Arc<Self>, now: Instant) {
        {
            let mut next = self.next_check.lock();
            // A timer that was replaced by an earlier one.
            if next.is_none_or(|next| next > now) {
                return;
            }
            *next = None;
        }
        self.watch(now);
    }
}

impl FrameSink for SessionWorker {
    fn most_bytes(&self) -> usize {
        let run = self.current.lock().clone();
        if run.and_then(|run| Some(run.cell.as_ref()?.asks_for_copy())) == Some(true) {
            return most_state_bytes(self.memory_limit);
        }
        most_bytes(self.memory_limit)
    }

    fn receive(self: Arc<Self>, frame: Frame) -> Result<bool, Unreadable> {
        let session = self.session.upgrade().filter(|session| session.request.interleave);
        if let Some(session) = session {
            if self.dismissed.load(Ordering::Acquire) {
                return Ok(false);
            }
            return session.take(&self, frame).map(|()| false);
        }
        let run = self.current.lock().clone();
        match run {
            Some(run) => run.take(frame).map(|_| false),
            None if self.dismissed.load(Ordering::Acquire) => Ok(false),
            None => Err(Unreadable::Broken),
        }
    }

    fn lost(&self, how: &Lost) -> Option<u32> {
        if self.dismissed.swap(true, Ordering::AcqRel) {
            return None;
        }
        let session = self.session.upgrade();
        let run = session.map_or_else(|| self.take_current(), |session| session.lose(self, how));
        run.and_then(|run| run.lost(how))
    }

    fn break_down(&self) {
        self.dismissed.store(true, Ordering::Release);
        let session = self.session.upgrade();
        let run = session
            .map_or_else(|| self.take_current(), |session| session.lose(self, &Lost::Broken));
        if let Some(run) = run {
            run.break_down();
        }
    }
}
