//! Rows that are read.
//!
//! In: pids and queries. Out: records, texts, outputs and events. The streams and the output of a process are those of its
//! events, in their order.

use isolane::iso_date;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value, json};

use super::{
    values::{count, kind, kind_number, ms, number},
    write::Tally,
};
use crate::{
    EventKind, ExecutionExitState, ListQuery, ProcessEvent, ProcessRecord, ProcessState, StreamInfo,
};

/// The columns of a record, in the order of [`record_of`].
const RECORD: &str =
    "pid, state, exit_state, error, error_details, timeout_ms, created_at, started_at, finished_at,
    stdout_bytes, stdout_truncated, stderr_bytes, stderr_truncated";

/// A reader of events gets so many bytes at once, and at least one event.
const PAGE_BYTES: usize = 1 << 20;

fn record_of(row: &Row<'_>) -> rusqlite::Result<ProcessRecord> {
    let text = |at: Option<i64>| at.and_then(|at| iso_date(ms(at)));
    let exit: Option<String> = row.get(2)?;
    let details: Option<String> = row.get(4)?;
    let stream = |bytes: i64, truncated: bool| StreamInfo { bytes: count(bytes), truncated };
    Ok(ProcessRecord {
        pid: count(row.get(0)?),
        state: state(row.get(1)?),
        exit_state: exit.as_deref().and_then(ExecutionExitState::named),
        error: row.get(3)?,
        error_details: details.and_then(|details| serde_json::from_str(&details).ok()),
        timeout_ms: row.get::<_, Option<i64>>(5)?.map(count),
        created_at: text(row.get(6)?).unwrap_or_default(),
        started_at: text(row.get(7)?),
        finished_at: text(row.get(8)?),
        stdout: stream(row.get(9)?, row.get(10)?),
        stderr: stream(row.get(11)?, row.get(12)?),
        output: None,
    })
}

fn state(number: i64) -> ProcessState {
    match number {
        0 => ProcessState::Idle,
        1 => ProcessState::Queued,
        _ => ProcessState::Running,
    }
}

/// The record of a process; with its output, if that is asked for.
pub(super) fn record(
    connection: &Connection,
    pid: u64,
    has_output: bool,
) -> rusqlite::Result<Option<ProcessRecord>> {
    let record = connection
        .prepare_cached(&format!("SELECT {RECORD} FROM processes WHERE pid = ?"))?
        .query_row([number(pid)], record_of)
        .optional()?;
    let Some(mut record) = record else { return Ok(None) };
    if has_output {
        record.output = Some(output(connection, pid)?);
    }
    Ok(Some(record))
}

/// Records of idle processes but those that are left out, newest first.
pub(super) fn list(
    connection: &Connection,
    query: ListQuery,
    most: usize,
    is_left_out: impl Fn(u64) -> bool,
) -> rusqlite::Result<Vec<ProcessRecord>> {
    let before = query.before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    let mut take = |row: &Row<'_>| -> rusqlite::Result<bool> {
        if !is_left_out(count(row.get(0)?)) {
            found.push(record_of(row)?);
        }
        Ok(found.len() < most)
    };
    let end = query.exit_state.map(ExecutionExitState::as_str);
    let condition = if end.is_some() { "AND exit_state = ?2" } else { "AND ?2 IS NULL" };
    let sql = format!(
        "SELECT {RECORD} FROM processes WHERE state = 0 AND pid < ?1 {condition} ORDER BY pid DESC"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![before, end])?;
    while let Some(row) = rows.next()? {
        if !take(row)? {
            break;
        }
    }
    Ok(found)
}

/// The code of a process.
pub(super) fn code(connection: &Connection, pid: u64) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT code FROM processes WHERE pid = ?")?
        .query_row([number(pid)], |row| row.get(0))
        .optional()
}

fn is_there(connection: &Connection, pid: u64) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM processes WHERE pid = ?")?.exists([number(pid)])
}

/// The text of a stream.
pub(super) fn text(
    connection: &Connection,
    pid: u64,
    stream: EventKind,
) -> rusqlite::Result<Option<String>> {
    let mut whole = String::new();
    if !is_there(connection, pid)? {
        return Ok(None);
    }
    each_event(connection, pid, stream, |text| whole.push_str(text))?;
    Ok(Some(whole))
}

/// The output of a process that is there.
pub(super) fn output(connection: &Connection, pid: u64) -> rusqlite::Result<Map<String, Value>> {
    let mut fields = Map::new();
    each_event(connection, pid, EventKind::Output, |patch| {
        if let Ok(Value::Object(patch)) = serde_json::from_str(patch) {
            // As `Object.assign`: a field keeps its place.
            for (name, value) in patch {
                fields.insert(name, value);
            }
        }
    })?;
    Ok(fields)
}

/// The output of a process, or none if there is no such process.
pub(super) fn output_of(
    connection: &Connection,
    pid: u64,
) -> rusqlite::Result<Option<Map<String, Value>>> {
    Ok(if is_there(connection, pid)? { Some(output(connection, pid)?) } else { None })
}

fn each_event(
    connection: &Connection,
    pid: u64,
    kind: EventKind,
    mut each: impl FnMut(&str),
) -> rusqlite::Result<()> {
    let mut statement = connection
        .prepare_cached("SELECT data FROM events WHERE pid = ? AND kind = ? ORDER BY id")?;
    let mut rows = statement.query([number(pid), kind_number(kind)])?;
    while let Some(row) = rows.next()? {
        each(row.get_ref(0)?.as_str()?);
    }
    Ok(())
}

/// The events of a process after that id, as many as a page has. `None` if there is no such process.
pub(super) fn events(
    connection: &Connection,
    pid: u64,
    after: u64,
) -> rusqlite::Result<Option<Vec<ProcessEvent>>> {
    if !is_there(connection, pid)? {
        return Ok(None);
    }
    let mut statement = connection
        .prepare_cached("SELECT id, kind, data FROM events WHERE pid = ? AND id > ? ORDER BY id")?;
    let mut rows = statement.query([number(pid), number(after)])?;
    let (mut page, mut bytes) = (Vec::new(), 0);
    while bytes < PAGE_BYTES {
        let Some(row) = rows.next()? else { break };
        let (id, kind) = (count(row.get(0)?), kind(row.get(1)?));
        let text = row.get_ref(2)?.as_str()?;
        bytes += text.len();
        let data = match kind {
            EventKind::State => json!({ "state": text }).to_string(),
            EventKind::Stdout | EventKind::Stderr => json!({ "text": text }).to_string(),
            _ => text.to_owned(),
        };
        page.push(ProcessEvent { id, kind, data: data.into() });
    }
    Ok(Some(page))
}

/// The id of the last event of a process; 0 if there is none.
pub(super) fn last_event_id(connection: &Connection, pid: i64) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT coalesce(max(id), 0) FROM events WHERE pid = ?")?
        .query_row([pid], |row| row.get(0))
}

/// The id of the last event of a process, and whether its execution has ended.
pub(super) fn last_event(
    connection: &Connection,
    pid: u64,
) -> rusqlite::Result<Option<(u64, bool)>> {
    let is_over = connection
        .prepare_cached("SELECT state = 0 AND exit_state IS NOT NULL FROM processes WHERE pid = ?")?
        .query_row([number(pid)], |row| row.get(0))
        .optional()?;
    let Some(is_over) = is_over else { return Ok(None) };
    Ok(Some((count(last_event_id(connection, number(pid))?), is_over)))
}

/// A process that may run again.
pub(super) struct Resumable {
    pub(super) code: String,
    pub(super) timeout_ms: Option<u64>,
    pub(super) created_at: f64,
    pub(super) last_event_id: u64,
    /// Whether it has ended once.
    pub(super) has_results: bool,
}

/// A process that may run again.
pub(super) fn resumable(connection: &Connection, pid: u64) -> rusqlite::Result<Option<Resumable>> {
    let last_event_id = count(last_event_id(connection, number(pid))?);
    connection
        .prepare_cached(
            "SELECT code, timeout_ms, created_at, exit_state IS NOT NULL FROM processes WHERE pid = ? AND state = 0",
        )?
        .query_row([number(pid)], |row| {
            Ok(Resumable {
                code: row.get(0)?,
                timeout_ms: row.get::<_, Option<i64>>(1)?.map(count),
                created_at: ms(row.get(2)?),
                last_event_id,
                has_results: row.get(3)?,
            })
        })
        .optional()
}

/// The process that has been idle for the longest time: its pid, and since when.
pub(super) fn oldest(connection: &Connection) -> rusqlite::Result<Option<(u64, f64)>> {
    connection
        .prepare_cached(
            "SELECT pid, idle_since FROM processes WHERE state = 0 ORDER BY idle_place LIMIT 1",
        )?
        .query_row([], |row| Ok((count(row.get(0)?), ms(row.get(1)?))))
        .optional()
}

/// The counts of the rows.
pub(super) fn tally(connection: &Connection) -> rusqlite::Result<Tally> {
    connection.query_row(
        "SELECT count(*), coalesce(max(idle_place), 0) FROM processes WHERE state = 0",
        [],
        |row| Ok(Tally { idle: count(row.get(0)?), last_place: row.get(1)? }),
    )
}

/// The highest pid that was ever used.
pub(super) fn last_pid(connection: &Connection) -> rusqlite::Result<u64> {
    let last = connection
        .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'processes'", [], |row| row.get(0))
        .optional()?;
    Ok(count(last.unwrap_or_default()))
}

/// The id of the last change of all that was saved.
pub(super) fn changes(connection: &Connection) -> rusqlite::Result<u64> {
    let value = "SELECT value FROM counters WHERE name = 'changes'";
    connection.query_row(value, [], |row| row.get(0)).map(count)
}
