//! The mailbox of one thread or event loop, for Python.
//!
//! In: calls of the core, on any thread, without the interpreter's lock. Out: events as Python objects, and one
//! wake-up for all events before the next drain: a byte in a socket that a loop watches, or the end of a wait. A
//! mailbox holds no Python object, so it can be dropped without an interpreter.

#[cfg(unix)]
use std::os::{fd::AsRawFd, unix::net::UnixStream as Stream};
use std::{
    io::{self, Read, Write},
    sync::Arc,
    time::Duration,
};
#[cfg(windows)]
use std::{
    net::{Ipv4Addr, TcpListener, TcpStream as Stream},
    os::windows::io::AsRawSocket,
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

/// The most events in one drain. Between drains the loop does its other work, so a sandbox with many events
/// cannot starve it.
const MOST_EVENTS: usize = 64;

/// A drain of that many bytes takes no more events, for the same reason.
const MOST_BYTES: usize = 1 << 20;

/// The time to poll for the next call of a sandbox that was just answered: about the time of a turn of a loop.
const NEXT_CALL: Duration = Duration::from_micros(15);

/// The time between two checks for signals in a wait. Python handles signals on the main thread.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// A socket that a loop watches.
#[derive(Debug)]
pub(crate) struct WakeSocket {
    write: Stream,
    read: Stream,
}

impl WakeSocket {
    fn new() -> PyResult<Self> {
        let (write, read) = pair()?;
        write.set_nonblocking(true)?;
        read.set_nonblocking(true)?;
        Ok(Self { write, read })
    }

    /// The number that Python has for the socket to watch.
    fn number(&self) -> i64 {
        #[cfg(unix)]
        return self.read.as_raw_fd().into();
        #[cfg(windows)]
        return i64::try_from(self.read.as_raw_socket()).unwrap_or(-1);
    }
}

/// Two sockets that are connected to each other.
#[cfg(unix)]
fn pair() -> io::Result<(Stream, Stream)> {
    Stream::pair()
}

/// Two sockets that are connected to each other. Windows connects only over the network, here that of this machine.
#[cfg(windows)]
fn pair() -> io::Result<(Stream, Stream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let write = Stream::connect(listener.local_addr()?)?;
    write.set_nodelay(true)?;
    loop {
        let (read, peer) = listener.accept()?;
        // Any program of this machine can connect in between.
        if peer == write.local_addr()? {
            return Ok((write, read));
        }
    }
}

impl Wake for WakeSocket {
    fn wake(&self) {
        // This fails only if the socket is full, and then the loop wakes anyway.
        let _ = (&self.write).write(&[0]);
    }

    fn woken(&self) {
        let mut bytes = [0; 64];
        while (&self.read).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
    }
}

/// The host of one run, or of one session: its thread's mailbox, which may change.
pub(crate) type PythonHost = MailboxHost<WakeSocket, PythonLimits>;

/// The host of a session while no thread listens to it: it drops events, and calls throw.
pub(crate) fn silent_host() -> PythonHost {
    let mailbox = Arc::new(Mailbox::default());
    mailbox.close();
    PythonHost::new(mailbox, 0, PythonLimits::default())
}

/// Refuses messages of one run that Python cannot represent.
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
    mailbox: Arc<Mailbox<WakeSocket>>,
    process: u32,
}

impl PyMailbox {
    /// The host of a run; it queues the run's events here under that number.
    pub(crate) fn host(&self, number: u64) -> PythonHost {
        PythonHost::new(Arc::clone(&self.mailbox), number, PythonLimits::default())
    }

    /// Sends the events of a run or a session here from now on.
    pub(crate) fn forward(&self, host: &PythonHost, number: u64, has_ended: impl FnOnce() -> bool) {
        host.forward(Arc::clone(&self.mailbox), number, has_ended);
    }

    /// Also receives the events of a run in another process.
    pub(crate) fn listen(&self, run: &RunHandle) {
        self.mailbox.listen(run);
    }

    /// A callback that queues the end of a runtime, or the answer of a session, under that number.
    pub(crate) fn closed(&self, number: u64) -> impl FnOnce() + Send + 'static {
        let mailbox = Arc::clone(&self.mailbox);
        move || mailbox.push(number, HostEvent::Closed)
    }

    /// The same as often as it is called: news of a run.
    pub(crate) fn notice(&self, number: u64) -> impl Fn() + Send + Sync + 'static {
        let mailbox = Arc::clone(&self.mailbox);
        move || mailbox.push(number, HostEvent::Closed)
    }

    /// The next events, of each run in turn. If events are left, the thread is woken again.
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
            // Events may hold calls. Dropping a call takes locks, and their owners may be threads of
            // the parent process.
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

    /// The descriptor that is readable when there are events.
    fn fileno(&self) -> PyResult<i64> {
        let descriptor = || self.mailbox.with_waker(|socket| socket.number());
        if let Some(descriptor) = descriptor() {
            return Ok(descriptor);
        }
        self.mailbox.set_waker(WakeSocket::new()?);
        Ok(descriptor().unwrap_or(-1))
    }

    /// The next events, each `(run, kind, number, ok, message, call, is_large)`. Later events wake the thread
    /// again.
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

    /// As `drain`, but first polls for a moment, because a sandbox that was just answered is likely to call again
    /// at once.
    fn drain_next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.mailbox.glance(NEXT_CALL);
        self.drain(py)
    }

    /// Announces that an event is expected and that the thread polls for it, so that nothing wakes the thread.
    fn expect(&self) {
        self.mailbox.expect();
        self.mailbox.poll(true);
    }

    /// Whether polling for the expected event still pays off. If not, later events wake the thread again.
    fn expects(&self) -> bool {
        let lasts = self.mailbox.lasts();
        if !lasts {
            self.mailbox.poll(false);
        } else if self.mailbox.is_polled() {
            self.mailbox.hear();
        }
        lasts
    }

    /// Waits until there are events, without the interpreter's lock. A signal handler may fork meanwhile: in the
    /// child there are no events, and this returns.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        while self.process == std::process::id() && !py.detach(|| self.mailbox.wait(SIGNAL_CHECK)) {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Drops all later events.
    fn close(&self) {
        self.mailbox.close();
    }
}

fn message(py: Python<'_>, completion: Completion) -> PyResult<(bool, Py<PyAny>)> {
    let ok = completion.is_ok();
    let (Ok(value) | Err(value)) = completion;
    Ok((ok, PyMessage::new(value).into_py_any(py)?))
}
