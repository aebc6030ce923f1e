//! The thread of a database: the only one that reads and writes.
//!
//! In: batches of the queue. Out: one transaction for many of them, and what follows from it: answers, starts, processes
//! that leave the memory. If a transaction fails, each of its parts is tried alone. Rows that the disk does not take
//! stay in memory and are tried again; the log has a line when that begins and when it ends.

use std::{
    collections::BTreeMap,
    mem,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::{
    not_found,
    queue::{Batch, Job, Reply, Shared},
    read,
    write::{self, Tally},
};
use crate::{
    ProblemType, ProcessError, ProcessRecord, RunQuery,
    event::Changes,
    options::Log,
    process::{Process, log::EventLog, now_ms, unsaved::Mark},
    service::inner::{FRESH, Inner},
};

/// Processes whose results one transaction takes.
const MOST_SAVES: usize = 64;

/// Processes that one transaction forgets.
const MOST_FORGOTTEN: usize = 256;

/// After a failure of the disk.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// Which idle processes stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retention {
    pub(super) count: u64,
    /// As many more stay a while.
    pub(super) fresh: u64,
    pub(super) ms: u64,
}

pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) shared: Arc<Shared>,
    pub(super) inner: Weak<Inner>,
    pub(super) changes: Arc<Changes>,
    /// The id of the last change that is saved.
    pub(super) saved_changes: u64,
    pub(super) tally: Tally,
    /// The tally's idle processes, for other threads.
    pub(super) idle: Arc<AtomicU64>,
    /// The path, for messages.
    pub(super) file: String,
    pub(super) log: Log,
    pub(super) retention: Retention,
    /// Whether the last transaction failed.
    pub(super) is_failing: bool,
    /// Processes whose results nobody could save before the end.
    pub(super) lost: usize,
}

/// The end of the thread, however it ends: from then on nobody waits for it.
struct End {
    shared: Arc<Shared>,
    log: Log,
}

impl Drop for End {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.log)("the thread of the database has panicked: nothing is saved any more");
        }
        drop(self.shared.end());
    }
}

/// One part of a transaction.
enum Part {
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
    Delete {
        pid: u64,
        reply: Reply<()>,
    },
    Save(Arc<Process>),
}

/// The effects of a transaction besides its rows.
#[derive(Default)]
struct Written {
    /// The changes that were taken from processes, to be given back if the transaction fails.
    taken: Vec<(Arc<Process>, Mark)>,
    /// Pids that were to be deleted, and that there are not.
    missing: Vec<u64>,
}

impl Writer {
    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        let _end = End { shared: Arc::clone(&self.shared), log: Arc::clone(&self.log) };
        loop {
            let until = self.forget_old();
            let Some(batch) = self.shared.next(until, self.is_failing) else { break };
            self.work(batch);
        }
        if self.lost > 0 {
            let (lost, file) = (self.lost, &self.file);
            (self.log)(&format!("the ends of {lost} processes are not in database '{file}'"));
        }
        let Self { connection, shared, file, log, .. } = self;
        // Takes the log of the database into it, and gives the file back.
        if let Err((_, error)) = connection.close() {
            log(&format!("database '{file}' was not closed: {error}"));
        }
        for closed in shared.end() {
            // Nobody may wait any more.
            let _ = closed.send(());
        }
    }

    fn work(&mut self, batch: Batch) {
        let Batch { jobs, mut processes, is_closing } = batch;
        let (mut parts, mut deletes) = (Vec::new(), Vec::new());
        let (mut reads, mut ran) = (Vec::new(), Vec::new());
        for job in jobs {
            match job {
                Job::Create { process, record, is_queued, reply } => {
                    parts.push(Part::Create { process, record, is_queued, reply });
                }
                Job::Start { process, attempt } => parts.push(Part::Start { process, attempt }),
                Job::Delete { pid, reply } => deletes.push((pid, reply)),
                Job::Run { pid, query, reply } => match self.run_again(pid, query) {
                    Ok((process, record)) => {
                        processes.insert(pid, process);
                        ran.push((reply, record));
                    }
                    Err(error) => reply.send(Err(error)),
                },
                Job::Read(read) => reads.push(read),
            }
        }
        // After all that run again: from now on nothing that is idle begins to wait.
        for (pid, reply) in deletes {
            match self.check_idle(pid) {
                Ok(()) => parts.push(Part::Delete { pid, reply }),
                Err(error) => reply.send(Err(error)),
            }
        }
        self.commit_all(processes, parts, is_closing);
        for (reply, record) in ran {
            reply.send(Ok(record));
        }
        for read in reads {
            read(&self.connection, &self.file);
        }
    }

    /// Saves processes, and the last of them together with the jobs: so a process that is confirmed means that all that
    /// ended before are saved.
    fn commit_all(
        &mut self,
        processes: BTreeMap<u64, Arc<Process>>,
        jobs: Vec<Part>,
        is_closing: bool,
    ) {
        let mut parts = Vec::new();
        for process in processes.into_values() {
            if parts.len() == MOST_SAVES {
                self.commit(mem::take(&mut parts), is_closing);
            }
            parts.push(Part::Save(process));
        }
        parts.extend(jobs);
        self.commit(parts, is_closing);
    }

    /// Writes all parts at once, or each alone, and does what follows.
    fn commit(&mut self, mut parts: Vec<Part>, is_closing: bool) {
        if parts.is_empty() {
            return;
        }
        let written = self.write(&parts);
        match written {
            Ok(missing) => {
                self.tell_recovery();
                for part in parts {
                    self.written(part, &missing);
                }
            }
            Err(error) if parts.len() == 1 => {
                let message = self.tell_failure(&error);
                if let Some(part) = parts.pop() {
                    self.not_written(part, &message, is_closing);
                }
            }
            Err(_) => {
                for part in parts {
                    self.commit(vec![part], is_closing);
                }
            }
        }
    }

    /// Writes all parts in one transaction, or none. Gives the pids that there are not.
    fn write(&mut self, parts: &[Part]) -> rusqlite::Result<Vec<u64>> {
        let before = self.tally;
        let mut done = Written::default();
        let changes = self.changes.last_id();
        let written = self.write_rows(parts, changes, &mut done);
        if let Err(error) = written {
            // SQLite has rolled back by itself after some errors, and then says so with one more.
            let _ = self.connection.execute_batch("ROLLBACK");
            self.tally = before;
            for (process, mark) in done.taken.into_iter().rev() {
                process.give_back(mark);
            }
            return Err(error);
        }
        self.saved_changes = changes;
        self.idle.store(self.tally.idle, Ordering::Relaxed);
        Ok(done.missing)
    }

    fn write_rows(
        &mut self,
        parts: &[Part],
        changes: u64,
        done: &mut Written,
    ) -> rusqlite::Result<()> {
        let Self { connection, tally, .. } = self;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for part in parts {
            match part {
                Part::Create { process, is_queued, .. } => {
                    write::insert(connection, process, *is_queued, tally)?;
                    save_one(connection, process, tally, done)?;
                }
                Part::Start { process, .. } => write::hand_over(connection, process.pid)?,
                Part::Delete { pid, .. } => {
                    if !write::delete(connection, *pid, tally)? {
                        done.missing.push(*pid);
                    }
                }
                Part::Save(process) => save_one(connection, process, tally, done)?,
            }
        }
        if changes != self.saved_changes {
            write::set_changes(connection, changes)?;
        }
        connection.execute_batch("COMMIT")
    }

    /// The consequences of a part that is written.
    fn written(&self, part: Part, missing: &[u64]) {
        let inner = self.inner.upgrade();
        match part {
            Part::Create { process, record, is_queued, reply } => {
                if let Some(inner) = inner {
                    inner.created(&process, is_queued);
                }
                reply.send(Ok(*record));
            }
            Part::Start { process, attempt } => {
                if let Some(inner) = inner {
                    inner.hand_over(process, attempt);
                }
            }
            Part::Delete { pid, reply } => {
                if let Some(inner) = inner {
                    inner.forget(pid);
                }
                reply.send(if missing.contains(&pid) { Err(not_found(pid)) } else { Ok(()) });
            }
            Part::Save(process) => {
                if let Some(inner) = inner {
                    inner.saved(&process);
                }
            }
        }
    }

    /// The consequences of a part that the disk did not take.
    fn not_written(&mut self, part: Part, message: &str, is_closing: bool) {
        let inner = self.inner.upgrade();
        let problem = ProcessError::new(ProblemType::Internal, message);
        match part {
            Part::Create { is_queued, reply, .. } => {
                if let Some(inner) = inner {
                    inner.not_created(is_queued);
                }
                reply.send(Err(problem));
            }
            // It runs all the same: the log has said that its end may not be saved.
            Part::Start { process, attempt } => {
                if let Some(inner) = inner {
                    inner.hand_over(process, attempt);
                }
            }
            Part::Delete { reply, .. } => reply.send(Err(problem)),
            Part::Save(_) if is_closing => self.lost += 1,
            Part::Save(process) => self.shared.again(process),
        }
    }

    fn check_idle(&self, pid: u64) -> Result<(), ProcessError> {
        self.inner.upgrade().map_or(Ok(()), |inner| inner.check_idle(pid))
    }

    /// Queues an idle process, from memory or from its row.
    fn run_again(
        &self,
        pid: u64,
        query: RunQuery,
    ) -> Result<(Arc<Process>, ProcessRecord), ProcessError> {
        let Some(inner) = self.inner.upgrade() else { return Err(not_found(pid)) };
        if let Some(process) = inner.in_memory(pid) {
            return Ok((process, inner.queue_again(pid, query)?));
        }
        let found = read::resumable(&self.connection, pid).map_err(|error| {
            let message = format!("database '{}' cannot be read: {error}", self.file);
            ProcessError::new(ProblemType::Internal, message)
        })?;
        let found = found.ok_or_else(|| not_found(pid))?;
        if found.has_results && !query.force {
            return Err(ProcessError::has_results(pid));
        }
        let log = EventLog::resumed(found.last_event_id);
        let (timeout_ms, created_at, saver) = (found.timeout_ms, found.created_at, inner.saver());
        let process = Process::resumed(pid, found.code, timeout_ms, created_at, log, saver);
        let process = Arc::new(process);
        let record = inner.adopt(&process)?;
        Ok((process, record))
    }

    /// Forgets idle processes that are too many or too old. Gives the time when the next one is.
    fn forget_old(&mut self) -> Option<Instant> {
        let before = self.tally;
        let mut forgotten = Vec::new();
        match self.delete_old(&mut forgotten) {
            Ok(next) => {
                self.idle.store(self.tally.idle, Ordering::Relaxed);
                if let Some(inner) = self.inner.upgrade().filter(|_| !forgotten.is_empty()) {
                    for pid in forgotten {
                        inner.forget(pid);
                    }
                }
                next.map(|time| Instant::now() + time)
            }
            Err(error) => {
                // SQLite has rolled back by itself after some errors, and then says so with one more.
                let _ = self.connection.execute_batch("ROLLBACK");
                self.tally = before;
                self.tell_failure(&error);
                Some(Instant::now() + LONG_PAUSE)
            }
        }
    }

    fn delete_old(&mut self, forgotten: &mut Vec<u64>) -> rusqlite::Result<Option<Duration>> {
        let Self { connection, tally, retention, .. } = self;
        let longest = Duration::from_millis(retention.ms);
        let now = now_ms();
        let next = loop {
            let Some((pid, since)) = read::oldest(connection)? else { break None };
            let age = Duration::from_secs_f64((now - since).max(0.0) / 1e3);
            let is_few = tally.idle <= retention.count;
            let is_fresh = age < FRESH && tally.idle <= retention.count + retention.fresh;
            if age < longest && (is_few || is_fresh) {
                let limit = if is_few { longest } else { longest.min(FRESH) };
                break Some(limit.saturating_sub(age));
            }
            if forgotten.len() == MOST_FORGOTTEN {
                break Some(Duration::ZERO);
            }
            if forgotten.is_empty() {
                connection.execute_batch("BEGIN IMMEDIATE")?;
            }
            write::delete(connection, pid, tally)?;
            forgotten.push(pid);
        };
        if !forgotten.is_empty() {
            connection.execute_batch("COMMIT")?;
        }
        Ok(next)
    }

    /// The message of a failure, which the log has once.
    fn tell_failure(&mut self, error: &rusqlite::Error) -> String {
        let message = format!("database '{}' cannot be written: {error}", self.file);
        if !mem::replace(&mut self.is_failing, true) {
            (self.log)(&format!(
                "{message}; what ends meanwhile stays in memory and is saved later"
            ));
        }
        message
    }

    fn tell_recovery(&mut self) {
        if mem::take(&mut self.is_failing) {
            (self.log)(&format!("database '{}' can be written again", self.file));
        }
    }
}

fn save_one(
    connection: &Connection,
    process: &Arc<Process>,
    tally: &mut Tally,
    done: &mut Written,
) -> rusqlite::Result<()> {
    let Some((unsaved, mark)) = process.take_unsaved() else { return Ok(()) };
    done.taken.push((Arc::clone(process), mark));
    write::save(connection, &unsaved, tally)
}
