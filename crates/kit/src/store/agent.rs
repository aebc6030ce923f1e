//! The store of an agent: the file that has its state and its libraries.
//!
//! In: a file or memory, and the agent's name. Out: a place for [`State`](super::State) and
//! [`Libraries`](super::Libraries), which share one connection. Agents that share a file never see each other's rows.

use std::{path::PathBuf, sync::Arc, time::Duration};

use isolane::{HostError, NativeRun};
use rusqlite::{Connection, limits::Limit};

use super::{
    SHORT_BYTES, SHORT_MEMORY_BYTES,
    connection::{self, Opened, Place},
    line::{self, HOST, Line},
    sql_error,
    stop::Reason,
};
use crate::room::{self, Room};

/// The most memory of one call, bytes: all keys of a full state fit.
const MOST_CALL_BYTES: usize = 256 << 20;

/// The tables, as programs beside the kit may use them, too.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS agent_state (
        agent_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, modified_on TEXT NOT NULL,
        PRIMARY KEY (agent_id, key)
    );
    CREATE TABLE IF NOT EXISTS agent_libraries (
        agent_id TEXT NOT NULL, name TEXT NOT NULL, source TEXT NOT NULL, language TEXT NOT NULL,
        description TEXT NOT NULL, modified_on TEXT NOT NULL,
        PRIMARY KEY (agent_id, name)
    );
";

/// Statements that a file passes only if its tables are these.
const CHECKS: [&str; 2] = [
    "SELECT agent_id, key, value, modified_on FROM agent_state LIMIT 0",
    "SELECT agent_id, name, source, language, description, modified_on FROM agent_libraries LIMIT 0",
];

/// The options of a [`Store`].
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The file, which is made if it is missing; `None` for a store in memory.
    pub file: Option<PathBuf>,
    /// The owner of the rows. `default`.
    pub agent: String,
    /// The time limit of a call, milliseconds. 5,000.
    pub timeout_ms: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { file: None, agent: "default".to_owned(), timeout_ms: 5_000 }
    }
}

/// The store of an agent. All clones are one. It keeps no thread while it is not used.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    line: Line,
    agent: String,
    timeout: Duration,
    is_in_memory: bool,
}

impl Store {
    /// Opens a store, and makes its tables if they are missing.
    ///
    /// # Errors
    /// The file cannot be opened, is no database or has other tables of these names; the message names it. SQLite was
    /// in use before, see [`initialize`](super::initialize).
    pub fn open(options: &StoreOptions) -> Result<Self, HostError> {
        let place = Place {
            file: options.file.clone(),
            read_only: false,
            most_bytes: i64::MAX.unsigned_abs(),
        };
        let opened = Opened::at(&place)?;
        define(&opened.sqlite).map_err(|error| place.refused(error))?;
        let line = Line::new(opened);
        let timeout = super::timeout(options.timeout_ms);
        let (agent, is_in_memory) = (options.agent.clone(), options.file.is_none());
        Ok(Self(Arc::new(Inner { line, agent, timeout, is_in_memory })))
    }

    /// Stops all calls and closes the store. Later calls fail.
    pub fn close(&self) {
        self.0.line.close();
    }

    /// Puts a call into the line: `work`, for the rows of this agent. `kind` is the start of the names of errors.
    pub(super) fn call<T, W>(
        &self,
        run: Option<NativeRun>,
        kind: &'static str,
        work: W,
    ) -> impl Future<Output = Result<(T, Box<dyn Room + Send>), HostError>> + Send + use<T, W>
    where
        T: Send + 'static,
        W: FnOnce(&Connection, &str, &mut dyn Room) -> Result<T, Failure> + Send + 'static,
    {
        let inner = Arc::clone(&self.0);
        let timeout = inner.timeout;
        let number = run.as_ref().map_or(HOST, NativeRun::number);
        let outcome = self.0.line.call(number, timeout, move |opened, stop| {
            let mut room = room::of(run);
            let (done, _) = connection::run(opened, stop, MOST_CALL_BYTES, |opened| {
                limit_values(&opened.sqlite, i32::MAX)?;
                work(&opened.sqlite, &inner.agent, &mut *room)
            });
            match done {
                Ok(done) => Ok((done, room)),
                Err(failure) => Err(told(failure, kind, stop.reason(), timeout)),
            }
        });
        async move {
            match outcome.wait().await {
                Ok(done) => done,
                Err(line::Failure::Time) => Err(out_of_time(kind, timeout)),
                Err(line::Failure::Closed) => Err(super::closed()),
            }
        }
    }
}

impl Store {
    /// Whether no other connection can see it.
    pub(super) fn is_in_memory(&self) -> bool {
        self.0.is_in_memory
    }

    /// Does the work of a call that needs no connection, unless a call is served or waits.
    pub(super) fn while_free<T>(&self, work: impl FnOnce() -> Option<T>) -> Option<T> {
        self.0.line.while_free(work)
    }

    /// Does the work of a call at once, on this thread, if it is short and the connection is free. A call that writes to
    /// a file is not: it may wait for the disk. `None` if the call must be put into the line.
    pub(super) fn at_once<T>(
        &self,
        run: &NativeRun,
        kind: &str,
        writes: bool,
        work: impl FnOnce(&Connection, &str, &mut dyn Room) -> Result<T, Failure>,
    ) -> Option<Result<T, HostError>> {
        self.0.line.at_once(run.number(), |opened, stop| {
            if writes && !opened.is_in_memory {
                return None;
            }
            let mut room = room::of(Some(run.clone()));
            let (done, exceeded) = connection::run(opened, stop, SHORT_MEMORY_BYTES, |opened| {
                limit_values(&opened.sqlite, i32::try_from(SHORT_BYTES).unwrap_or(i32::MAX))?;
                work(&opened.sqlite, &self.0.agent, &mut *room)
            });
            match done {
                // The call is too long, or another connection writes. Nothing was done.
                Err(Failure::Sqlite(error)) if exceeded || sql_error::is_of_short(&error, stop) => {
                    None
                }
                done => Some(done.map_err(|failure| told(failure, kind, None, self.0.timeout))),
            }
        })
    }
}

/// A failure of a call.
#[derive(Debug)]
pub(super) enum Failure {
    /// As the caller is told.
    Told(HostError),
    /// As SQLite reports it.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Self::Told(error)
    }
}

fn told(failure: Failure, kind: &str, stopped: Option<Reason>, timeout: Duration) -> HostError {
    match (failure, stopped) {
        (_, Some(Reason::Time)) => out_of_time(kind, timeout),
        (Failure::Told(error), _) => error,
        (Failure::Sqlite(error), _) => HostError::new(format!("{kind}Error"), error.to_string()),
    }
}

/// Sets the longest value that statements handle; SQLite's own most is a billion bytes.
fn limit_values(sqlite: &Connection, bytes: i32) -> Result<(), Failure> {
    sqlite.set_limit(Limit::SQLITE_LIMIT_LENGTH, bytes)?;
    Ok(())
}

fn out_of_time(kind: &str, timeout: Duration) -> HostError {
    let text = format!("the call took longer than {} ms", timeout.as_millis());
    HostError::new(format!("{kind}Timeout"), text)
}

fn define(sqlite: &Connection) -> rusqlite::Result<()> {
    let known: i64 = sqlite.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE name IN ('agent_state', 'agent_libraries')",
        [],
        |row| row.get(0),
    )?;
    if known < 2 {
        sqlite.execute_batch(TABLES)?;
    }
    for check in CHECKS {
        sqlite.prepare(check)?;
    }
    Ok(())
}

/// Does `work` in a transaction that writes.
pub(super) fn writing<T>(
    sqlite: &Connection,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    sqlite.prepare_cached("BEGIN IMMEDIATE")?.raw_execute()?;
    let done = work()?;
    // Without this the line rolls back.
    sqlite.prepare_cached("COMMIT")?.raw_execute()?;
    Ok(done)
}
