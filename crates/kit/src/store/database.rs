//! The capability `db`: SQL over one database.
//!
//! In: `sql`, `batch` and `schema` of runs, or of the host. Out: rows and changes as messages, or errors by name.
//!
//! - Each call is a transaction. It waits for others, also of other processes, within its time limit.
//! - A call that is stopped, by its time limit or because its run ended, writes nothing. Its caller is told at most
//!   200 ms after the limit. SQLite looks at the clock in loops, when it asks for memory, and in our functions (see
//!   `functions.rs`). It does not between the steps of one expression: a statement of 1 MB with tens of thousands of
//!   comparisons of 16 MiB each can go on for seconds after its caller was told, and its connection stays busy.
//! - A statement that took little time before is tried on its caller's thread, with a small part of all limits. If it
//!   exceeds one, or would wait for another connection or a disk, it is undone and put into the line.
//! - [`DatabaseLimits::max_statement_bytes`] counts what SQLite allocates for a call, its temporary tables and sorting
//!   too, and the pages that it reads while the page cache (2 MB) fills. The parameters count for the run, and the
//!   answer does.
//! - A statement that uses `json_patch` or `snippet`, or a JSON function with more than nine arguments among its paths,
//!   handles only shorter values: their time grows with the square of the length.

use std::{path::PathBuf, sync::Arc, time::Duration};

use isolane::{
    Completion, HostError, NativeAnswer, NativeCall, NativeFunction, NativeMode, NativeRun, Value,
    value::{Event, Str, Writer},
};

use rusqlite::ffi::{SQLITE_CORRUPT_VTAB, SQLITE_ERROR};

use super::{
    SHORT_BYTES, SHORT_MEMORY_BYTES,
    answer::{self, Column, Table},
    connection::{self, Opened, Place},
    line::{self, HOST, Line},
    no_room,
    params::Params,
    sql_error::{self, Circumstances},
    statement::{self, Failure},
    stop::Stop,
};
use crate::{
    room::{self, Room},
    wtf8::ILL_FORMED,
};

/// The limits of a [`Database`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseLimits {
    /// The most rows of a result; a longer one is truncated. 1,000.
    pub max_rows: u64,
    /// The most bytes of a result; a larger one is truncated. 16 MiB.
    pub max_result_bytes: u64,
    /// The most bytes of one value, and of one row. 16 MiB.
    pub max_value_bytes: u64,
    /// The most memory of one call, bytes. 64 MiB.
    pub max_statement_bytes: u64,
    /// The most bytes of the database. A larger one that exists only cannot grow. 256 MiB.
    pub max_file_bytes: u64,
    /// The time limit of a call, milliseconds. 5,000.
    pub timeout_ms: u64,
}

impl Default for DatabaseLimits {
    fn default() -> Self {
        Self {
            max_rows: 1_000,
            max_result_bytes: 16 << 20,
            max_value_bytes: 16 << 20,
            max_statement_bytes: 64 << 20,
            max_file_bytes: 256 << 20,
            timeout_ms: 5_000,
        }
    }
}

impl DatabaseLimits {
    pub(super) fn most_rows(&self) -> u32 {
        u32::try_from(self.max_rows).unwrap_or(u32::MAX)
    }

    pub(super) fn most_result_bytes(&self) -> usize {
        usize::try_from(self.max_result_bytes).unwrap_or(usize::MAX)
    }

    /// The longest value as SQLite takes it. Its own most is a billion bytes.
    pub(super) fn longest_value(&self) -> i32 {
        i32::try_from(self.max_value_bytes).unwrap_or(i32::MAX).min(1_000_000_000)
    }

    fn most_statement_bytes(&self) -> usize {
        usize::try_from(self.max_statement_bytes).unwrap_or(usize::MAX)
    }

    fn timeout(&self) -> Duration {
        super::timeout(self.timeout_ms)
    }
}

/// The options of a [`Database`].
#[derive(Clone, Debug, Default)]
pub struct DatabaseOptions {
    /// The file, which is made if it is missing; `None` for a database in memory.
    pub file: Option<PathBuf>,
    /// Whether nothing may be written. The file must exist.
    pub read_only: bool,
    /// The limits.
    pub limits: DatabaseLimits,
}

/// A database for foreign SQL. All clones are one. It keeps no thread while it is not used.
#[derive(Clone)]
pub struct Database(Arc<Inner>);

struct Inner {
    line: Line,
    limits: DatabaseLimits,
    read_only: bool,
}

/// A function of `db`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatabaseFunction {
    /// `sql(sql, params?)`
    Sql,
    /// `batch([[sql, params?], …])`
    Batch,
    /// `schema()`
    Schema,
}

impl Database {
    /// Opens a database.
    ///
    /// # Errors
    /// The file cannot be opened or is no database; the message names it. SQLite was in use before, see
    /// [`initialize`](super::initialize).
    pub fn open(options: &DatabaseOptions) -> Result<Self, HostError> {
        let limits = options.limits;
        let mut opened = Opened::at(&Place {
            file: options.file.clone(),
            read_only: options.read_only,
            most_bytes: limits.max_file_bytes,
        })?;
        opened
            .restrict(limits.longest_value())
            .map_err(|error| HostError::new("Error", error.to_string()))?;
        let line = Line::new(opened);
        Ok(Self(Arc::new(Inner { line, limits, read_only: options.read_only })))
    }

    /// The functions for the sandbox, by their names in `db`.
    #[must_use]
    pub fn functions(&self) -> [(&'static str, Arc<dyn NativeFunction>); 3] {
        let native = |function| -> Arc<dyn NativeFunction> {
            Arc::new(Native { database: self.clone(), function })
        };
        [
            ("sql", native(DatabaseFunction::Sql)),
            ("batch", native(DatabaseFunction::Batch)),
            ("schema", native(DatabaseFunction::Schema)),
        ]
    }

    /// Calls a function for the host, as the sandbox does: `args` is the array of its arguments. The future runs in
    /// tokio, with its clock; dropping it stops the call.
    ///
    /// # Errors
    /// The error that the sandbox would be thrown.
    pub async fn call(&self, function: DatabaseFunction, args: Value) -> Completion {
        self.begin(function, args, None).await
    }

    /// Stops all calls and closes the database. Later calls fail.
    pub fn close(&self) {
        self.0.line.close();
    }

    /// Serves a statement at once, if it was short when it was run before and the connection is free.
    fn at_once(
        &self,
        function: DatabaseFunction,
        call: &NativeCall,
    ) -> Option<Result<Value, HostError>> {
        if function != DatabaseFunction::Sql || call.args.held_bytes() > SHORT_BYTES {
            return None;
        }
        self.0.line.at_once(call.run.number(), |opened, stop| {
            let mut room = room::of(Some(call.run.clone()));
            self.0.answer_at_once(opened, stop, &call.args, &mut *room)
        })
    }

    /// Puts a call into the line.
    fn begin(
        &self,
        function: DatabaseFunction,
        args: Value,
        run: Option<NativeRun>,
    ) -> impl Future<Output = Completion> + Send + use<> {
        let inner = Arc::clone(&self.0);
        let timeout = inner.limits.timeout();
        let number = run.as_ref().map_or(HOST, NativeRun::number);
        let outcome = self.0.line.call(number, timeout, move |opened, stop| {
            let mut room = room::of(run);
            let completion = inner.answer(opened, stop, function, &args, &mut *room);
            (completion.map_err(super::thrown), room)
        });
        async move {
            match outcome.wait().await {
                // The charges of the room end when the answer is handed over.
                Ok((completion, _room)) => completion,
                Err(line::Failure::Time) => Err(sql_error::timeout(timeout).to_value()),
                Err(line::Failure::Closed) => Err(super::closed().to_value()),
            }
        }
    }
}

/// A function of `db` for the sandbox.
struct Native {
    database: Database,
    function: DatabaseFunction,
}

impl NativeFunction for Native {
    fn name(&self) -> &str {
        match self.function {
            DatabaseFunction::Sql => "db.sql",
            DatabaseFunction::Batch => "db.batch",
            DatabaseFunction::Schema => "db.schema",
        }
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        if let Some(done) = self.database.at_once(self.function, &call) {
            return done.map_err(super::thrown).into();
        }
        NativeAnswer::later(self.database.begin(self.function, call.args, Some(call.run)))
    }
}

/// A statement and its parameters.
type Step = (String, Params);

impl Inner {
    /// Serves a call, on the thread of the line.
    fn answer(
        &self,
        opened: &Opened,
        stop: &Arc<Stop>,
        function: DatabaseFunction,
        args: &Value,
        room: &mut dyn Room,
    ) -> Result<Value, HostError> {
        // The parameters are copied once for SQLite. Their parts are charged while they are read.
        if !room.take(args.held_bytes()) {
            return Err(no_room());
        }
        let steps = match function {
            DatabaseFunction::Sql => vec![step(args, "db.sql(sql, params?)", room)?],
            DatabaseFunction::Batch => steps(args, room)?,
            DatabaseFunction::Schema => Vec::new(),
        };
        let mut serve = || {
            connection::run(opened, stop, self.limits.most_statement_bytes(), |opened| {
                match function {
                    DatabaseFunction::Sql => sql(opened, &steps, &self.limits, room),
                    DatabaseFunction::Batch => self.batch(opened, &steps, room),
                    DatabaseFunction::Schema => schema(opened, self.limits.longest_value(), room),
                }
            })
        };
        let mut served = serve();
        if matches!(served.0, Err(Failure::Changed)) {
            opened.known.forget_all();
            served = serve();
        }
        let (done, exceeded) = served;
        done.map_err(|failure| self.error(failure, opened, stop, exceeded))
    }

    /// Serves a statement on its caller's thread; `None` if it takes too long there.
    fn answer_at_once(
        &self,
        opened: &Opened,
        stop: &Arc<Stop>,
        args: &Value,
        room: &mut dyn Room,
    ) -> Option<Result<Value, HostError>> {
        if !room.take(args.held_bytes()) {
            return Some(Err(no_room()));
        }
        let step = match step(args, "db.sql(sql, params?)", room) {
            Ok(step) => step,
            Err(error) => return Some(Err(error)),
        };
        let known = opened.known.find(&step.0)?;
        if !known.is_short || known.is_write && !opened.is_in_memory {
            return None;
        }
        let limits = DatabaseLimits {
            max_value_bytes: self.limits.max_value_bytes.min(SHORT_BYTES as u64),
            ..self.limits
        };
        let (done, exceeded) = connection::run(opened, stop, SHORT_MEMORY_BYTES, |opened| {
            sql(opened, std::slice::from_ref(&step), &limits, room)
        });
        match done {
            Err(Failure::Changed) => None,
            Err(Failure::Sqlite(error, _)) if exceeded || sql_error::is_of_short(&error, stop) => {
                opened.known.is_long(&step.0);
                None
            }
            done => Some(done.map_err(|failure| self.error(failure, opened, stop, exceeded))),
        }
    }

    fn error(&self, failure: Failure, opened: &Opened, stop: &Stop, exceeded: bool) -> HostError {
        let (error, longest_value) = match failure {
            Failure::Told(error) => return error,
            Failure::NoRoom => return no_room(),
            Failure::Changed => return sql_error::mistake("the schema changed meanwhile"),
            Failure::Sqlite(error, longest_value) => (error, longest_value),
        };
        let at = Circumstances {
            stopped: stop.reason(),
            memory_exceeded: exceeded,
            refusal: opened.rules.found().refusal,
            timeout: stop.limit(),
            longest_value,
            most_bytes: self.limits.most_statement_bytes(),
            most_file_bytes: self.limits.max_file_bytes,
        };
        sql_error::translated(&error, &at)
    }

    fn batch(&self, opened: &Opened, steps: &[Step], room: &mut dyn Room) -> Answered {
        let longest = self.limits.longest_value();
        let own = |sql| {
            opened
                .rules
                .trusting(|| opened.sqlite.execute_batch(sql))
                .map_err(|error| Failure::Sqlite(error, longest))
        };
        own(if self.read_only { "BEGIN" } else { "BEGIN IMMEDIATE" })?;
        let mut writer = Writer::new();
        writer.array(u32::try_from(steps.len()).unwrap_or(u32::MAX));
        for (sql, params) in steps {
            statement::run(opened, sql, params, &self.limits, &mut writer, room)?;
        }
        own("COMMIT")?;
        Ok(writer.finish())
    }
}

/// Reads `[sql, params?]`.
fn step(args: &Value, usage: &str, room: &mut dyn Room) -> Result<Step, HostError> {
    let wrong = || HostError::new("TypeError", format!("{usage} takes a string first"));
    let mut parts = room::elements(args, room).ok_or_else(wrong)?.into_iter();
    let sql = parts.next().ok_or_else(wrong)?;
    let Ok(Event::String(sql)) = sql.reader().event() else { return Err(wrong()) };
    // With replaced surrogates it would name other tables and hold other texts.
    let Str::Utf8(sql) = sql else {
        return Err(HostError::new("TypeError", format!("a statement {ILL_FORMED}")));
    };
    let params = parts.next().unwrap_or_else(Value::undefined);
    Ok((sql.to_owned(), Params::read(&params, room)?))
}

/// Reads `[[[sql, params?], …]]`.
fn steps(args: &Value, room: &mut dyn Room) -> Result<Vec<Step>, HostError> {
    let wrong = || {
        HostError::new("TypeError", "db.batch takes an array of statements: [[sql, params?], …]")
    };
    let args = room::elements(args, room).ok_or_else(wrong)?;
    let steps = args.first().and_then(|steps| room::elements(steps, room)).ok_or_else(wrong)?;
    let mut read = Vec::new();
    for given in &steps {
        if !matches!(given.reader().event(), Ok(Event::Array(_))) {
            return Err(wrong());
        }
        read.push(step(given, "each [sql, params?] of db.batch", room)?);
    }
    Ok(read)
}

fn sql(opened: &Opened, steps: &[Step], limits: &DatabaseLimits, room: &mut dyn Room) -> Answered {
    let mut writer = Writer::new();
    for (sql, params) in steps {
        statement::run(opened, sql, params, limits, &mut writer, room)?;
    }
    Ok(writer.finish())
}

type Answered = Result<Value, Failure>;

/// The tables by name, without those of SQLite and of its virtual tables.
fn schema(opened: &Opened, longest: i32, room: &mut dyn Room) -> Answered {
    let tables = opened
        .rules
        .trusting(|| tables(&opened.sqlite))
        .map_err(|error| Failure::Sqlite(error, longest))?;
    answer::schema(&tables, room).map_err(|answer::NoRoom| Failure::NoRoom)
}

fn tables(sqlite: &rusqlite::Connection) -> rusqlite::Result<Vec<Table>> {
    // All in one transaction, so that the parts belong together. `run` ends it.
    sqlite.execute_batch("BEGIN")?;
    let mut listed = sqlite.prepare(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')
         AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name",
    )?;
    let names: Vec<String> =
        listed.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut described = sqlite.prepare(
        "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid",
    )?;
    let mut tables = Vec::with_capacity(names.len());
    for name in names {
        let column = |row: &rusqlite::Row<'_>| {
            Ok(Column {
                name: row.get(0)?,
                kind: row.get(1)?,
                is_not_null: row.get(2)?,
                is_primary_key: row.get::<_, i64>(3)? > 0,
            })
        };
        let listed = described.query_map([&name], column);
        let columns = readable(listed.and_then(Iterator::collect))?.unwrap_or_default();
        let quoted = name.replace('"', "\"\"");
        let count = format!("SELECT count(*) FROM main.\"{quoted}\"");
        let row_count = readable(sqlite.query_row(&count, [], |row| row.get(0)))?;
        tables.push(Table { name, columns, row_count });
    }
    Ok(tables)
}

/// The reading of a table, or `None` if its definition is broken: the virtual table reads one that was dropped, or its
/// module is not there.
fn readable<T>(read: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    use rusqlite::Error::{SqlInputError, SqliteFailure};
    match read {
        Err(SqliteFailure(error, _) | SqlInputError { error, .. })
            if matches!(error.extended_code, SQLITE_ERROR | SQLITE_CORRUPT_VTAB) =>
        {
            Ok(None)
        }
        read => read.map(Some),
    }
}
