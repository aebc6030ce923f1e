//! The database of a process service: all that must outlive the service, in one file of SQLite.
//!
//! In: processes that have changed, and questions about those that are not in memory. Out: rows, and answers. One thread,
//! that of `writer`, has the only connection; `queue` is its work. Changes wait in the processes themselves,
//! whose size is bounded, so a slow disk costs no memory. `open` has the file, `schema` the tables, `write` and `read` the
//! rows.

mod open;
mod queue;
mod read;
mod schema;
mod values;
mod write;
mod writer;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use isolane::{Error, ErrorKind};
use rusqlite::Connection;
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

pub(crate) use self::queue::Saver;
use self::{
    queue::{Job, Reply, Shared},
    write::Tally,
    writer::Writer,
};
use crate::{
    EventKind, ListQuery, ProblemType, ProcessError, ProcessEvent, ProcessList, ProcessRecord,
    RunQuery, options::Log, process::Process, service::inner::Inner,
};

/// Calls that wait for the thread at once; further ones wait before they hand anything over.
const MOST_WAITING: usize = 256;

/// Ids of events that a service leaves out after a start: an earlier one may have given them out, and not saved that. A
/// reader that resumes behind such an id gets all that comes later.
const IDS_LEFT_OUT: u64 = 1 << 20;

/// A database that is open.
#[derive(Debug)]
pub(crate) struct Database {
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
    idle: Arc<AtomicU64>,
}

/// A database whose thread has not begun.
pub(crate) struct OpenDatabase {
    connection: Connection,
    shared: Arc<Shared>,
    idle: Arc<AtomicU64>,
    file: String,
    tally: Tally,
    /// The highest pid that was ever used.
    pub(crate) last_pid: u64,
    /// The id of the last change of all.
    pub(crate) changes: u64,
}

impl Database {
    /// Opens a file, and ends what an earlier service has not finished.
    ///
    /// # Errors
    /// As `open`.
    pub(crate) fn open(path: &Path) -> Result<(Self, OpenDatabase), Error> {
        let connection = open::open(path)?;
        let prepared = || {
            let mut tally = read::tally(&connection)?;
            write::end_unfinished(&connection, &mut tally)?;
            Ok((tally, read::last_pid(&connection)?, read::changes(&connection)?))
        };
        let file = path.display().to_string();
        let (tally, last_pid, changes) = prepared().map_err(|error: rusqlite::Error| {
            let message = format!("database '{file}' cannot be opened: {error}");
            Error::new(ErrorKind::Internal, message)
        })?;
        let (shared, idle) = (Arc::<Shared>::default(), Arc::new(AtomicU64::new(tally.idle)));
        let permits = Arc::new(Semaphore::new(MOST_WAITING));
        let database = Self { shared: Arc::clone(&shared), permits, idle: Arc::clone(&idle) };
        let changes = if last_pid == 0 { 0 } else { changes + IDS_LEFT_OUT };
        Ok((database, OpenDatabase { connection, shared, idle, file, tally, last_pid, changes }))
    }

    /// For processes, which say that they have changed.
    pub(crate) fn saver(&self) -> Saver {
        Saver::new(&self.shared)
    }

    /// The number of idle processes that it has.
    pub(crate) fn idle(&self) -> u64 {
        self.idle.load(Ordering::Relaxed)
    }

    /// The right to hand one thing over.
    pub(crate) async fn permit(&self) -> OwnedSemaphorePermit {
        // The semaphore is never closed.
        Arc::clone(&self.permits).acquire_owned().await.unwrap_or_else(|_| unreachable!())
    }

    /// Saves a new process. The service gets it when it is saved; then this settles.
    pub(crate) async fn create(
        &self,
        permit: OwnedSemaphorePermit,
        process: Arc<Process>,
        record: ProcessRecord,
        is_queued: bool,
    ) -> Result<ProcessRecord, ProcessError> {
        let record = Box::new(record);
        self.ask(permit, |reply| Job::Create { process, record, is_queued, reply }).await
    }

    /// Notes that the environment gets a process, and then hands the process over.
    pub(crate) fn start(&self, process: Arc<Process>, attempt: u64) {
        self.shared.push(Job::Start { process, attempt });
    }

    pub(crate) async fn run(
        &self,
        pid: u64,
        query: RunQuery,
    ) -> Result<ProcessRecord, ProcessError> {
        self.ask(self.permit().await, |reply| Job::Run { pid, query, reply }).await
    }

    pub(crate) async fn delete(&self, pid: u64) -> Result<(), ProcessError> {
        self.ask(self.permit().await, |reply| Job::Delete { pid, reply }).await
    }

    pub(crate) async fn record(&self, pid: u64) -> Result<ProcessRecord, ProcessError> {
        self.of(pid, move |connection| read::record(connection, pid, true)).await
    }

    pub(crate) async fn code(&self, pid: u64) -> Result<String, ProcessError> {
        self.of(pid, move |connection| read::code(connection, pid)).await
    }

    /// The text of a stream.
    pub(crate) async fn text(&self, pid: u64, stream: EventKind) -> Result<String, ProcessError> {
        self.of(pid, move |connection| read::text(connection, pid, stream)).await
    }

    pub(crate) async fn output(&self, pid: u64) -> Result<Map<String, Value>, ProcessError> {
        self.of(pid, move |connection| read::output_of(connection, pid)).await
    }

    /// The next events after that id, some at once.
    pub(crate) async fn events(
        &self,
        pid: u64,
        after: u64,
    ) -> Result<Vec<ProcessEvent>, ProcessError> {
        self.of(pid, move |connection| read::events(connection, pid, after)).await
    }

    /// The id of the last event, and whether the execution has ended.
    pub(crate) async fn last_event(&self, pid: u64) -> Result<(u64, bool), ProcessError> {
        self.of(pid, move |connection| read::last_event(connection, pid)).await
    }

    /// A page of the processes here and in memory. On the thread no process leaves the memory meanwhile.
    pub(crate) async fn list(
        &self,
        inner: Arc<Inner>,
        query: ListQuery,
    ) -> Result<ProcessList, ProcessError> {
        let most = query.limit + 1;
        self.read(move |connection| {
            let (mut items, known) = inner.list_in_memory(query, most);
            if query.state.is_none_or(|state| state == crate::ProcessState::Idle) {
                items.extend(read::list(connection, query, most, |pid| known.contains(&pid))?);
            }
            items.sort_unstable_by_key(|record| std::cmp::Reverse(record.pid));
            let is_more = items.len() > query.limit;
            items.truncate(query.limit);
            let next = items.last().filter(|_| is_more).map(|last| last.pid);
            Ok(ProcessList { items, next })
        })
        .await
    }

    /// Saves everything, and gives the file back.
    pub(crate) async fn close(&self) {
        let (sender, closed) = oneshot::channel();
        self.shared.close(Some(sender));
        // The thread drops the sender if it has ended before.
        let _ = closed.await;
    }

    /// A part of a process, or the problem that there is no such process.
    async fn of<T: Send + 'static>(
        &self,
        pid: u64,
        read: impl FnOnce(&Connection) -> rusqlite::Result<Option<T>> + Send + 'static,
    ) -> Result<T, ProcessError> {
        self.read(read).await?.ok_or_else(|| not_found(pid))
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ProcessError> {
        let job = |reply: Reply<T>| {
            Job::Read(Box::new(move |connection, file| {
                if !reply.is_closed() {
                    reply.send(read(connection).map_err(|error| {
                        let message = format!("database '{file}' cannot be read: {error}");
                        ProcessError::new(ProblemType::Internal, message)
                    }));
                }
            }))
        };
        self.ask(self.permit().await, job).await
    }

    async fn ask<T>(
        &self,
        permit: OwnedSemaphorePermit,
        job: impl FnOnce(Reply<T>) -> Job,
    ) -> Result<T, ProcessError> {
        let (sender, answer) = oneshot::channel();
        self.shared.push(job(Reply::new(sender, permit)));
        answer.await.unwrap_or_else(|_| {
            let message = "the service has shut down, and its database is closed";
            Err(ProcessError::new(ProblemType::ShuttingDown, message))
        })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.shared.close(None);
    }
}

impl OpenDatabase {
    /// Begins to work for a service.
    ///
    /// # Errors
    /// The system has no thread.
    pub(crate) fn start(self, inner: &Arc<Inner>, log: Log) -> Result<(), Error> {
        let Self { connection, shared, idle, file, tally, .. } = self;
        let options = &inner.options;
        let writer = Writer {
            connection,
            shared,
            idle,
            file,
            tally,
            log,
            inner: Arc::downgrade(inner),
            changes: Arc::clone(&inner.changes),
            saved_changes: 0,
            retention: writer::Retention {
                count: options.retain_count as u64,
                fresh: options.concurrency as u64,
                ms: options.retain_ms,
            },
            is_failing: false,
            lost: 0,
        };
        let thread = thread::Builder::new().name("isolane-database".to_owned());
        thread.spawn(move || writer.run()).map(drop).map_err(|error| {
            Error::new(
                ErrorKind::Internal,
                format!("the thread of the database cannot start: {error}"),
            )
        })
    }
}

pub(crate) fn not_found(pid: u64) -> ProcessError {
    ProcessError::new(ProblemType::NotFound, format!("there is no process {pid}"))
}
