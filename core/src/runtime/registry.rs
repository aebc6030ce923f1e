//! The runs of a runtime: those that have not settled, and how many settled with each status; and its open sessions.
//!
//! In: runs as they start and settle, sessions as they open and close. Out: their places and counts, and the callbacks
//! that are due when a closed runtime has no run left. The same for both executors.

use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use slab::Slab;

use super::session::SessionControl;
use crate::{
    binding::handle::RunControl,
    data::outcome::Status,
    os::{process::Process, sync::Mutex},
};

/// Why the runs of a runtime that is closed end.
pub(crate) const CLOSED: &str = "runtime closed";

/// Called when all that a runtime held is freed.
pub(crate) type Closer = Box<dyn FnOnce() + Send>;

/// The runs of one runtime, as the runtime sees them.
pub(crate) trait Runs {
    /// The process that the runtime was made in. In a child of that process nothing else is called: a lock that was held
    /// at the fork is held there for ever.
    fn process(&self) -> Process;

    /// Whether new runs are refused.
    fn is_closed(&self) -> bool;

    /// Refuses runs from now on and terminates the others; `done` is to be called when they have ended.
    fn close(&self, done: Closer);

    /// How many runs settled with that status.
    fn settled(&self, status: Status) -> u64;
}

/// The runs of one runtime.
pub(crate) struct Registry<R> {
    process: Process,
    closed: AtomicBool,
    runs: Mutex<Slab<Arc<R>>>,
    live: AtomicUsize,
    settled: [AtomicU64; 5],
    closers: Mutex<Vec<Closer>>,
    /// The sessions that are open. None is kept alive.
    sessions: Mutex<Slab<Weak<dyn SessionControl>>>,
}

impl<R> Default for Registry<R> {
    fn default() -> Self {
        Self {
            process: Process::current(),
            closed: AtomicBool::new(false),
            runs: Mutex::default(),
            live: AtomicUsize::new(0),
            settled: Default::default(),
            closers: Mutex::default(),
            sessions: Mutex::default(),
        }
    }
}

impl<R: RunControl> Runs for Registry<R> {
    fn process(&self) -> Process {
        self.process
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn close(&self, done: Closer) {
        self.closed.store(true, Ordering::Release);
        self.closers.lock().push(done);
        for run in self.runs() {
            run.terminate(Some(CLOSED));
        }
    }

    fn settled(&self, status: Status) -> u64 {
        self.settled[status as usize].load(Ordering::Relaxed)
    }
}

impl<R: RunControl> Registry<R> {
    /// The callbacks of those who wait for a closed runtime to end.
    pub(crate) fn take_closers(&self) -> Vec<Closer> {
        std::mem::take(&mut *self.closers.lock())
    }

    /// Keeps a session that opens, and tells its place before anybody finds it.
    pub(crate) fn open(&self, session: Weak<dyn SessionControl>, place: &OnceLock<usize>) {
        let mut sessions = self.sessions.lock();
        let vacant = sessions.vacant_entry();
        place.get_or_init(|| vacant.key());
        vacant.insert(session);
    }

    /// Forgets a session.
    pub(crate) fn forget_session(&self, place: usize) {
        let session = self.sessions.lock().try_remove(place);
        drop(session);
    }

    /// How many sessions are open.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.lock().len()
    }

    /// Closes the sessions that are open.
    pub(crate) fn close_sessions(&self) {
        let open: Vec<_> = self.sessions.lock().iter().filter_map(|(_, it)| it.upgrade()).collect();
        for session in open {
            session.close(Box::new(|()| {}));
        }
    }

    /// Makes a run and keeps it until it settles.
    pub(crate) fn admit(&self, make: impl FnOnce(usize) -> R) -> Arc<R> {
        self.live.fetch_add(1, Ordering::Relaxed);
        let mut runs = self.runs.lock();
        let vacant = runs.vacant_entry();
        let run = Arc::new(make(vacant.key()));
        vacant.insert(Arc::clone(&run));
        run
    }

    /// How many runs have not settled.
    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Whether it is closed and no run is left.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed() && self.live() == 0
    }

    /// Runs that have not settled.
    pub(crate) fn runs(&self) -> Vec<Arc<R>> {
        self.runs.lock().iter().map(|(_, run)| Arc::clone(run)).collect()
    }

    /// How many of them satisfy `are`.
    pub(crate) fn count(&self, are: impl Fn(&R) -> bool) -> usize {
        self.runs.lock().iter().filter(|(_, run)| are(run)).count()
    }

    /// Forgets a run that is none: a task of a session.
    pub(crate) fn forget(&self, place: usize) {
        let run = self.runs.lock().try_remove(place);
        self.live.fetch_sub(1, Ordering::Relaxed);
        drop(run);
    }

    /// Counts a run that has settled, and forgets it.
    pub(crate) fn settle(&self, place: usize, status: Status) {
        self.settled[status as usize].fetch_add(1, Ordering::Relaxed);
        self.forget(place);
    }
}
