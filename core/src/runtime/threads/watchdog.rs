//! The thread that ends runs which nobody else can end.
//!
//! In: runs that were asked to end, runs that nothing can resume, runs that compute. Out: a run whose thread does not
//! return from the engine is settled all the same; a run that is stalled, or that computes for longer than it may, is
//! ended. There is one thread per runtime, which sleeps while nothing runs.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use crate::os::sync::{Condvar, Mutex};

/// If the engine has not read the clock for this long, the watchdog settles the run. Code that the engine can interrupt
/// ends much sooner, but a thread of a busy machine may not have a processor for longer, and a run that is settled by
/// force has no position.
pub(crate) const GRACE: Duration = Duration::from_millis(200);

/// The same for a cell: to settle it by force costs the state of its session. A development build undoes a cell in ten
/// times as long.
pub(crate) const CELL_GRACE: Duration =
    Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 200 });

/// How long a run may be stalled.
const STALLED: Duration = Duration::from_secs(1);

/// How many deadlines are kept, at least, before those of runs that are gone are dropped.
const MOST_DEADLINES: usize = 1_000;

/// How often computing runs are checked.
const TICK: Duration = Duration::from_millis(500);

/// A run that is watched.
pub(crate) trait Watched: Send + Sync + 'static {
    /// Settles a run whose thread does not return from the engine, if it has not settled.
    fn force(self: &Arc<Self>);

    /// The time that its thread has to return from the engine.
    fn grace(&self) -> Duration;

    /// Ends a run that takes longer than its caller allows.
    fn end_overdue(self: &Arc<Self>);

    /// Ends a run that is still in that parking: nothing can resume it.
    fn end_stalled(self: &Arc<Self>, parking: u64);

    /// Ends a run that has computed for longer than it may, or has hit its limit and still computes.
    fn check_cap(self: &Arc<Self>, now: Instant);
}

/// The owner of a watchdog. Its thread keeps it alive while it works, and ends once it is gone.
pub(crate) trait Owner<R>: Send + Sync {
    fn watchdog(&self) -> &Watchdog<R>;

    /// The runs that compute now.
    fn computing(&self) -> Vec<Arc<R>>;

    /// Starts threads that the system may have refused before. Returns whether there are runs, which may soon need the
    /// watchdog.
    fn try_again(&self) -> bool;
}

pub(crate) struct Watchdog<R> {
    owner: Weak<dyn Owner<R>>,
    watch: Mutex<Watch<R>>,
    wake: Condvar,
}

struct Watch<R> {
    deadlines: BinaryHeap<Reverse<Deadline<R>>>,
    /// How many deadlines there may be until those of runs that are gone are dropped.
    most: usize,
    started: bool,
    /// Whether the thread sleeps without a limit.
    asleep: bool,
    closed: bool,
}

struct Deadline<R> {
    at: Instant,
    run: Weak<R>,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// Settle it if its thread has not.
    Termination,
    /// End it if it is still in that parking.
    Stalled(u64),
    /// End it if it has not settled.
    Timeout,
}

impl<R> PartialEq for Deadline<R> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl<R> Eq for Deadline<R> {}

impl<R> PartialOrd for Deadline<R> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<R> Ord for Deadline<R> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl<R: Watched> Watchdog<R> {
    pub(crate) fn new(owner: Weak<dyn Owner<R>>) -> Self {
        let watch = Watch {
            deadlines: BinaryHeap::new(),
            most: MOST_DEADLINES,
            started: false,
            asleep: false,
            closed: false,
        };
        Self { owner, watch: Mutex::new(watch), wake: Condvar::new() }
    }

    /// Settles the run soon if its own thread does not.
    pub(crate) fn watch_ending(&self, run: &Arc<R>) {
        self.add(run, run.grace(), What::Termination);
    }

    /// Ends the run unless it settles in that time.
    pub(crate) fn watch_timeout(&self, run: &Arc<R>, after: Duration) {
        self.add(run, after, What::Timeout);
    }

    /// Ends the run unless it resumes within a second.
    pub(crate) fn watch_stalled(&self, run: &Arc<R>, parking: u64) {
        self.add(run, STALLED, What::Stalled(parking));
    }

    /// Makes sure that the thread is there; false if the system has none left.
    pub(crate) fn has_thread(&self) -> bool {
        let mut watch = self.watch.lock();
        let started = std::mem::replace(&mut watch.started, true);
        drop(watch);
        started || self.start()
    }

    /// Makes sure that the thread checks computing runs.
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

    fn add(&self, run: &Arc<R>, after: Duration, what: What) {
        // A time beyond the clock's range never comes.
        let Some(at) = Instant::now().checked_add(after) else { return };
        let deadline = Deadline { at, run: Arc::downgrade(run), what };
        let mut watch = self.watch.lock();
        if watch.deadlines.len() >= watch.most {
            // Long timeouts of short cells would pile up.
            watch.deadlines.retain(|Reverse(deadline)| deadline.run.strong_count() > 0);
            watch.most = MOST_DEADLINES.max(2 * watch.deadlines.len());
        }
        let next = watch.deadlines.peek().is_none_or(|Reverse(first)| deadline.at < first.at);
        watch.deadlines.push(Reverse(deadline));
        if next {
            watch.asleep = false;
            self.wake.notify_one();
        }
    }

    fn start(&self) -> bool {
        let owner = Weak::clone(&self.owner);
        let thread = std::thread::Builder::new()
            .name("isolane-watchdog".to_owned())
            .spawn(move || watch(&owner));
        if thread.is_err() {
            // The next run tries again.
            self.watch.lock().started = false;
        }
        thread.is_ok()
    }

    /// Sleeps until something is due; returns it, or `None` when the thread should end.
    fn wait(&self, busy: bool) -> Option<Vec<Deadline<R>>> {
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

fn watch<R: Watched>(owner: &Weak<dyn Owner<R>>) {
    let mut busy = true;
    while let Some(owner) = owner.upgrade() {
        let Some(due) = owner.watchdog().wait(busy) else { return };
        for Deadline { run, what, .. } in due {
            match (run.upgrade(), what) {
                (Some(run), What::Termination) => run.force(),
                (Some(run), What::Stalled(parking)) => run.end_stalled(parking),
                (Some(run), What::Timeout) => run.end_overdue(),
                (None, _) => {}
            }
        }
        let now = Instant::now();
        for run in owner.computing() {
            run.check_cap(now);
        }
        busy = owner.try_again();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Sends how its watchdog ended it.
    struct Toy(mpsc::Sender<&'static str>);

    impl Toy {
        fn tell(&self, what: &'static str) {
            self.0.send(what).expect("the test waits");
        }
    }

    impl Watched for Toy {
        fn force(self: &Arc<Self>) {
            self.tell("forced");
        }

        fn grace(&self) -> Duration {
            GRACE
        }

        fn end_overdue(self: &Arc<Self>) {
            self.tell("overdue");
        }

        fn end_stalled(self: &Arc<Self>, parking: u64) {
            assert_eq!(parking, 7);
            self.tell("stalled");
        }

        fn check_cap(self: &Arc<Self>, _: Instant) {
            self.tell("looked at");
        }
    }

    struct Bench {
        watchdog: Watchdog<Toy>,
        computing: Mutex<Option<Arc<Toy>>>,
    }

    impl Owner<Toy> for Bench {
        fn watchdog(&self) -> &Watchdog<Toy> {
            &self.watchdog
        }

        fn computing(&self) -> Vec<Arc<Toy>> {
            self.computing.lock().take().into_iter().collect()
        }

        fn try_again(&self) -> bool {
            false
        }
    }

    #[test]
    fn what_is_due_is_done_in_its_time() {
        let (sender, told) = mpsc::channel();
        let toy = Arc::new(Toy(sender));
        let bench = Arc::new_cyclic(|owner: &Weak<Bench>| Bench {
            watchdog: Watchdog::new(owner.clone()),
            computing: Mutex::new(Some(Arc::clone(&toy))),
        });
        let next = || told.recv_timeout(Duration::from_mins(2)).expect("the watchdog wakes");
        let since = Instant::now();
        bench.watchdog.watch_stalled(&toy, 7);
        bench.watchdog.watch_ending(&toy);
        assert!(bench.watchdog.has_thread());
        let mut all = [(); 3].map(|()| (next(), since.elapsed()));
        // It looks at what computes at any time, between the others.
        all.sort_unstable();
        let [(forced, grace), (looked_at, _), (stalled, after)] = all;
        assert_eq!([forced, looked_at, stalled], ["forced", "looked at", "stalled"]);
        assert!(grace >= GRACE && after >= STALLED, "{grace:?} {after:?}");
    }
}
