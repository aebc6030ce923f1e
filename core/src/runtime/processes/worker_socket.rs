//! The host's end of a worker's socket.
//!
//! In: frames, from any thread. Out: bytes, as many as the socket accepts at once; the driver writes the rest. Nobody
//! waits for a worker to read.

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

/// The cost of a waiting piece beyond its bytes.
const PIECE_BYTES: usize = 64;

/// The receiver of a worker's frames: its run.
pub(crate) trait FrameSink: fmt::Debug + Send + Sync {
    /// The most that one message of the worker may hold, and all that it makes its host keep.
    fn most_bytes(&self) -> usize;

    /// Takes a frame of the worker; returns whether that ended the run.
    ///
    /// # Errors
    /// The worker may not send that frame, or not now.
    fn receive(self: Arc<Self>, frame: Frame) -> Result<bool, Unreadable>;

    /// Settles a run whose worker is gone or cannot be started. Returns the worker that the run had, if this settled
    /// it.
    fn lost(&self, how: &Lost) -> Option<u32>;

    /// Settles a run whose host panicked in a call, or which failed here.
    fn break_down(&self);
}

/// A worker as the host sees it.
#[derive(Debug)]
pub(crate) struct WorkerSocket {
    pub(crate) worker: u32,
    /// The number of the zygote that it is from.
    pub(crate) zygote: u64,
    socket: Arc<OwnedFd>,
    driver: Arc<Readiness>,
    out: Mutex<Out>,
    task: Mutex<Task>,
    /// Whether it was demoted, for good.
    demoted: AtomicBool,
    /// Whether a large frame of it is being taken, for which it waits.
    deferred: AtomicBool,
}

/// The task of a worker.
#[derive(Debug, Default)]
enum Task {
    #[default]
    None,
    Run(Arc<dyn FrameSink>),
    /// The worker is gone.
    Gone,
}

#[derive(Debug, Default)]
struct Out {
    waiting: VecDeque<Vec<u8>>,
    /// How many bytes of the first piece are written.
    written: usize,
    bytes: usize,
    /// Nothing is written until the worker may compute.
    held: bool,
    /// Whether the driver writes the rest.
    watched: bool,
    closed: bool,
}

impl WorkerSocket {
    /// Has the driver watch a worker's socket.
    pub(crate) fn new(
        (zygote, worker): (u64, u32),
        socket: OwnedFd,
        driver: &Arc<Readiness>,
    ) -> Result<Arc<Self>, Errno> {
        no_wait(&socket)?;
        let socket = Arc::new(socket);
        driver.add(&socket, u64::from(worker), false)?;
        Ok(Arc::new(Self {
            worker,
            zygote,
            socket,
            driver: Arc::clone(driver),
            out: Mutex::default(),
            task: Mutex::default(),
            demoted: AtomicBool::new(false),
            deferred: AtomicBool::new(false),
        }))
    }

    /// The run that the worker has.
    pub(crate) fn run(&self) -> Option<Arc<dyn FrameSink>> {
        match &*self.task.lock() {
            Task::Run(run) => Some(Arc::clone(run)),
            Task::None | Task::Gone => None,
        }
    }

    /// Gives the worker a run; false if the worker is gone.
    pub(crate) fn take(&self, run: Arc<dyn FrameSink>) -> bool {
        let mut task = self.task.lock();
        let there = !matches!(*task, Task::Gone);
        if there {
            *task = Task::Run(run);
        }
        there
    }

    /// The worker sends nothing more. If it has no run, it gets none from now on.
    pub(crate) fn retire(&self) {
        let mut task = self.task.lock();
        if matches!(*task, Task::None) {
            *task = Task::Gone;
        }
    }

    /// The worker has ended its run and can take another.
    pub(crate) fn finish(&self) {
        let finished = std::mem::take(&mut *self.task.lock());
        drop(finished);
    }

    /// Notes whether a large frame of the worker is being taken.
    pub(crate) fn set_deferred(&self, deferred: bool) {
        self.deferred.store(deferred, Ordering::Relaxed);
    }

    /// Demotes the worker; false if it is demoted already, or if it waits itself while a large frame of it is being
    /// taken.
    pub(crate) fn demote(&self) -> bool {
        !self.deferred.load(Ordering::Relaxed) && !self.demoted.swap(true, Ordering::Relaxed)
    }

    /// Whether the worker can have no further run.
    pub(crate) fn is_spent(&self) -> bool {
        self.demoted.load(Ordering::Relaxed) || self.out.lock().closed
    }

    /// Marks the worker as gone; returns the run that it had.
    pub(crate) fn mark_gone(&self) -> Option<Arc<dyn FrameSink>> {
        self.unwatch();
        match std::mem::replace(&mut *self.task.lock(), Task::Gone) {
            Task::Run(run) => Some(run),
            Task::None | Task::Gone => None,
        }
    }

    /// Sends a frame as soon as the socket accepts it.
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

    /// Holds frames back until [`WorkerSocket::release`].
    pub(crate) fn hold(&self) {
        self.out.lock().held = true;
    }

    pub(crate) fn release(&self) {
        let mut out = self.out.lock();
        out.held = false;
        self.write(&mut out);
    }

    /// Writes frames that wait.
    pub(crate) fn flush(&self) {
        self.write(&mut self.out.lock());
    }

    /// The bytes that were sent and not written yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.out.lock().bytes
    }

    /// Closes the sending side, which makes the worker end its run.
    pub(crate) fn close(&self) {
        let mut out = self.out.lock();
        let waiting = std::mem::take(&mut out.waiting);
        (out.bytes, out.closed) = (0, true);
        // An error means that the worker is gone.
        let _ = shutdown(&self.socket, Shutdown::Write);
        self.watch(&mut out, false);
        drop(out);
        drop(waiting);
    }

    /// Reads bytes of the worker, as many as there are and fit.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        read_hosts(&self.socket, buffer)
    }

    /// The same, into the spare capacity behind earlier bytes.
    pub(crate) fn read_on(&self, chunk: &mut Vec<u8>) -> Result<usize, Errno> {
        read_hosts(&self.socket, spare_capacity(chunk))
    }

    /// Has the driver watch the socket no longer.
    pub(crate) fn unwatch(&self) {
        self.driver.remove(&self.socket);
    }

    /// Has the driver watch the socket again.
    pub(crate) fn rewatch(&self) {
        let out = self.out.lock();
        // A worker that cannot be watched is as good as gone: no more of it is read, and it is killed when its run is
        // terminated.
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
                // The worker is gone, of which the driver gets an event.
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
