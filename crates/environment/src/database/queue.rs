//! The work of the thread of a database.
//!
//! In: jobs, and processes that have changed or ended. Out: batches. Jobs are few, because each caller waits for its own.
//! A process that has changed stands here once, however often it changes, and waits a moment, so that many writes are one.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{ProcessError, ProcessRecord, RunQuery, locks::lock, process::Process};

/// A change is saved after so long. A crash loses changes of at most that age, and those that the disk is taking.
const PAUSE: Duration = Duration::from_millis(250);

/// After a failure of the disk.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// The most jobs of a batch.
const MOST_JOBS: usize = 512;

/// Reads, and answers its caller. It gets the path for messages.
pub(super) type Read = Box<dyn FnOnce(&Connection, &str) + Send>;

/// Something to do.
pub(super) enum Job {
    Create {
        process: Arc<Process>,
        record: Box<ProcessRecord>,
        is_queued: bool,
        reply: Reply<ProcessRecord>,
    },
    Start {
        process: Arc<Process>,
        attempt: u64,
    },
    Run {
        pid: u64,
        query: RunQuery,
        reply: Reply<ProcessRecord>,
    },
    Delete {
        pid: u64,
        reply: Reply<()>,
    },
    Read(Read),
}

/// The way back to the caller of a job.
pub(super) struct Reply<T> {
    sender: oneshot::Sender<Result<T, ProcessError>>,
    _permit: OwnedSemaphorePermit,
}

impl<T> Reply<T> {
    pub(super) fn new(
        sender: oneshot::Sender<Result<T, ProcessError>>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self { sender, _permit: permit }
    }

    /// Answers. A caller that is gone needs no answer.
    pub(super) fn send(self, answer: Result<T, ProcessError>) {
        let _ = self.sender.send(answer);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

/// The queue, which the service and the thread share.
#[derive(Default)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Processes that have ended.
    ended: BTreeMap<u64, Arc<Process>>,
    /// Processes that have changed.
    changed: BTreeMap<u64, Arc<Process>>,
    changed_since: Option<Instant>,
    /// The thread ends when nothing is left to do.
    is_closing: bool,
    /// The thread has ended.
    is_over: bool,
    closed: Vec<oneshot::Sender<()>>,
}

/// A batch of work.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) jobs: Vec<Job>,
    pub(super) processes: BTreeMap<u64, Arc<Process>>,
    pub(super) is_closing: bool,
}

impl Shared {
    /// Adds a job. After the end it is dropped, and with it the way back to its caller.
    pub(super) fn push(&self, job: Job) {
        let mut queue = lock(&self.queue);
        if !queue.is_over {
            queue.jobs.push_back(job);
            self.wake.notify_one();
        }
    }

    /// Has the thread do what is left, and end.
    pub(super) fn close(&self, closed: Option<oneshot::Sender<()>>) {
        let mut queue = lock(&self.queue);
        queue.is_closing = true;
        if !queue.is_over {
            queue.closed.extend(closed);
        }
        self.wake.notify_one();
    }

    /// The next batch: as soon as there is work, or with nothing at that time. `None` if nothing is left and the queue
    /// is closed.
    pub(super) fn next(&self, until: Option<Instant>, is_failing: bool) -> Option<Batch> {
        let pause = if is_failing { LONG_PAUSE } else { PAUSE };
        let mut queue = lock(&self.queue);
        loop {
            let now = Instant::now();
            let due = queue.changed_since.map(|since| since + pause);
            let is_due = queue.is_closing || due.is_some_and(|due| due <= now);
            let has_work = !queue.jobs.is_empty()
                || !queue.ended.is_empty()
                || (is_due && !queue.changed.is_empty());
            if has_work || until.is_some_and(|until| until <= now) {
                return Some(queue.take(is_due));
            }
            if queue.is_closing {
                return None;
            }
            let time = [due, until].into_iter().flatten().min();
            queue = match time {
                None => self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(time) => {
                    let time = time.saturating_duration_since(now);
                    let waited = self.wake.wait_timeout(queue, time);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// A process whose rows the disk did not take.
    pub(super) fn again(&self, process: Arc<Process>) {
        let mut queue = lock(&self.queue);
        queue.changed_since.get_or_insert_with(Instant::now);
        queue.changed.insert(process.pid, process);
    }

    /// The thread ends: nothing is taken any more.
    pub(super) fn end(&self) -> Vec<oneshot::Sender<()>> {
        let mut rest = {
            let mut queue = lock(&self.queue);
            std::mem::replace(&mut *queue, Queue { is_over: true, ..Queue::default() })
        };
        // A job may hold the service, whose end locks the queue: so the rest is dropped without the lock.
        std::mem::take(&mut rest.closed)
    }
}

impl Queue {
    fn take(&mut self, is_due: bool) -> Batch {
        let count = self.jobs.len().min(MOST_JOBS);
        let jobs = self.jobs.drain(..count).collect();
        let mut processes = std::mem::take(&mut self.ended);
        if is_due {
            self.changed_since = None;
            processes.append(&mut self.changed);
        }
        for process in processes.values() {
            process.swap_mark(false);
        }
        Batch { jobs, processes, is_closing: self.is_closing }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Shared")
    }
}

/// The way of a process to the database.
#[derive(Clone, Debug)]
pub(crate) struct Saver(Arc<Shared>);

impl Saver {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self(Arc::clone(shared))
    }

    /// A process has changed: it is saved soon.
    pub(crate) fn changed(&self, process: &Arc<Process>) {
        if process.swap_mark(true) {
            return;
        }
        let mut queue = lock(&self.0.queue);
        if queue.is_over {
            return;
        }
        queue.changed.insert(process.pid, Arc::clone(process));
        if queue.changed_since.is_none() {
            queue.changed_since = Some(Instant::now());
            self.0.wake.notify_one();
        }
    }

    /// An execution has ended: the process is saved at once.
    pub(crate) fn ended(&self, process: &Arc<Process>) {
        let mut queue = lock(&self.0.queue);
        if !queue.is_over {
            queue.ended.insert(process.pid, Arc::clone(process));
            self.0.wake.notify_one();
        }
    }
}
