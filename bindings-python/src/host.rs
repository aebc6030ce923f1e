//! What runs ask of their host, queued for the one thread or event loop that started them.
//!
//! In: calls of the core, on any thread, without the interpreter's lock. Out: events, and one
//! wake-up for all that come before anyone gets to look: a byte in a socket that a loop watches, or
//! the end of a wait. No Python object is in here, so nothing of it needs an interpreter to go.

use std::{
    io::{Read, Write},
    os::fd::AsRawFd,
    os::unix::net::UnixStream,
    sync::{
        Arc, Condvar, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use isolane::{
    AdaptiveSpin, Completion, EventPoller, FairQueue, Host, HostCall, Refusal, RunHandle, Value,
    value::Kinds,
};
use pyo3::{IntoPyObjectExt, prelude::*, types::PyList};

use crate::{
    execution::PyHostCall,
    lock::Lock,
    message::{LARGE_BYTES, PyMessage},
    value::{self, Allowance},
};

/// Events that Python gets at once. Beyond that its loop has other things to do first: no sandbox
/// keeps it from those by telling a lot.
const MOST_EVENTS: usize = 64;

/// Bytes of events after which no more are added, for the same reason.
const MOST_BYTES: usize = 1 << 20;

/// How long to look for what the sandbox says next, having just been answered: so long takes a loop that
/// comes round.
const AT_ONCE: Duration = Duration::from_micros(15);

/// How long a wait sleeps before it looks for signals, which Python handles on the main thread.
const SIGNAL_LOOK: Duration = Duration::from_millis(50);

/// Something that a run, or the end of a runtime, tells the thread that started it.
#[derive(Debug)]
enum Event {
    Call { function: u32, args: Value, call: HostCall },
    Start { function: u32, args: Value, promise: u32 },
    FunctionSettled { call: u32, completion: Completion },
    PromiseSettled { promise: u32, completion: Completion },
    Settled,
    Closed,
}

impl Event {
    fn held_bytes(&self) -> usize {
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

/// The events of one thread or event loop, each with the number of its run.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    inside: Lock<Inside>,
    arrived: Condvar,
    /// Whether someone was woken, or looks by itself, and will find everything queued so far.
    woken: AtomicBool,
    /// Whether the thread looks by itself for now, and no one has to wake it.
    polled: AtomicBool,
    spin: AdaptiveSpin,
    /// Where to hear the run that was started last, if it is in another process.
    listener: Lock<Option<EventPoller>>,
}

#[derive(Debug, Default)]
struct Inside {
    events: FairQueue<Event>,
    /// Where a loop is woken: the end to write to, and the end that it watches.
    bell: Option<(UnixStream, UnixStream)>,
    /// Nobody will ever look again.
    closed: bool,
    /// Since when an event is expected, and whether none has come since.
    since: Option<Instant>,
    expecting: bool,
    /// Whether nobody had to be woken for what there is now.
    found: bool,
}

impl Inside {
    fn expect(&mut self) -> Instant {
        self.expecting = true;
        self.found = true;
        *self.since.insert(Instant::now())
    }
}

impl Mailbox {
    fn push(&self, number: u64, event: Event) {
        let unheard = {
            let mut inside = self.inside.lock();
            if inside.closed {
                Some(event)
            } else {
                match event {
                    Event::Closed => inside.events.push_last(number, event),
                    _ => inside.events.push(number, event),
                }
                self.wake(&inside);
                None
            }
        };
        // Dropped outside of the lock: a call that is given up may come back here.
        drop(unheard);
    }

    fn wake(&self, inside: &Inside) {
        if self.woken.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some((bell, _)) = &inside.bell {
            // Fails only when it is full, and then the loop has enough to wake up for.
            let _ = (&mut &*bell).write(&[0]);
        }
        self.arrived.notify_all();
    }

    /// The next events, of each run in turn. For those that are left someone is woken once more.
    fn take(&self) -> Vec<(u64, Event)> {
        let mut inside = self.inside.lock();
        self.woken.store(self.polled.load(Ordering::Acquire), Ordering::Release);
        if let Some((_, bell)) = &inside.bell
            && !inside.events.is_empty()
        {
            silence(bell);
        }
        if !inside.events.is_empty()
            && std::mem::take(&mut inside.expecting)
            && let Some(since) = inside.since
        {
            self.spin.learn(since.elapsed(), inside.found);
        }
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while taken.len() < MOST_EVENTS && bytes < MOST_BYTES {
            let Some((number, event)) = inside.events.pop() else { break };
            bytes += event.held_bytes();
            taken.push((number, event));
        }
        if !inside.events.is_empty() {
            self.woken.store(false, Ordering::Release);
            self.wake(&inside);
        }
        taken
    }

    /// Hears what runs in other processes say, where the thread looks by itself.
    fn hear(&self) {
        let listener = self.listener.lock().clone();
        let _ = listener.is_some_and(|listener| listener.hear());
    }

    /// The thread does not look any more.
    fn rest(&self) {
        let listener = self.listener.lock().clone();
        if let Some(listener) = listener {
            listener.rest();
        }
    }

    fn has_events(&self) -> bool {
        !self.inside.lock().events.is_empty()
    }

    /// Waits for an event for a moment; says whether there is one.
    fn wait(&self) -> bool {
        let since = self.inside.lock().expect();
        self.spin.look(since, || {
            self.hear();
            self.woken.load(Ordering::Acquire)
        });
        self.rest();
        let mut inside = self.inside.lock();
        if inside.events.is_empty() {
            inside.found = false;
            let woken = self.arrived.wait_timeout(inside, SIGNAL_LOOK);
            inside = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        !inside.events.is_empty()
    }

    /// Looks whether an event comes at once.
    fn glance(&self) {
        let started = Instant::now();
        // Whoever pushes would ring otherwise.
        self.woken.store(true, Ordering::Release);
        while !self.has_events() && started.elapsed() < AT_ONCE {
            self.hear();
            std::hint::spin_loop();
        }
    }

    fn events_of(&self, number: u64) -> Vec<Event> {
        self.inside.lock().events.take(number)
    }
}

fn silence(bell: &UnixStream) {
    let mut bytes = [0; 64];
    while (&mut &*bell).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
}

/// One run's way to its thread, which may change.
#[derive(Debug)]
pub(crate) struct PythonHost {
    address: Lock<(Arc<Mailbox>, u64)>,
    allowance: Allowance,
}

impl PythonHost {
    pub(crate) fn new(mailbox: &PyMailbox, number: u64) -> Arc<Self> {
        let address = Lock::new((Arc::clone(&mailbox.mailbox), number));
        Arc::new(Self { address, allowance: Allowance::default() })
    }

    fn push(&self, event: Event) {
        let address = self.address.lock();
        address.0.push(address.1, event);
    }

    /// Sends what comes from now on, and what nobody fetched yet, to another mailbox. A run that
    /// has `settled` says so once more.
    pub(crate) fn forward(&self, mailbox: &PyMailbox, number: u64, settled: impl Fn() -> bool) {
        let mut address = self.address.lock();
        let mut waiting = address.0.events_of(address.1);
        *address = (Arc::clone(&mailbox.mailbox), number);
        // Asked under the lock: one that has not settled will say so to the new address.
        if settled() && !waiting.iter().any(|event| matches!(event, Event::Settled)) {
            waiting.push(Event::Settled);
        }
        for event in waiting {
            address.0.push(number, event);
        }
    }
}

impl Host for PythonHost {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        self.push(Event::Call { function, args, call });
    }

    fn start(&self, function: u32, args: Value, promise: u32) {
        self.push(Event::Start { function, args, promise });
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        self.push(Event::FunctionSettled { call, completion });
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        self.push(Event::PromiseSettled { promise, completion });
    }

    fn settled(&self) {
        self.push(Event::Settled);
    }

    fn validated_kinds(&self) -> Kinds {
        Kinds::ALL
    }

    fn refusal(&self, message: &Value) -> Option<Refusal> {
        value::refusal(message, &self.allowance)
    }
}

/// The events of one thread or event loop.
#[pyclass(name = "Mailbox", module = "isolane._isolane", frozen)]
pub(crate) struct PyMailbox {
    mailbox: Arc<Mailbox>,
    process: u32,
}

impl PyMailbox {
    /// Hears that run, too, if it is in another process.
    pub(crate) fn listen(&self, remote: &RunHandle) {
        if let Some(listener) = remote.listener() {
            *self.mailbox.listener.lock() = Some(listener);
        }
    }

    /// What tells that a runtime has closed, under that number.
    pub(crate) fn closed(&self, number: u64) -> impl FnOnce() + Send + 'static {
        let mailbox = Arc::clone(&self.mailbox);
        move || mailbox.push(number, Event::Closed)
    }
}

impl Drop for PyMailbox {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // Its events may be calls, and giving those up takes locks whose holders may be in the
            // other process.
            std::mem::forget(Arc::clone(&self.mailbox));
        }
    }
}

#[pymethods]
impl PyMailbox {
    #[new]
    fn new() -> Self {
        Self { mailbox: Arc::default(), process: std::process::id() }
    }

    /// The descriptor that can be read when there are events.
    fn fileno(&self) -> PyResult<i32> {
        let mut inside = self.mailbox.inside.lock();
        if inside.bell.is_none() {
            let (write, read) = UnixStream::pair()?;
            write.set_nonblocking(true)?;
            read.set_nonblocking(true)?;
            inside.bell = Some((write, read));
            self.mailbox.woken.store(false, Ordering::Release);
            if !inside.events.is_empty() {
                self.mailbox.wake(&inside);
            }
        }
        Ok(inside.bell.as_ref().map_or(-1, |(_, read)| read.as_raw_fd()))
    }

    /// The next events, each `(run, kind, number, ok, message, call, is_large)`. What comes from now on
    /// wakes again.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for (run, event) in self.mailbox.take() {
            let none = || py.None();
            let is_large = event.held_bytes() > LARGE_BYTES;
            let event = match event {
                Event::Call { function, args, call } => (
                    run,
                    "call",
                    function,
                    true,
                    PyMessage::new(args).into_py_any(py)?,
                    PyHostCall::new(call).into_py_any(py)?,
                    is_large,
                ),
                Event::Start { function, args, promise } => (
                    run,
                    "start",
                    function,
                    true,
                    PyMessage::new(args).into_py_any(py)?,
                    promise.into_py_any(py)?,
                    is_large,
                ),
                Event::FunctionSettled { call, completion } => {
                    let (ok, message) = message(py, completion)?;
                    (run, "function", call, ok, message, none(), is_large)
                }
                Event::PromiseSettled { promise, completion } => {
                    let (ok, message) = message(py, completion)?;
                    (run, "promise", promise, ok, message, none(), is_large)
                }
                Event::Settled => (run, "settled", 0, true, none(), none(), false),
                Event::Closed => (run, "closed", 0, true, none(), none(), false),
            };
            list.append(event)?;
        }
        Ok(list)
    }

    /// As `drain`, where something was just answered that is likely to ask for more at once: looks for
    /// that for a moment.
    fn drain_next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.mailbox.glance();
        self.drain(py)
    }

    /// Says that an event is expected, for which the thread will look by itself: no one has to wake it.
    fn expect(&self) {
        self.mailbox.inside.lock().expect();
        self.mailbox.polled.store(true, Ordering::Release);
        self.mailbox.woken.store(true, Ordering::Release);
    }

    /// Whether looking for it is still worth it. If it is not, whatever comes from now on wakes again.
    fn expects(&self) -> bool {
        let since = self.mailbox.inside.lock().since;
        let lasts = since.is_some_and(|since| self.mailbox.spin.lasts(since));
        if !lasts {
            self.mailbox.inside.lock().found = false;
            self.mailbox.rest();
            self.mailbox.polled.store(false, Ordering::Release);
            self.mailbox.woken.store(false, Ordering::Release);
        } else if self.mailbox.polled.load(Ordering::Acquire) {
            self.mailbox.hear();
        }
        lasts
    }

    /// Waits until there are events, without the interpreter's lock. In a process that a handler of
    /// signals forked off meanwhile there will be none: returns.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        while self.process == std::process::id() && !py.detach(|| self.mailbox.wait()) {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Nobody will look here again: what comes is dropped.
    fn close(&self) {
        let events = {
            let mut inside = self.mailbox.inside.lock();
            inside.closed = true;
            inside.bell = None;
            std::mem::take(&mut inside.events)
        };
        drop(events);
    }
}

fn message(py: Python<'_>, completion: Completion) -> PyResult<(bool, Py<PyAny>)> {
    let ok = completion.is_ok();
    let (Ok(value) | Err(value)) = completion;
    Ok((ok, PyMessage::new(value).into_py_any(py)?))
}
