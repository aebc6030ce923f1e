//! Rows that are written.
//!
//! In: processes, and the parts of them that are not saved. Out: rows, within the transaction of the caller.

use rusqlite::{Connection, OptionalExtension, params};

use super::{
    IDS_LEFT_OUT, read,
    schema::RowState,
    values::{kind_number, number, time},
};
use crate::{
    EventKind, ExecutionExitState, ProcessState,
    process::{Process, now_ms, record_text, unsaved::Unsaved},
};

/// The counts of the rows, which change with them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    /// Rows of idle processes.
    pub(super) idle: u64,
    /// The last place of an idle process.
    pub(super) last_place: i64,
}

impl Tally {
    fn rest(&mut self) -> (i64, i64) {
        self.idle += 1;
        self.last_place += 1;
        (self.last_place, time(now_ms()))
    }
}

/// Adds the row of a new process; its events come with [`save`].
pub(super) fn insert(
    connection: &Connection,
    process: &Process,
    is_queued: bool,
    tally: &mut Tally,
) -> rusqlite::Result<()> {
    let state = if is_queued { RowState::Queued } else { RowState::Idle };
    let (place, since) = if is_queued { (None, None) } else { some(tally.rest()) };
    connection
        .prepare_cached(
            "INSERT INTO processes (pid, state, timeout_ms, created_at, idle_place, idle_since, code)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            number(process.pid),
            state as i64,
            process.timeout_ms.map(number),
            time(process.created_at),
            place,
            since,
            process.code,
        ])?;
    Ok(())
}

/// The environment gets a process: from now on it may have run.
pub(super) fn hand_over(connection: &Connection, pid: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE processes SET state = ? WHERE pid = ?")?
        .execute(params![RowState::HandedOver as i64, number(pid)])?;
    Ok(())
}

/// Writes what is not saved of a process, unless its row is gone. An error needs no undoing but the transaction's.
pub(super) fn save(
    connection: &Connection,
    unsaved: &Unsaved,
    tally: &mut Tally,
) -> rusqlite::Result<()> {
    let pid = number(unsaved.pid);
    let before: Option<i64> = connection
        .prepare_cached("SELECT state FROM processes WHERE pid = ?")?
        .query_row([pid], |row| row.get(0))
        .optional()?;
    let Some(before) = before else { return Ok(()) };
    let (was_idle, is_idle) =
        (before == RowState::Idle as i64, unsaved.state == ProcessState::Idle);
    let state = match (is_idle, unsaved.is_live) {
        (true, _) => RowState::Idle,
        (false, true) => RowState::HandedOver,
        (false, false) => RowState::Queued,
    };
    let (place, since) = if is_idle { some(tally.rest()) } else { (None, None) };
    if was_idle {
        tally.idle = tally.idle.saturating_sub(1);
    }
    let details =
        unsaved.error_details.as_ref().and_then(|details| serde_json::to_string(details).ok());
    connection
        .prepare_cached(
            "UPDATE processes SET state = ?, exit_state = ?, error = ?, error_details = ?, started_at = ?,
             finished_at = ?, stdout_bytes = ?, stdout_truncated = ?, stderr_bytes = ?, stderr_truncated = ?,
             idle_place = ?, idle_since = ? WHERE pid = ?",
        )?
        .execute(params![
            state as i64,
            unsaved.exit_state.map(ExecutionExitState::as_str),
            unsaved.error,
            details,
            unsaved.started_at.map(time),
            unsaved.finished_at.map(time),
            number(unsaved.stdout.bytes),
            unsaved.stdout.truncated,
            number(unsaved.stderr.bytes),
            unsaved.stderr.truncated,
            place,
            since,
            pid,
        ])?;
    let events = &unsaved.events;
    if let Some(id) = events.cleared_to {
        connection
            .prepare_cached("DELETE FROM events WHERE pid = ? AND id <= ?")?
            .execute([pid, number(id)])?;
    }
    if let Some(id) = events.patches_from {
        connection
            .prepare_cached("DELETE FROM events WHERE pid = ? AND id < ? AND kind = ?")?
            .execute([pid, number(id), kind_number(EventKind::Output)])?;
    }
    for (id, kind, text) in &events.events {
        add_event(connection, pid, number(*id), *kind, text)?;
    }
    Ok(())
}

fn add_event(
    connection: &Connection,
    pid: i64,
    id: i64,
    kind: EventKind,
    text: &str,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO events (pid, id, kind, data) VALUES (?, ?, ?, ?)")?
        .execute(params![pid, id, kind_number(kind), text])?;
    Ok(())
}

/// Deletes a process. False if there is none.
pub(super) fn delete(
    connection: &Connection,
    pid: u64,
    tally: &mut Tally,
) -> rusqlite::Result<bool> {
    let state: Option<i64> = connection
        .prepare_cached("DELETE FROM processes WHERE pid = ? RETURNING state")?
        .query_row([number(pid)], |row| row.get(0))
        .optional()?;
    let Some(state) = state else { return Ok(false) };
    if state == RowState::Idle as i64 {
        tally.idle = tally.idle.saturating_sub(1);
    }
    connection.prepare_cached("DELETE FROM events WHERE pid = ?")?.execute([number(pid)])?;
    Ok(true)
}

/// The id of the last change of all.
pub(super) fn set_changes(connection: &Connection, id: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE counters SET value = ? WHERE name = 'changes'")?
        .execute([number(id)])?;
    Ok(())
}

/// Ends what an earlier service has not finished: failed, with the reason.
pub(super) fn end_unfinished(connection: &Connection, tally: &mut Tally) -> rusqlite::Result<()> {
    let unfinished: Vec<(i64, i64)> = connection
        .prepare("SELECT pid, state FROM processes WHERE state <> 0 ORDER BY pid")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    if unfinished.is_empty() {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let done = unfinished.iter().try_for_each(|(pid, state)| {
        end_one(connection, *pid, *state != RowState::Queued as i64, tally)
    });
    if let Err(error) = done {
        // The first error tells more than one of the rollback.
        let _ = connection.execute_batch("ROLLBACK");
        return Err(error);
    }
    connection.execute_batch("COMMIT")
}

fn end_one(
    connection: &Connection,
    pid: i64,
    has_run: bool,
    tally: &mut Tally,
) -> rusqlite::Result<()> {
    let was = if has_run { "running" } else { "queued" };
    let (place, since) = tally.rest();
    connection
        .prepare_cached(
            "UPDATE processes SET state = 0, exit_state = 'failed', error = ?, error_details = NULL,
             finished_at = ?, idle_place = ?, idle_since = ? WHERE pid = ?",
        )?
        .execute(params![
            format!("the service ended while this process was {was}"),
            since,
            place,
            since,
            pid,
        ])?;
    let mut last = read::last_event_id(connection, pid)?;
    if has_run {
        last += IDS_LEFT_OUT.cast_signed();
    }
    add_event(connection, pid, last + 1, EventKind::State, ProcessState::Idle.as_str())?;
    if let Some(record) = read::record(connection, pid.unsigned_abs(), false)? {
        add_event(connection, pid, last + 2, EventKind::Exit, &record_text(&record))?;
    }
    Ok(())
}

fn some<A, B>((a, b): (A, B)) -> (Option<A>, Option<B>) {
    (Some(a), Some(b))
}
