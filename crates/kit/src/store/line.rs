//! The line of calls in front of one connection.
//!
//! In: calls of runs. Out: their outcomes. One call is served at a time. The calls of a run keep their order, and runs
//! take turns. A call has its time limit from the moment when the earlier calls of its run are done: waiting for other
//! runs and other connections counts, too. The thread that serves ends when nobody has called for a while, so an open
//! connection keeps none.

use std::{
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::{
    sync::oneshot,
    time::{timeout, timeout_at},
};

use super::{
    connection::Opened,
    locked,
    stop::{Reason, Stop},
};

/// How long the thread waits for another call.
const LINGER: Duration = Duration::from_millis(500);

/// The time that a stopped call has to end before its caller is told.
const GRACE: Duration = Duration::from_millis(200);

/// The time between two interrupts of a call: one that comes between two statements is lost.
const INTERRUPT_AGAIN: Duration = Duration::from_millis(5);

/// The line of a call that belongs to no run.
pub(super) const HOST: u64 = u64::MAX;

type Work = Box<dyn FnOnce(&Opened, &Arc<Stop>) + Send>;

/// The line of one connection. All clones are one.
#[derive(Clone)]
pub(super) struct Line(Arc<Shared>);

struct Shared {
    /// The process that opened the connection; a forked child must not use it.
    process: u32,
    interrupt: Arc<rusqlite::InterruptHandle>,
    next_call: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    queue: Queue,
    /// The connection, while no call is served.
    opened: Option<Opened>,
    /// Whether a thread serves or lingers.
    has_thread: bool,
    closed: bool,
}

/// A call that waits.
struct Waiting {
    call: u64,
    stop: Arc<Stop>,
    work: Work,
}

/// The calls that wait, by their runs.
#[derive(Default)]
struct Queue {
    runs: HashMap<u64, VecDeque<Waiting>>,
    /// The runs with calls that wait, in the order of their turns.
    turns: VecDeque<u64>,
    served: Option<Served>,
}

/// The call that is served.
struct Served {
    run: u64,
    call: u64,
    stop: Arc<Stop>,
}

impl Queue {
    fn push(&mut self, run: u64, waiting: Waiting) {
        let is_served = self.serves(run);
        let calls = self.runs.entry(run).or_default();
        if calls.is_empty() {
            self.turns.push_back(run);
            if !is_served {
                waiting.stop.start();
            }
        }
        calls.push_back(waiting);
    }

    fn pop(&mut self) -> Option<Waiting> {
        let run = self.turns.pop_front()?;
        let calls = self.runs.get_mut(&run)?;
        let waiting = calls.pop_front()?;
        if calls.is_empty() {
            self.runs.remove(&run);
        } else {
            self.turns.push_back(run);
        }
        let stop = Arc::clone(&waiting.stop);
        self.served = Some(Served { run, call: waiting.call, stop });
        Some(waiting)
    }

    /// The served call is done: the time of its run's next one begins.
    fn served(&mut self) {
        if let Some(served) = self.served.take() {
            self.start_first(served.run);
        }
    }

    fn serves(&self, run: u64) -> bool {
        self.served.as_ref().is_some_and(|served| served.run == run)
    }

    fn start_first(&self, run: u64) {
        if let Some(first) = self.runs.get(&run).and_then(VecDeque::front) {
            first.stop.start();
        }
    }

    /// Takes a call out; `None` if it does not wait any more.
    fn remove(&mut self, run: u64, call: u64) -> Option<Waiting> {
        let calls = self.runs.get_mut(&run)?;
        let place = calls.iter().position(|waiting| waiting.call == call)?;
        let removed = calls.remove(place);
        if calls.is_empty() {
            self.runs.remove(&run);
            self.turns.retain(|turn| *turn != run);
        } else if !self.serves(run) {
            self.start_first(run);
        }
        removed
    }
}

impl Line {
    pub(super) fn new(opened: Opened) -> Self {
        let interrupt = Arc::clone(&opened.interrupt);
        let state = State {
            queue: Queue::default(),
            opened: Some(opened),
            has_thread: false,
            closed: false,
        };
        Self(Arc::new(Shared {
            process: isolane::process_id(),
            interrupt,
            next_call: AtomicU64::new(0),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }))
    }

    /// Puts a call of a run into the line. It is served whether or not its outcome is awaited, but it is stopped when
    /// that is dropped.
    pub(super) fn call<T: Send + 'static>(
        &self,
        run: u64,
        limit: Duration,
        work: impl FnOnce(&Opened, &Arc<Stop>) -> T + Send + 'static,
    ) -> Outcome<T> {
        let shared = &self.0;
        let call = shared.next_call.fetch_add(1, Ordering::Relaxed);
        let stop = Arc::new(Stop::new(limit));
        let (sender, receiver) = oneshot::channel();
        let work: Work = Box::new(move |opened, stop| {
            let done = work(opened, stop);
            if stop.reason() != Some(Reason::End) {
                // Nobody listens any more if the run has ended meanwhile.
                drop(sender.send(done));
            }
        });
        let outcome = Outcome {
            shared: Arc::clone(shared),
            run,
            call,
            stop: Arc::clone(&stop),
            receiver,
            is_done: false,
        };
        // A call that is not put in drops its sender, and its outcome tells that.
        if isolane::process_id() != shared.process {
            return outcome;
        }
        let mut state = locked(&shared.state);
        if state.closed {
            return outcome;
        }
        state.queue.push(run, Waiting { call, stop, work });
        if state.has_thread {
            shared.changed.notify_one();
        } else {
            state.has_thread = self.start_thread();
            if !state.has_thread {
                state.queue.remove(run, call);
            }
        }
        drop(state);
        outcome
    }

    /// Does the work of a call that needs no connection, if none is served and none waits. It must return soon.
    pub(super) fn while_free<T>(&self, work: impl FnOnce() -> Option<T>) -> Option<T> {
        let shared = &self.0;
        if isolane::process_id() != shared.process {
            return None;
        }
        let state = match shared.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let is_free = state.queue.turns.is_empty() && state.opened.is_some() && !state.closed;
        if is_free { work() } else { None }
    }

    /// Serves a call at once, on this thread, if the connection is free. `work` has [`SHORT`](super::stop::SHORT) as its
    /// time. `None` if the connection is in use, or `work` gives that: the call must be put into the line.
    pub(super) fn at_once<T>(
        &self,
        run: u64,
        work: impl FnOnce(&Opened, &Arc<Stop>) -> Option<T>,
    ) -> Option<T> {
        let shared = &self.0;
        if isolane::process_id() != shared.process {
            return None;
        }
        let mut state = match shared.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        if !state.queue.turns.is_empty() {
            return None;
        }
        let opened = state.opened.take()?;
        let call = shared.next_call.fetch_add(1, Ordering::Relaxed);
        let stop = Arc::new(Stop::short());
        state.queue.served = Some(Served { run, call, stop: Arc::clone(&stop) });
        drop(state);
        let lent = Lent { shared, opened: Some(opened) };
        lent.opened.as_ref().and_then(|opened| work(opened, &stop))
    }

    /// Ends all calls; later ones fail. The connection is closed as soon as no call uses it.
    pub(super) fn close(&self) {
        let mut state = locked(&self.0.state);
        state.closed = true;
        let waiting = std::mem::take(&mut state.queue.runs);
        state.queue.turns.clear();
        let opened = state.opened.take();
        if let Some(served) = &state.queue.served {
            served.stop.stop(Reason::End);
            self.0.interrupt.interrupt();
        }
        drop(state);
        self.0.changed.notify_all();
        drop((waiting, opened));
    }

    fn start_thread(&self) -> bool {
        let shared = Arc::clone(&self.0);
        let thread = thread::Builder::new().name("isolane-store".to_owned());
        thread.spawn(move || shared.serve()).is_ok()
    }
}

/// The connection while a call uses it on its caller's thread. It is given back also when that panics.
struct Lent<'s> {
    shared: &'s Shared,
    opened: Option<Opened>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut state = locked(&self.shared.state);
        state.queue.served();
        if !state.closed {
            state.opened = self.opened.take();
        }
        let is_awaited = !state.queue.turns.is_empty();
        // A connection that is still here closes without the lock.
        drop(state);
        if is_awaited {
            self.shared.changed.notify_all();
        }
    }
}

impl Shared {
    /// Serves calls until none comes for a while.
    fn serve(&self) {
        let mut state = locked(&self.state);
        loop {
            if let Some(opened) = state.opened.take() {
                if let Some(waiting) = state.queue.pop() {
                    drop(state);
                    serve(&opened, waiting);
                    state = locked(&self.state);
                    state.queue.served();
                    if state.closed {
                        drop(state);
                        // The connection closes without the lock.
                        drop(opened);
                        return;
                    }
                    state.opened = Some(opened);
                    continue;
                }
                state.opened = Some(opened);
            }
            if state.closed {
                return;
            }
            let (waited, timeout) =
                self.changed.wait_timeout(state, LINGER).unwrap_or_else(PoisonError::into_inner);
            state = waited;
            if timeout.timed_out() && state.queue.turns.is_empty() {
                state.has_thread = false;
                return;
            }
        }
    }

    /// Takes a call out of the queue; `false` if it does not wait any more.
    fn cancel(&self, run: u64, call: u64) -> bool {
        let removed = locked(&self.state).queue.remove(run, call);
        // Its arguments are dropped without the lock.
        removed.is_some()
    }

    /// Interrupts a call if it is the one that is served.
    fn interrupt(&self, run: u64, call: u64) {
        let state = locked(&self.state);
        // With the lock, so that no other call is served meanwhile.
        if state
            .queue
            .served
            .as_ref()
            .is_some_and(|served| (served.run, served.call) == (run, call))
        {
            self.interrupt.interrupt();
        }
    }
}

fn serve(opened: &Opened, waiting: Waiting) {
    let Waiting { stop, work, .. } = waiting;
    if stop.is_stopped() {
        return;
    }
    // A panic drops the sender, which its caller is told; the connection rolls back before its next call.
    let served = catch_unwind(AssertUnwindSafe(|| work(opened, &stop)));
    debug_assert!(served.is_ok(), "a call panicked");
}

/// The failure of a call that has no outcome of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Its time is over.
    Time,
    /// The line is closed, or belongs to another process.
    Closed,
}

/// The outcome of a call. Dropping it stops the call.
pub(super) struct Outcome<T> {
    shared: Arc<Shared>,
    run: u64,
    call: u64,
    stop: Arc<Stop>,
    receiver: oneshot::Receiver<T>,
    is_done: bool,
}

impl<T> Outcome<T> {
    /// Waits for the outcome, and stops the call when its time is over. A call that commits then is waited for.
    pub(super) async fn wait(mut self) -> Result<T, Failure> {
        loop {
            let again = Instant::now() + INTERRUPT_AGAIN;
            // Without a deadline the call still waits, and has all its time before it.
            let until = self
                .stop
                .deadline()
                .map_or(Instant::now() + self.stop.limit(), |deadline| deadline.max(again));
            match timeout_at(until.into(), &mut self.receiver).await {
                Ok(received) => return self.received(received.ok()),
                Err(_elapsed) if !self.stop.check() => {}
                Err(_elapsed) if self.shared.cancel(self.run, self.call) => {
                    return self.received(None).map_err(|_| Failure::Time);
                }
                Err(_elapsed) => return self.stopped().await,
            }
        }
    }

    /// Waits for a stopped call to end.
    async fn stopped(mut self) -> Result<T, Failure> {
        let latest = Instant::now() + GRACE;
        while Instant::now() < latest {
            self.shared.interrupt(self.run, self.call);
            if let Ok(received) = timeout(INTERRUPT_AGAIN, &mut self.receiver).await {
                return self.received(received.ok());
            }
        }
        Err(Failure::Time)
    }

    fn received(&mut self, received: Option<T>) -> Result<T, Failure> {
        self.is_done = true;
        received.ok_or(Failure::Closed)
    }
}

impl<T> Drop for Outcome<T> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        self.stop.stop(Reason::End);
        if !self.shared.cancel(self.run, self.call) {
            self.shared.interrupt(self.run, self.call);
        }
    }
}
