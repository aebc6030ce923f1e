//! The thread that looks after runs which nobody else can.
//!
//! In: runs that were asked to end, runs that nothing can make go on, runs that compute. Out: a run
//! whose thread does not come back from the engine is settled all the same; a stalled one, and one
//! that computes for longer than it may, is ended. One thread per runtime, asleep for ever while
//! nothing runs.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use super::run::{GRACE, Run};
use crate::{
    os::sync::{Condvar, Mutex},
    runtime::threads::resources::Resources,
};

/// How long a run may be stalled.
const STALLED: Duration = Duration::from_secs(1);

/// How often computing runs are looked at.
const TICK: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(crate) struct Watchdog {
    watch: Mutex<Watch>,
    wake: Condvar,
}

#[derive(Default)]
struct Watch {
    deadlines: BinaryHeap<Reverse<Deadline>>,
    started: bool,
    /// Whether the thread sleeps without a limit.
    asleep: bool,
    closed: bool,
}

struct Deadline {
    at: Instant,
    run: Weak<Run>,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// Settle it if its thread has not.
    Termination,
    /// End it if it is still in that parking.
    Stalled(u64),
}

impl PartialEq for Deadline {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Deadline {}

impl PartialOrd for Deadline {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Deadline {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl Watchdog {
    /// Settles the run soon if its own thread does not.
    pub(crate) fn watch_ending(&self, run: &Arc<Run>) {
        self.add(run, GRACE, What::Termination);
    }

    /// Ends the run unless it goes on within a second.
    pub(crate) fn watch_stalled(&self, run: &Arc<Run>, parking: u64) {
        self.add(run, STALLED, What::Stalled(parking));
    }

    /// Makes sure that the thread is there; false if the system has none left.
    pub(crate) fn has_thread(&self, runtime: &Arc<Resources>) -> bool {
        let mut watch = self.watch.lock();
        let started = std::mem::replace(&mut watch.started, true);
        drop(watch);
        started || self.start(runtime)
    }

    /// Makes sure that the thread looks at what computes.
    pub(crate) fn attend(&self) {
        let mut watch = self.watch.lock();
        if watch.asleep {
            watch.asleep = false;
            self.wake.notify_one();
        }
    }

    /// Lets the thread end.
    pub(crate) fn close(&self) {
        self.watch.lock().closed = true;
        self.wake.notify_one();
    }

    fn add(&self, run: &Arc<Run>, after: Duration, what: What) {
        let deadline = Deadline { at: Instant::now() + after, run: Arc::downgrade(run), what };
        let mut watch = self.watch.lock();
        let next = watch.deadlines.peek().is_none_or(|Reverse(first)| deadline.at < first.at);
        watch.deadlines.push(Reverse(deadline));
        if next {
            watch.asleep = false;
            self.wake.notify_one();
        }
    }

    fn start(&self, runtime: &Arc<Resources>) -> bool {
        let weak = Arc::downgrade(runtime);
        let thread = std::thread::Builder::new()
            .name("isolane-watchdog".to_owned())
            .spawn(move || watch(&weak));
        if thread.is_err() {
            // Tried again at the next run.
            self.watch.lock().started = false;
        }
        thread.is_ok()
    }

    /// Sleeps until something is due; returns it, or `None` when the thread should end.
    fn wait(&self, busy: bool) -> Option<Vec<Deadline>> {
        let mut watch = self.watch.lock();
        if watch.closed {
            return None;
        }
        let next = watch.deadlines.peek().map(|Reverse(deadline)| deadline.at);
        let tick = busy.then(|| Instant::now() + TICK);
        match next.into_iter().chain(tick).min() {
            Some(at) => watch = self.wake.wait_until(watch, at),
            None => {
                watch.asleep = true;
                watch = self.wake.wait_for(watch, Duration::from_mins(1)).0;
                watch.asleep = false;
            }
        }
        let now = Instant::now();
        let mut due = Vec::new();
        while watch.deadlines.peek().is_some_and(|Reverse(deadline)| deadline.at <= now) {
            due.extend(watch.deadlines.pop().map(|Reverse(deadline)| deadline));
        }
        Some(due)
    }
}

fn watch(runtime: &Weak<Resources>) {
    let mut busy = true;
    while let Some(inner) = runtime.upgrade() {
        let Some(due) = inner.watchdog.wait(busy) else { return };
        for Deadline { run, what, .. } in due {
            match (run.upgrade(), what) {
                (Some(run), What::Termination) => run.force(),
                (Some(run), What::Stalled(parking)) => run.end_stalled(parking),
                (None, _) => {}
            }
        }
        let now = Instant::now();
        for run in inner.scheduler.current() {
            run.check_cap(now);
        }
        busy = inner.registry.live() > 0;
        if busy {
            inner.scheduler.try_again(&inner);
        }
    }
}
