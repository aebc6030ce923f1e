//! The mailbox of one thread or event loop, as Python uses it.
//!
//! In: calls of the core, on any thread, without the interpreter's lock. Out: events as Python objects, and one
//! wake-up for all that come before Python looks: a byte in a socket that a loop watches, or the end of a wait. No
//! Python object is in a mailbox, so nothing of it needs an interpreter to go.

use std::{
    io::{Read, Write},
    os::fd::AsRawFd,
    os::unix::net::UnixStream,
    sync::Arc,
    time::Duration,
};

use isolane::{
    Completion, HostEvent, Mailbox, MailboxHost, Refusal, RunHandle, Validate, Value, Wake,
    value::Kinds,
};
use pyo3::{IntoPyObjectExt, prelude::*, types::PyList};

use crate::{
    execution::PyHostCall,
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

/// A socket that a loop watches.
#[derive(Debug)]
pub(crate) struct Bell {
    write: UnixStream,
    read: UnixStream,
}

impl Bell {
    fn new() -> PyResult<Self> {
        let (write, read) = UnixStream::pair()?;
        write.set_nonblocking(true)?;
        read.set_nonblocking(true)?;
        Ok(Self { write, read })
    }
}

impl Wake for Bell {
    fn wake(&self) {
        // Fails only when it is full, and then the loop has enough to wake up for.
        let _ = (&self.write).write(&[0]);
    }

    fn woken(&self) {
        let mut bytes = [0; 64];
        while (&self.read).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
    }
}

/// One run's way to its thread, which may change.
pub(crate) type PythonHost = MailboxHost<Bell, PythonLimits>;

/// What Python cannot hold of the messages of one run.
#[derive(Debug, Default)]
pub(crate) struct PythonLimits(Allowance);

impl Validate for PythonLimits {
    fn validated_kinds(&self) -> Kinds {
        Kinds::ALL
    }

    fn refusal(&self, message: &Value) -> Option<Refusal> {
        value::refusal(message, &self.0)
    }
}

/// The events of one thread or event loop.
#[pyclass(name = "Mailbox", module = "isolane._isolane", frozen)]
pub(crate) struct PyMailbox {
    mailbox: Arc<Mailbox<Bell>>,
    process: u32,
}

impl PyMailbox {
    /// What a run tells, queued here under that number.
    pub(crate) fn host(&self, number: u64) -> PythonHost {
        PythonHost::new(Arc::clone(&self.mailbox), number, PythonLimits::default())
    }

    /// Sends the events of a run here from now on.
    pub(crate) fn forward(&self, host: &PythonHost, number: u64, run: &RunHandle) {
        host.forward(Arc::clone(&self.mailbox), number, || !run.running());
    }

    /// Hears that run, too, if it is in another process.
    pub(crate) fn listen(&self, run: &RunHandle) {
        self.mailbox.listen(run);
    }

    /// What tells that a runtime has closed, under that number.
    pub(crate) fn closed(&self, number: u64) -> impl FnOnce() + Send + 'static {
        let mailbox = Arc::clone(&self.mailbox);
        move || mailbox.push(number, HostEvent::Closed)
    }

    /// The next events, of each run in turn. For those that are left the thread is woken once more.
    fn take(&self) -> Vec<(u64, HostEvent)> {
        self.mailbox.open();
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while taken.len() < MOST_EVENTS && bytes < MOST_BYTES {
            let Some((number, event)) = self.mailbox.pop() else { return taken };
            bytes += event.held_bytes();
            taken.push((number, event));
        }
        self.mailbox.wake_again();
        taken
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
        let descriptor = || self.mailbox.with_waker(|bell| bell.read.as_raw_fd());
        if let Some(descriptor) = descriptor() {
            return Ok(descriptor);
        }
        self.mailbox.set_waker(Bell::new()?);
        Ok(descriptor().unwrap_or(-1))
    }

    /// The next events, each `(run, kind, number, ok, message, call, is_large)`. What comes from now on
    /// wakes again.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for (run, event) in self.take() {
            let none = || py.None();
            let is_large = event.held_bytes() > LARGE_BYTES;
            let event = match event {
                HostEvent::Call { function, args, call } => (
                    run,
                    "call",
                    function,
                    true,
                    PyMessage::new(args).into_py_any(py)?,
                    PyHostCall::new(call).into_py_any(py)?,
                    is_large,
                ),
                HostEvent::Start { function, args, promise } => (
                    run,
                    "start",
                    function,
                    true,
                    PyMessage::new(args).into_py_any(py)?,
                    promise.into_py_any(py)?,
                    is_large,
                ),
                HostEvent::FunctionSettled { call, completion } => {
                    let (ok, message) = message(py, completion)?;
                    (run, "function", call, ok, message, none(), is_large)
                }
                HostEvent::PromiseSettled { promise, completion } => {
                    let (ok, message) = message(py, completion)?;
                    (run, "promise", promise, ok, message, none(), is_large)
                }
                HostEvent::Settled => (run, "settled", 0, true, none(), none(), false),
                HostEvent::Closed => (run, "closed", 0, true, none(), none(), false),
            };
            list.append(event)?;
        }
        Ok(list)
    }

    /// As `drain`, where something was just answered that is likely to ask for more at once: looks for
    /// that for a moment.
    fn drain_next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.mailbox.glance(AT_ONCE);
        self.drain(py)
    }

    /// Says that an event is expected, for which the thread will look by itself: no one has to wake it.
    fn expect(&self) {
        self.mailbox.expect();
        self.mailbox.poll(true);
    }

    /// Whether looking for it is still worth it. If it is not, whatever comes from now on wakes again.
    fn expects(&self) -> bool {
        let lasts = self.mailbox.lasts();
        if !lasts {
            self.mailbox.poll(false);
        } else if self.mailbox.is_polled() {
            self.mailbox.hear();
        }
        lasts
    }

    /// Waits until there are events, without the interpreter's lock. In a process that a handler of
    /// signals forked off meanwhile there will be none: returns.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        while self.process == std::process::id() && !py.detach(|| self.mailbox.wait(SIGNAL_LOOK)) {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Nobody will look here again: what comes is dropped.
    fn close(&self) {
        self.mailbox.close();
    }
}

fn message(py: Python<'_>, completion: Completion) -> PyResult<(bool, Py<PyAny>)> {
    let ok = completion.is_ok();
    let (Ok(value) | Err(value)) = completion;
    Ok((ok, PyMessage::new(value).into_py_any(py)?))
}
