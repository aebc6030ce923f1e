//! The tables of a database of processes.
//!
//! In: a connection. Out: tables of this version. `processes` has a row for each process; `events` has all that happened
//! in its last execution, and so its streams and its output, which are nowhere else. `counters` has the id of the last
//! change of all.

use rusqlite::Connection;

/// The mark of our databases in the head of the file: `Islp`.
pub(super) const APPLICATION: i32 = 0x4973_6C70;

/// The version of the tables. A service refuses a file with a higher one.
pub(super) const VERSION: i32 = 1;

/// The code comes last, so that a list reads none of it.
const TABLES: &str = "
    CREATE TABLE processes (
        pid INTEGER PRIMARY KEY AUTOINCREMENT,
        state INTEGER NOT NULL,
        exit_state TEXT,
        error TEXT,
        error_details TEXT,
        timeout_ms INTEGER,
        created_at INTEGER NOT NULL,
        started_at INTEGER,
        finished_at INTEGER,
        stdout_bytes INTEGER NOT NULL DEFAULT 0,
        stdout_truncated INTEGER NOT NULL DEFAULT 0,
        stderr_bytes INTEGER NOT NULL DEFAULT 0,
        stderr_truncated INTEGER NOT NULL DEFAULT 0,
        idle_place INTEGER,
        idle_since INTEGER,
        code TEXT NOT NULL
    ) STRICT;
    CREATE INDEX unfinished ON processes (pid) WHERE state <> 0;
    CREATE INDEX oldest ON processes (idle_place) WHERE state = 0;
    CREATE INDEX ends ON processes (exit_state, pid) WHERE state = 0;
    CREATE TABLE events (
        pid INTEGER NOT NULL,
        id INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (pid, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
    INSERT INTO counters VALUES ('changes', 0);
";

/// The state of a row. A process that was handed to the environment may have run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowState {
    Idle = 0,
    Queued = 1,
    HandedOver = 2,
}

/// Makes the tables of an empty file.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN; {TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT"
    ))
}
