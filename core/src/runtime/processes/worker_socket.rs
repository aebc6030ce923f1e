//! The host's end of a worker's socket.
//!
//! In: frames, from any thread. Out: bytes, as far as the socket takes them at once; the driver writes the
//! rest. Nobody waits for a worker to read.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::{
    buffer::spare_capacity,
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{Shutdown, send, shutdown},
};

use super::lost::Lost;
use crate::{
    os::sync::Mutex,
    protocol::{
        frame::{Frame, Unreadable},
        readiness::Readiness,
        sockets::{NO_SIGNAL, NO_WAIT, at_once, is_full, no_wait, read_hosts},
    },
};

/// What a piece that waits costs beyond its bytes.
const PIECE_BYTES: usize = 64;

/// What a worker's frames are for: its run.
pub(crate) trait FrameSink: fmt::Debug + Send + Sync {
    /// The most that one message of the worker may hold, and all that it makes its host keep.
    fn most_bytes(&self) -> usize;

    /// Takes what the worker said; true if that ended the run.
    ///
    /// # Errors
    /// The worker may not say that, or not now.
    fn receive(self: Arc<Self>, frame: Frame) -> Result<bool, Unreadable>;

    /// The worker is no more, or cannot be had. The worker that the run had, if this settled it.
    fn lost(&self, how: &Lost) -> Option<u32>;

    /// Settles a run whose host panicked when it was told something, or which failed here.
    fn break_down(&self);
}

/// A worker as the host knows it.
#[derive(Debug)]
pub(crate) struct WorkerSocket {
    pub(crate) worker: u32,
    socket: Arc<OwnedFd>,
    driver: Arc<Readiness>,
    out: Mutex<Out>,
    task: Mutex<Task>,
    /// Whether it comes after others, for good.
    demoted: AtomicBool,
    /// Whether something large that it said is being read, for which it waits.
    aside: AtomicBool,
}

/// What a worker is there for.
#[derive(Debug, Default)]
enum Task {
    #[default]
    None,
    Run(Arc<dyn FrameSink>),
    /// It is no more.
    Gone,
}

#[derive(Debug, Default)]
struct Out {
    waiting: VecDeque<Vec<u8>>,
    /// How much of the first is written.
    written: usize,
    bytes: usize,
    /// Nothing is written until the worker may compute.
    held: bool,
    /// Whether the driver writes on.
    watched: bool,
    closed: bool,
}

impl WorkerSocket {
    /// Has the driver look at what a worker says.
    pub(crate) fn new(
        worker: u32,
        socket: OwnedFd,
        driver: &Arc<Readiness>,
    ) -> Result<Arc<Self>, Errno> {
        no_wait(&socket)?;
        let socket = Arc::new(socket);
        driver.add(&socket, u64::from(worker), false)?;
        Ok(Arc::new(Self {
            worker,
            socket,
            driver: Arc::clone(driver),
            out: Mutex::default(),
            task: Mutex::default(),
            demoted: AtomicBool::new(false),
            aside: AtomicBool::new(false),
        }))
    }

    /// The run that it has.
    pub(crate) fn run(&self) -> Option<Arc<dyn FrameSink>> {
        match &*self.task.lock() {
            Task::Run(run) => Some(Arc::clone(run)),
            Task::None | Task::Gone => None,
        }
    }

    /// Gives it a run; false if it is no more.
    pub(crate) fn take(&self, run: Arc<dyn FrameSink>) -> bool {
        let mut task = self.task.lock();
        let there = !matches!(*task, Task::Gone);
        if there {
            *task = Task::Run(run);
        }
        there
    }

    /// It says its last without having a run: no run is given to it from now on.
    pub(crate) fn retire(&self) {
        let mut task = self.task.lock();
        if matches!(*task, Task::None) {
            *task = Task::Gone;
        }
    }

    /// It has ended its run and takes another.
    pub(crate) fn finish(&self) {
        let finished = std::mem::take(&mut *self.task.lock());
        drop(finished);
    }

    /// Something large that it said is being read, or was.
    pub(crate) fn set_aside(&self, aside: bool) {
        self.aside.store(aside, Ordering::Relaxed);
    }

    /// Has it come after others; false if it does already, or if it is not what keeps them waiting.
    pub(crate) fn demote(&self) -> bool {
        !self.aside.load(Ordering::Relaxed) && !self.demoted.swap(true, Ordering::Relaxed)
    }

    /// Whether it can have no further run.
    pub(crate) fn is_spent(&self) -> bool {
        self.demoted.load(Ordering::Relaxed) || self.out.lock().closed
    }

    /// It is no more; the run that it had.
    pub(crate) fn bury(&self) -> Option<Arc<dyn FrameSink>> {
        self.unwatch();
        match std::mem::replace(&mut *self.task.lock(), Task::Gone) {
            Task::Run(run) => Some(run),
            Task::None | Task::Gone => None,
        }
    }

    /// Sends a frame as soon as it goes.
    pub(crate) fn send(&self, frame: Frame) {
        let mut out = self.out.lock();
        if out.closed {
            return;
        }
        for bytes in frame.into_bytes() {
            out.bytes += bytes.len() + PIECE_BYTES;
            out.waiting.push_back(bytes);
        }
        self.write(&mut out);
    }

    /// Keeps what is sent from now on until [`WorkerSocket::release`].
    pub(crate) fn hold(&self) {
        self.out.lock().held = true;
    }

    pub(crate) fn release(&self) {
        let mut out = self.out.lock();
        out.held = false;
        self.write(&mut out);
    }

    /// Writes on.
    pub(crate) fn flush(&self) {
        self.write(&mut self.out.lock());
    }

    /// What was sent and not written yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.out.lock().bytes
    }

    /// Says that nothing more will be said, which tells the worker to end its run.
    pub(crate) fn close(&self) {
        let mut out = self.out.lock();
        let waiting = std::mem::take(&mut out.waiting);
        (out.bytes, out.closed) = (0, true);
        // One that is gone needs no telling.
        let _ = shutdown(&self.socket, Shutdown::Write);
        self.watch(&mut out, false);
        drop(out);
        drop(waiting);
    }

    /// What the worker has said, as much as there is and fits.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        read_hosts(&self.socket, buffer)
    }

    /// The same, into what room there is behind what was read before.
    pub(crate) fn read_on(&self, chunk: &mut Vec<u8>) -> Result<usize, Errno> {
        read_hosts(&self.socket, spare_capacity(chunk))
    }

    /// Has the driver look no more.
    pub(crate) fn unwatch(&self) {
        self.driver.remove(&self.socket);
    }

    /// Has the driver look again.
    pub(crate) fn rewatch(&self) {
        let out = self.out.lock();
        // One that cannot be watched is as good as gone: nothing more is heard of it, and it is killed when
        // its host is tired of it.
        let _ = self.driver.add(&self.socket, u64::from(self.worker), out.watched);
    }

    fn write(&self, out: &mut Out) {
        while !out.held {
            let Some(bytes) = out.waiting.front() else { break };
            match send(&self.socket, at_once(&bytes[out.written..]), NO_WAIT | NO_SIGNAL) {
                Ok(written) if out.written + written == bytes.len() => {
                    out.bytes -= bytes.len() + PIECE_BYTES;
                    out.written = 0;
                    out.waiting.pop_front();
                }
                Ok(written) => out.written += written,
                Err(Errno::INTR) => {}
                Err(error) if is_full(error) => return self.watch(out, true),
                // It is gone, which the driver is told of too.
                Err(_) => {
                    out.waiting.clear();
                    (out.bytes, out.closed) = (0, true);
                }
            }
        }
        self.watch(out, false);
    }

    fn watch(&self, out: &mut Out, writing: bool) {
        if out.watched == writing {
            return;
        }
        out.watched = writing;
        self.driver.modify(&self.socket, u64::from(self.worker), writing);
    }
}

impl AsFd for WorkerSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
