//! A queue of events of runs, for the one thread or event loop that started them.
//!
//! In: events, on any thread. Out: the same on the host's thread, in order for each run and session, by turns among these
//! (`fair_queue`); and one wake-up for all events that arrive before that thread takes them. To wake a thread costs
//! more than most answers take, so the thread may also poll for a moment: in turns of its event loop
//! ([`Mailbox::poll`]), or by waiting ([`Mailbox::wait`]). It learns for how long (`adaptive_spin`). A closed mailbox
//! drops events: a call for which a sandbox still waits then throws.

use std::{
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    adaptive_spin::AdaptiveSpin,
    fair_queue::FairQueue,
    handle::{EventPoller, RunHandle},
    host::{Completion, HostCall},
};
use crate::value::Value;

/// An event for the thread that started a run: one of the calls of [`Host`](crate::Host). Also the end of a runtime.
#[derive(Debug)]
pub enum HostEvent {
    /// As [`Host::call`](crate::Host::call).
    Call {
        /// The number of the host function.
        function: u32,
        /// The array of its arguments.
        args: Value,
        /// The call, for which the sandbox waits.
        call: HostCall,
    },
    /// As [`Host::start`](crate::Host::start).
    Start {
        /// The number of the host function.
        function: u32,
        /// The array of its arguments.
        args: Value,
        /// The promise that it settles.
        promise: u32,
    },
    /// As [`Host::function_settled`](crate::Host::function_settled).
    FunctionSettled {
        /// The number of the call.
        call: u32,
        /// The outcome of the function.
        completion: Completion,
    },
    /// As [`Host::promise_settled`](crate::Host::promise_settled).
    PromiseSettled {
        /// The number of the promise.
        promise: u32,
        /// Its outcome.
        completion: Completion,
    },
    /// As [`Host::settled`](crate::Host::settled).
    Settled,
    /// A runtime has closed. Delivered after all events that were queued before it.
    Closed,
}

impl HostEvent {
    /// The bytes that its message holds.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Call { args: message, .. }
            | Self::Start { args: message, .. }
            | Self::FunctionSettled { completion: Ok(message) | Err(message), .. }
            | Self::PromiseSettled { completion: Ok(message) | Err(message), .. } => {
                message.held_bytes()
            }
            Self::Settled | Self::Closed => 0,
        }
    }
}

/// Wakes the thread of a mailbox.
///
/// Both methods are called with the mailbox locked: they must return at once, and must not use it.
pub trait Wake: Send + 'static {
    /// Wakes the thread so that it takes events soon. Called on any thread, once until the thread takes some.
    fn wake(&self);

    /// The thread is awake and takes events. Called on that thread.
    fn woken(&self) {}
}

/// The events of one thread or event loop, each with the number of its run.
///
/// [`Mailbox::push`] may be called on any thread, everything else on the thread of the mailbox. Every method returns at
/// once but for [`Mailbox::wait`] and [`Mailbox::glance`], and costs a lock or two, which are held for some hundred
/// nanoseconds at most. No event is dropped under a lock: to drop a [`HostCall`] is to answer it, which may push an
/// event.
#[derive(Debug)]
pub struct Mailbox<W> {
    queue: Mutex<Queue<W>>,
    arrived: Condvar,
    /// Whether the thread was woken or polls, and so will find everything queued so far.
    woken: AtomicBool,
    /// Whether the thread polls, so that nobody has to wake it.
    polled: AtomicBool,
    spin: AdaptiveSpin,
    /// Used by the mailbox's own thread alone.
    expected: Mutex<Expected>,
    /// The poller of the run that was started last, if that run is in another process.
    poller: Mutex<Option<EventPoller>>,
}

#[derive(Debug)]
struct Queue<W> {
    events: FairQueue<HostEvent>,
    /// `None` until there is one, and once the mailbox is closed.
    waker: Option<W>,
    /// Nobody will ever take events again.
    closed: bool,
}

/// An event that the thread expects.
#[derive(Debug, Default)]
struct Expected {
    since: Option<Instant>,
    /// Whether no event has arrived since.
    pending: bool,
    /// Whether a wait found one without sleeping.
    found: bool,
}

impl Expected {
    fn begin(&mut self) -> Instant {
        self.pending = true;
        self.found = false;
        *self.since.insert(Instant::now())
    }
}

impl<W> Default for Mailbox<W> {
    fn default() -> Self {
        Self {
            queue: Mutex::new(Queue { events: FairQueue::default(), waker: None, closed: false }),
            arrived: Condvar::new(),
            woken: AtomicBool::new(false),
            polled: AtomicBool::new(false),
            spin: AdaptiveSpin::new(),
            expected: Mutex::default(),
            poller: Mutex::default(),
        }
    }
}

impl<W: Wake> Mailbox<W> {
    /// Queues an event of the run, or of the closed runtime, with that number, and wakes the thread unless it is awake.
    /// Drops the event if the mailbox is closed.
    pub fn push(&self, number: u64, event: HostEvent) {
        self.push_in(number, number, event);
    }

    /// The same, for a run whose events have one order with those of others that have that lane.
    pub(super) fn push_in(&self, lane: u64, number: u64, event: HostEvent) {
        self.spin.sent();
        let dropped = {
            let mut queue = self.queue();
            if queue.closed {
                Some(event)
            } else {
                match event {
                    HostEvent::Closed => queue.events.push_last(number, event),
                    _ => queue.events.push(lane, number, event),
                }
                self.wake(&queue);
                None
            }
        };
        drop(dropped);
    }

    /// Begins to take events: later events wake the thread again, unless it polls.
    pub fn open(&self) {
        let queue = self.queue();
        let polled = self.is_polled();
        self.woken.store(polled, Ordering::Release);
        if queue.events.is_empty() {
            return;
        }
        if let Some(waker) = &queue.waker {
            waker.woken();
        }
        drop(queue);
        let mut expected = lock(&self.expected);
        if std::mem::take(&mut expected.pending)
            && let Some(since) = expected.since
        {
            self.spin.learn(since.elapsed(), polled || expected.found);
        }
    }

    /// The next event, of each run in turn, with the number that it was queued under.
    pub fn pop(&self) -> Option<(u64, HostEvent)> {
        self.queue().events.pop()
    }

    /// Wakes the thread once more if events are left, for a thread that takes a limited number at once.
    pub fn wake_again(&self) {
        let queue = self.queue();
        if !queue.events.is_empty() {
            self.woken.store(false, Ordering::Release);
            self.wake(&queue);
        }
    }

    /// Whether there are events to take.
    pub fn has_events(&self) -> bool {
        !self.queue().events.is_empty()
    }

    /// Holds back the events of a run until [`Mailbox::resume`], but not those of other runs, unless they are behind them in
    /// one lane.
    pub fn hold(&self, run: u64) {
        self.queue().events.hold(run);
    }

    /// Releases the events of a run that were held back.
    pub fn resume(&self, run: u64) {
        self.queue().events.resume(run);
    }

    /// Takes out all events of a run, in their order.
    pub(super) fn take(&self, lane: u64, run: u64) -> Vec<HostEvent> {
        self.queue().events.take(lane, run)
    }

    /// Sets the waker of the thread, and wakes the thread at once if there are events.
    pub fn set_waker(&self, waker: W) {
        let mut queue = self.queue();
        let before = if queue.closed { Some(waker) } else { queue.waker.replace(waker) };
        self.woken.store(false, Ordering::Release);
        if !queue.events.is_empty() {
            self.wake(&queue);
        }
        drop(queue);
        drop(before);
    }

    /// Calls `act` with the waker, if there is one; the rules of [`Wake`] hold for `act`, too.
    pub fn with_waker<T>(&self, act: impl FnOnce(&mut W) -> T) -> Option<T> {
        self.queue().waker.as_mut().map(act)
    }

    /// Closes the mailbox: drops its events, and all later ones.
    pub fn close(&self) {
        let dropped = {
            let mut queue = self.queue();
            queue.closed = true;
            (queue.waker.take(), std::mem::take(&mut queue.events))
        };
        drop(dropped);
    }

    /// Says that an event is expected soon, because something was sent that is likely to be answered.
    pub fn expect(&self) {
        lock(&self.expected).begin();
    }

    /// Whether it still pays off to poll for the expected event.
    #[must_use]
    pub fn lasts(&self) -> bool {
        let since = lock(&self.expected).since;
        since.is_some_and(|since| self.spin.lasts(since))
    }

    /// Says that the thread polls from now on (`true`), again and again within half a millisecond, so that nobody wakes
    /// it; or that it no longer polls, after which it has to check for events once more.
    pub fn poll(&self, polls: bool) {
        if !polls {
            self.rest();
        }
        self.polled.store(polls, Ordering::Release);
        self.woken.store(polls, Ordering::Release);
    }

    /// Whether the thread polls.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        self.polled.load(Ordering::Acquire)
    }

    /// Has [`Mailbox::hear`] read events of that run, if the run is in another process.
    pub fn listen(&self, run: &RunHandle) {
        if let Some(poller) = run.event_poller() {
            *lock(&self.poller) = Some(poller);
        }
    }

    /// Reads events of runs in other processes on this thread, while it polls: some 4 KiB of each of a few. Costs a
    /// system call. Returns whether reading again pays off: not if a run sends a lot, nor if runs wait for processes,
    /// which need the processors more. No other thread is woken for these events for half a millisecond, or until the
    /// thread stops polling.
    pub fn hear(&self) -> bool {
        let poller = lock(&self.poller).clone();
        poller.is_some_and(|poller| poller.hear())
    }

    /// Polls for an event for that long at most, without sleeping.
    pub fn glance(&self, at_most: Duration) {
        let started = Instant::now();
        // Otherwise `push` would wake the thread.
        self.woken.store(true, Ordering::Release);
        while !self.has_events() && started.elapsed() < at_most {
            self.hear();
            std::hint::spin_loop();
        }
    }

    /// Waits for an event for that long at most. Returns whether there is one. Spins before it sleeps.
    pub fn wait(&self, at_most: Duration) -> bool {
        let since = lock(&self.expected).begin();
        self.spin.spin(since, || {
            self.hear();
            self.woken.load(Ordering::Acquire)
        });
        self.rest();
        let mut queue = self.queue();
        if queue.events.is_empty() {
            let woken = self.arrived.wait_timeout(queue, at_most);
            queue = woken.unwrap_or_else(PoisonError::into_inner).0;
        } else {
            lock(&self.expected).found = true;
        }
        !queue.events.is_empty()
    }

    /// Says that the thread will not read events of other processes soon.
    fn rest(&self) {
        let poller = lock(&self.poller).clone();
        if let Some(poller) = poller {
            poller.rest();
        }
    }

    fn wake(&self, queue: &Queue<W>) {
        if self.woken.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(waker) = &queue.waker {
            waker.wake();
        }
        self.arrived.notify_all();
    }

    fn queue(&self) -> MutexGuard<'_, Queue<W>> {
        lock(&self.queue)
    }
}

/// A panic under one of these locks leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::AtomicUsize};

    use super::*;

    #[derive(Clone, Debug, Default)]
    struct Bell {
        rung: Arc<AtomicUsize>,
        silenced: Arc<AtomicUsize>,
    }

    impl Wake for Bell {
        fn wake(&self) {
            self.rung.fetch_add(1, Ordering::Relaxed);
        }

        fn woken(&self) {
            self.silenced.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn with_bell() -> (Mailbox<Bell>, Bell) {
        let (mailbox, bell) = (Mailbox::default(), Bell::default());
        mailbox.set_waker(bell.clone());
        (mailbox, bell)
    }

    fn rung(bell: &Bell) -> usize {
        bell.rung.load(Ordering::Relaxed)
    }

    #[test]
    fn one_wake_up_is_for_all_events_until_the_thread_takes_some() {
        let (mailbox, bell) = with_bell();
        mailbox.push(1, HostEvent::Settled);
        mailbox.push(2, HostEvent::Settled);
        assert_eq!(rung(&bell), 1);
        mailbox.open();
        assert_eq!(bell.silenced.load(Ordering::Relaxed), 1);
        assert!(matches!(mailbox.pop(), Some((1, HostEvent::Settled))));
        mailbox.push(3, HostEvent::Settled);
        assert_eq!(rung(&bell), 2);
        mailbox.wake_again();
        assert_eq!(rung(&bell), 3, "two are left");
        assert!(mailbox.pop().is_some() && mailbox.pop().is_some());
        mailbox.open();
        mailbox.wake_again();
        assert_eq!(rung(&bell), 3, "none is left");
        assert_eq!(bell.silenced.load(Ordering::Relaxed), 1, "there was nothing to take");
    }

    #[test]
    fn a_thread_that_polls_is_not_woken() {
        let (mailbox, bell) = with_bell();
        mailbox.poll(true);
        mailbox.push(1, HostEvent::Settled);
        mailbox.open();
        assert!(mailbox.pop().is_some());
        mailbox.push(1, HostEvent::Settled);
        assert_eq!(rung(&bell), 0);
        mailbox.poll(false);
        assert!(mailbox.has_events(), "the thread looks once more");
        mailbox.push(2, HostEvent::Settled);
        assert_eq!(rung(&bell), 1);
    }

    #[test]
    fn a_waker_that_comes_later_wakes_for_what_is_there() {
        let mailbox = Mailbox::default();
        mailbox.push(1, HostEvent::Settled);
        let bell = Bell::default();
        mailbox.set_waker(bell.clone());
        assert_eq!(rung(&bell), 1);
    }

    #[test]
    fn a_closed_mailbox_drops_what_comes_and_wakes_no_one() {
        let (mailbox, bell) = with_bell();
        mailbox.push(1, HostEvent::Settled);
        mailbox.close();
        assert!(!mailbox.has_events());
        mailbox.open();
        mailbox.push(1, HostEvent::Settled);
        assert!(mailbox.pop().is_none());
        assert_eq!(rung(&bell), 1);
        assert!(mailbox.with_waker(|_| ()).is_none());
        assert_eq!(Arc::strong_count(&bell.rung), 1, "the waker is gone");
    }

    #[test]
    fn the_end_of_a_runtime_comes_after_the_events_of_its_runs() {
        let (mailbox, _bell) = with_bell();
        mailbox.push(1, HostEvent::Settled);
        mailbox.push(9, HostEvent::Closed);
        mailbox.push(2, HostEvent::Settled);
        mailbox.hold(1);
        assert!(matches!(mailbox.pop(), Some((2, HostEvent::Settled))));
        assert!(mailbox.pop().is_none());
        mailbox.resume(1);
        assert!(matches!(mailbox.pop(), Some((1, HostEvent::Settled))));
        assert!(matches!(mailbox.pop(), Some((9, HostEvent::Closed))));
    }

    #[test]
    fn an_event_from_another_thread_ends_a_wait() {
        let mailbox = Arc::new(Mailbox::<Bell>::default());
        assert!(!mailbox.wait(Duration::from_millis(1)));
        let other = Arc::clone(&mailbox);
        let thread = std::thread::spawn(move || other.push(1, HostEvent::Settled));
        while !mailbox.wait(Duration::from_secs(10)) {}
        thread.join().expect("the thread ends by itself");
        assert!(mailbox.pop().is_some());
    }

    #[test]
    fn looking_is_worth_it_for_a_moment_after_something_was_said() {
        let mailbox = Mailbox::<Bell>::default();
        assert!(!mailbox.lasts(), "nothing is expected");
        mailbox.expect();
        let started = Instant::now();
        while mailbox.lasts() {
            assert!(started.elapsed() < Duration::from_mins(1));
        }
    }
}
