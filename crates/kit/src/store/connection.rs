//! A connection to a database, set up for one kind of use.
//!
//! In: a file or memory, and limits. Out: a connection that waits, stops and commits as its call says, and, for foreign
//! SQL, one that keeps the rules.

#![expect(unsafe_code, reason = "SQLite's modules can be taken away only through its C interface")]

use std::{
    ffi::c_char,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use isolane::HostError;
use rusqlite::{
    Connection, ErrorCode, InterruptHandle, OpenFlags, config::DbConfig, ffi, limits::Limit,
};

use super::{
    files, functions,
    known::{self, KnownStatements},
    memory,
    rules::Rules,
    stop::Stop,
};

/// Instructions of SQLite's machine between two looks at the clock: some ten microseconds.
const STEPS: i32 = 1_000;

/// The longest pause between two tries to lock a database that another connection has locked.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The tries to lock a database while it is opened: about five seconds.
const OPENING_TRIES: i32 = 250;

/// The page cache of a connection, KiB.
const CACHE_KIB: u32 = 2_000;

/// The most pages that SQLite can have.
const MOST_PAGES: i64 = 0xFFFF_FFFE;

/// The modules of virtual tables that remain. SQLite adds its own `json_each` and `json_tree` when they are used.
const MODULES: [*const c_char; 3] = [c"fts5".as_ptr(), c"rtree".as_ptr(), std::ptr::null()];

/// The place of a database, and how it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The file; `None` for one in memory.
    pub(super) file: Option<PathBuf>,
    pub(super) read_only: bool,
    /// The most bytes of the file.
    pub(super) most_bytes: u64,
}

impl Place {
    /// The error of a place where no database can be opened. It is for the host, and names the file.
    pub(super) fn refused(&self, error: rusqlite::Error) -> HostError {
        let file = self.file.as_deref().unwrap_or(Path::new(":memory:")).display();
        let text = match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => format!("'{file}' is no SQLite database"),
            Some(ErrorCode::CannotOpen) => format!("'{file}' cannot be opened"),
            _ => format!("'{file}' cannot be opened: {error}"),
        };
        HostError::new("Error", text).with_source(error)
    }
}

/// A connection, and how its statements are interrupted.
pub(super) struct Opened {
    pub(super) sqlite: Connection,
    pub(super) rules: Rules,
    /// The statements of foreign SQL that it has run before.
    pub(super) known: KnownStatements,
    /// Whether no write waits for a disk.
    pub(super) is_in_memory: bool,
    pub(super) interrupt: Arc<InterruptHandle>,
}

impl Opened {
    /// Opens a database, and makes its file if that is missing.
    ///
    /// # Errors
    /// The file cannot be opened, or is no database. The message names it.
    pub(super) fn at(place: &Place) -> Result<Self, HostError> {
        isolane_sqlite::initialize()?;
        Self::open(place).map_err(|error| place.refused(error))
    }

    fn open(place: &Place) -> rusqlite::Result<Self> {
        let access = if place.read_only {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        } else {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let path = place.file.as_deref().unwrap_or(Path::new(":memory:"));
        let mut sqlite = Connection::open_with_flags_and_vfs(path, flags, files::NAME)?;
        hook(&mut sqlite)?;
        // This reads the file, and so finds out whether it is a database.
        let page_bytes: i64 = sqlite.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let pages: i64 = sqlite.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        sqlite.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        let most_bytes = i64::try_from(place.most_bytes).unwrap_or(i64::MAX);
        let most_pages = (most_bytes / page_bytes.max(512)).clamp(1, MOST_PAGES);
        let cache = format!("PRAGMA cache_size = -{CACHE_KIB}; PRAGMA foreign_keys = ON");
        sqlite.execute_batch(&cache)?;
        sqlite.query_row(&format!("PRAGMA max_page_count = {most_pages}"), [], |_| Ok(()))?;
        if pages == 0 && place.file.is_some() && !place.read_only {
            log_ahead(&sqlite)?;
        }
        let interrupt = Arc::new(sqlite.get_interrupt_handle());
        Ok(Self {
            sqlite,
            rules: Rules::default(),
            known: KnownStatements::default(),
            is_in_memory: place.file.is_none(),
            interrupt,
        })
    }

    /// Prepares the connection for foreign SQL, whose values have at most so many bytes.
    ///
    /// # Errors
    /// SQLite has no memory left.
    pub(super) fn restrict(&mut self, longest_value: i32) -> rusqlite::Result<()> {
        let sqlite = &mut self.sqlite;
        for (setting, value) in [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
            (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        ] {
            sqlite.set_db_config(setting, value)?;
        }
        for (limit, value) in [
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
            (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
            (Limit::SQLITE_LIMIT_FUNCTION_ARG, MOST_ARGUMENTS),
            (Limit::SQLITE_LIMIT_LENGTH, longest_value),
            (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, functions::MOST_PATTERN_BYTES),
            (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 20),
            (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, MOST_PARAMETERS),
            (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        ] {
            sqlite.set_limit(limit, value)?;
        }
        // SAFETY: the connection is open, and the list of names ends with null.
        let code =
            unsafe { ffi::sqlite3_drop_modules(sqlite.handle(), MODULES.as_ptr().cast_mut()) };
        if code != ffi::SQLITE_OK {
            return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        }
        functions::install(sqlite)?;
        sqlite.set_prepared_statement_cache_capacity(2 * known::MOST);
        let rules = self.rules.clone();
        sqlite.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| {
            rules.judge(&context)
        }))
    }
}

/// The most arguments of a function, and of one that takes paths if its values are long.
pub(super) const MOST_ARGUMENTS: i32 = 100;

/// The most parameters of a statement.
pub(super) const MOST_PARAMETERS: i32 = 32_766;

/// Has the connection wait for others, stop and commit as the call says that runs on its thread.
fn hook(sqlite: &mut Connection) -> rusqlite::Result<()> {
    sqlite.progress_handler(STEPS, Some(memory::is_stopped))?;
    sqlite.commit_hook(Some(|| !memory::may_commit()))?;
    sqlite.busy_handler(Some(|tries: i32| {
        let is_in_vain = !memory::is_bounded() && tries > OPENING_TRIES;
        if is_in_vain || memory::is_short() || memory::is_stopped() {
            return false;
        }
        let pause = Duration::from_millis(u64::from(tries.unsigned_abs()) + 1);
        thread::sleep(pause.min(LONGEST_PAUSE));
        true
    }))
}

/// Has a new database write ahead to a log, so that readers and a writer do not wait for each other.
fn log_ahead(sqlite: &Connection) -> rusqlite::Result<()> {
    let changed = sqlite.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
    match changed {
        // File systems without shared memory keep the journal that they can.
        Ok(mode) if mode != "wal" => Ok(()),
        Ok(_) => sqlite.execute_batch("PRAGMA synchronous = NORMAL"),
        // Another process opened the same new file, and does this.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Runs `work` for a call, with at most so much memory; returns also whether that was too little. A transaction that is
/// left open is rolled back.
pub(super) fn run<T>(
    opened: &Opened,
    stop: &Arc<Stop>,
    most_bytes: usize,
    work: impl FnOnce(&Opened) -> T,
) -> (T, bool) {
    // A call that panicked may have left one open.
    roll_back(opened);
    let done = memory::bounded(stop, most_bytes, || work(opened));
    roll_back(opened);
    done
}

fn roll_back(opened: &Opened) {
    if !opened.sqlite.is_autocommit() {
        let rolled_back = opened.rules.trusting(|| opened.sqlite.execute_batch("ROLLBACK"));
        // It fails only if SQLite has rolled back by itself.
        debug_assert!(rolled_back.is_ok() || opened.sqlite.is_autocommit());
    }
}
