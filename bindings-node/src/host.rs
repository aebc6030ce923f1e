//! What runs ask of their host, queued for the one JavaScript thread that started them.
//!
//! In: calls of the core, on any thread. Out: events, and one wake-up of the JavaScript thread for
//! all that come before it gets to look. Once that thread's environment has ended, whatever comes is
//! dropped: a sandbox that still waits for an answer is told that there will be none.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock,
    atomic::{AtomicBool, Ordering},
};

use isolane::{
    Completion, Host, HostCall, Refusal,
    value::{Kinds, Value},
};
use napi::{
    Env, Status,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};

use crate::limits;

/// Wakes the JavaScript thread. By itself it does not keep the event loop alive.
pub(crate) type Wake = ThreadsafeFunction<(), (), (), Status, false, true>;

/// Something that a run, or the end of a runtime, tells the JavaScript thread.
#[derive(Debug)]
pub(crate) enum Event {
    Call { run: u32, function: u32, args: Value, call: HostCall },
    Start { run: u32, function: u32, args: Value, promise: u32 },
    FunctionSettled { run: u32, call: u32, completion: Completion },
    PromiseSettled { run: u32, promise: u32, completion: Completion },
    Settled { run: u32 },
    Closed { number: u32 },
}

/// The events of one JavaScript thread.
pub(crate) struct Mailbox {
    events: Mutex<Vec<Event>>,
    /// Whether a wake-up is under way that will find everything queued so far.
    woken: AtomicBool,
    /// Whether the thread looks by itself for now, and no one has to wake it.
    polled: AtomicBool,
    /// `None` once the environment has ended.
    wake: RwLock<Option<Wake>>,
}

impl Mailbox {
    pub(crate) fn new(wake: Wake) -> Arc<Self> {
        Arc::new(Self {
            events: Mutex::default(),
            woken: AtomicBool::new(false),
            polled: AtomicBool::new(false),
            wake: RwLock::new(Some(wake)),
        })
    }

    /// Queues an event; drops it when no one is left to hear it.
    pub(crate) fn push(&self, event: Event) {
        let unheard = {
            let wake = self.wake.read().unwrap_or_else(PoisonError::into_inner);
            match &*wake {
                None => Some(event),
                Some(wake) => {
                    self.queued().push(event);
                    if !self.woken.swap(true, Ordering::AcqRel) {
                        wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
                    }
                    None
                }
            }
        };
        // Dropped outside of the lock: a call that is given up may come back here.
        drop(unheard);
    }

    /// All events so far. What comes from now on wakes the thread again.
    pub(crate) fn take(&self) -> Vec<Event> {
        self.woken.store(self.polled.load(Ordering::Acquire), Ordering::Release);
        std::mem::take(&mut *self.queued())
    }

    /// Whether the thread looks by itself from now on; and whether there is something to see.
    pub(crate) fn poll(&self, polls: bool) -> bool {
        self.polled.store(polls, Ordering::Release);
        self.woken.store(polls, Ordering::Release);
        self.has_events()
    }

    fn queued(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is something to take.
    pub(crate) fn has_events(&self) -> bool {
        !self.queued().is_empty()
    }

    /// Whether the thread looks by itself.
    pub(crate) fn is_polled(&self) -> bool {
        self.polled.load(Ordering::Acquire)
    }

    /// Makes the thread's event loop wait for events, or not.
    pub(crate) fn hold_event_loop(&self, env: Env, hold: bool) {
        let mut wake = self.wake.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(wake) = &mut *wake {
            #[expect(
                deprecated,
                reason = "the number of pending runs changes; a function's kind cannot"
            )]
            let done = if hold { wake.refer(&env) } else { wake.unref(&env) };
            // Fails only in an environment that is ending, which waits for nothing anyway.
            drop(done);
        }
    }

    /// The environment has ended: nothing is queued and no one is woken from now on.
    pub(crate) fn close(&self) {
        let wake = self.wake.write().unwrap_or_else(PoisonError::into_inner).take();
        drop((wake, self.take()));
    }
}

/// One run's way to its thread.
pub(crate) struct NodeHost {
    pub(crate) run: u32,
    pub(crate) mailbox: Arc<Mailbox>,
}

impl Host for NodeHost {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        self.mailbox.push(Event::Call { run: self.run, function, args, call });
    }

    fn start(&self, function: u32, args: Value, promise: u32) {
        self.mailbox.push(Event::Start { run: self.run, function, args, promise });
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        self.mailbox.push(Event::FunctionSettled { run: self.run, call, completion });
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        self.mailbox.push(Event::PromiseSettled { run: self.run, promise, completion });
    }

    fn settled(&self) {
        self.mailbox.push(Event::Settled { run: self.run });
    }

    fn validated_kinds(&self) -> Kinds {
        limits::VALIDATED_KINDS
    }

    fn refusal(&self, message: &Value) -> Option<Refusal> {
        limits::refusal(message)
    }
}
