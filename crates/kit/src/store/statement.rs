//! A statement of foreign SQL.
//!
//! In: SQL of one statement and its parameters. Out: its rows and changes, in a message, or the error that the sandbox
//! is given.

#![expect(
    unsafe_code,
    reason = "the last inserted row can be forgotten only through SQLite's C interface"
)]

use std::time::Instant;

use isolane::{HostError, value::Writer};
use rusqlite::{
    Batch, Connection, Statement, StatementStatus, fallible_iterator::FallibleIterator, ffi,
    limits::Limit,
};

use super::{
    answer::{Answer, Changes, RowLimits, RowsError},
    connection::{MOST_ARGUMENTS, Opened},
    known::{self, Known},
    params::{BindError, Params},
    rules::{Facts, first_word, refused_word},
    sql_error::{blocked, limit, mistake},
    stop::SHORT,
};
use crate::room::Room;

/// The longest SQL, bytes.
pub(super) const MOST_SQL_BYTES: usize = 1_000_000;

/// The most arguments of a function that looks up paths, if its values may be long.
const FEW_ARGUMENTS: i32 = 9;

/// The longest value of a statement in which a function looks up many paths. Each path may be looked for in the whole
/// value, and SQLite interrupts no function.
const LONGEST_WITH_PATHS: i32 = 256 << 10;

/// A failure of a statement.
#[derive(Debug)]
pub(super) enum Failure {
    /// As the sandbox is told.
    Told(HostError),
    /// As SQLite reports it; the longest value that this statement handles.
    Sqlite(rusqlite::Error, i32),
    /// The schema is another one than when the statement was judged. Nothing was done.
    Changed,
    /// The run ends as `memory`.
    NoRoom,
}

/// Runs a statement and writes its answer.
pub(super) fn run(
    opened: &Opened,
    sql: &str,
    params: &Params,
    limits: &super::DatabaseLimits,
    writer: &mut Writer,
    room: &mut dyn Room,
) -> Result<(), Failure> {
    if sql.len() > MOST_SQL_BYTES {
        return Err(Failure::Told(limit(format!("the SQL is larger than {MOST_SQL_BYTES} bytes"))));
    }
    if sql.contains('\0') {
        return Err(Failure::Told(mistake("the SQL has a NUL character")));
    }
    if let Some(refusal) = refused_word(sql) {
        return Err(Failure::Told(blocked(refusal)));
    }
    let sqlite = &opened.sqlite;
    let longest = limits.longest_value();
    sqlite
        .set_limit(Limit::SQLITE_LIMIT_LENGTH, longest)
        .map_err(|error| Failure::Sqlite(error, longest))?;
    let started = Instant::now();
    let rows = RowLimits { most_rows: limits.most_rows(), most_bytes: limits.most_result_bytes() };
    if let Some(known) = opened.known.find(sql) {
        opened.rules.expect(known.facts);
        let longest = longest.min(known.longest);
        let done = sqlite
            .prepare_cached(sql)
            .map_err(|error| Failure::Sqlite(error, longest))
            .and_then(|mut statement| {
                bound_and_run(sqlite, &mut statement, params, longest, rows, writer, room)
            });
        if done.is_err() && opened.rules.found().has_changed {
            return Err(Failure::Changed);
        }
        let is_short = done.is_ok() && started.elapsed() < SHORT;
        opened.known.keep(sql, Known { is_short, ..known }, 0);
        return done;
    }
    let (mut statement, facts) = judged(opened, sql, longest)?;
    let longest = restricted(opened, sql, facts, longest)?;
    let is_kept = known::is_of_rows(first_word(sql));
    let done = bound_and_run(sqlite, &mut statement, params, longest, rows, writer, room);
    if !is_kept {
        opened.known.forget_all();
    } else if done.is_ok() && known::is_kept(sql) {
        let is_short = started.elapsed() < SHORT;
        let known = Known { facts, longest, is_write: !statement.readonly(), is_short };
        opened.known.keep(sql, known, statement.get_status(StatementStatus::MemUsed));
    }
    done
}

/// Prepares a statement that is not known yet.
fn judged<'c>(
    opened: &'c Opened,
    sql: &str,
    longest: i32,
) -> Result<(Statement<'c>, Facts), Failure> {
    opened.rules.begin();
    let mut statements = Batch::new(&opened.sqlite, sql);
    let first = statements.next().map_err(|error| Failure::Sqlite(error, longest))?;
    let Some(statement) = first else {
        return Err(Failure::Told(mistake("no statement")));
    };
    let facts = opened.rules.found().facts;
    // Whatever SQLite says about a second one, this one is the mistake.
    if !matches!(statements.next(), Ok(None)) {
        return Err(Failure::Told(mistake("one statement a call")));
    }
    Ok((statement, facts))
}

/// Binds the parameters, runs the statement, and writes its answer.
fn bound_and_run(
    sqlite: &Connection,
    statement: &mut Statement<'_>,
    params: &Params,
    longest: i32,
    rows: RowLimits,
    writer: &mut Writer,
    room: &mut dyn Room,
) -> Result<(), Failure> {
    let fails = |error| Failure::Sqlite(error, longest);
    sqlite.set_limit(Limit::SQLITE_LIMIT_LENGTH, longest).map_err(fails)?;
    match params.bind(statement) {
        Ok(()) => {}
        Err(BindError::Mistake(error)) => return Err(Failure::Told(error)),
        Err(BindError::Sqlite(error)) => return Err(fails(error)),
    }
    step(sqlite, statement, rows, writer, room).map_err(|error| match error {
        RowsError::NoRoom => Failure::NoRoom,
        RowsError::Sqlite(error) => fails(error),
    })
}

/// The longest value with which all functions of a statement stay quick.
fn restricted(opened: &Opened, sql: &str, mut facts: Facts, longest: i32) -> Result<i32, Failure> {
    if facts.has_paths && has_many_arguments(&opened.sqlite, sql) {
        facts.limit_values(LONGEST_WITH_PATHS);
    }
    match facts.longest_value {
        // Nobody looks at the functions of a table again when it is used.
        Some(_) if facts.defines => Err(Failure::Told(blocked(
            "a function that may take long is not allowed in the definition of a table or an index",
        ))),
        Some(shorter) => Ok(longest.min(shorter)),
        None => Ok(longest),
    }
}

/// Whether a function of the statement has more than a few arguments.
fn has_many_arguments(sqlite: &Connection, sql: &str) -> bool {
    let few = sqlite.set_limit(Limit::SQLITE_LIMIT_FUNCTION_ARG, FEW_ARGUMENTS);
    let prepared = Batch::new(sqlite, sql).next().map(drop);
    let many = sqlite.set_limit(Limit::SQLITE_LIMIT_FUNCTION_ARG, MOST_ARGUMENTS);
    prepared.is_err() || few.is_err() || many.is_err()
}

fn step(
    sqlite: &Connection,
    statement: &mut Statement<'_>,
    limits: RowLimits,
    writer: &mut Writer,
    room: &mut dyn Room,
) -> Result<(), RowsError> {
    let is_write = !statement.readonly();
    let before = sqlite.total_changes();
    // SAFETY: the connection is open.
    unsafe { ffi::sqlite3_set_last_insert_rowid(sqlite.handle(), 0) };
    let mut answer = Answer::new(writer, room)?;
    if is_write && statement.column_count() == 0 {
        let mut rows = statement.raw_query();
        while rows.next()?.is_some() {}
    } else {
        answer.rows(statement, limits, is_write)?;
    }
    if is_write {
        // SQLite keeps the last count if a statement changes no rows.
        let changed = sqlite.total_changes() != before;
        answer.changes(Changes {
            changes: if changed { sqlite.changes() } else { 0 },
            last_insert_rowid: sqlite.last_insert_rowid(),
        });
    }
    answer.end();
    Ok(())
}
