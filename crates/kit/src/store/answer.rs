//! The answer of a statement, written straight as a message.
//!
//! In: the rows of a statement as SQLite steps through it. Out: `{ columns, rows, row_count, truncated }`, for a write
//! `{ changes, last_insert_rowid }`, for a write that returns rows all six. The room of each row is taken before it is written,
//! and rows end where a limit does.

use isolane::{
    Value,
    value::{ViewKind, Writer},
};
use rusqlite::{Row, Statement, types::ValueRef};

use crate::room::Room;

/// Bytes that a value takes for its reader, beside its text; a little more than the messages' own weights.
const VALUE_BYTES: usize = 64;

/// Bytes that a buffer takes for its reader, beside its content.
const BUFFER_BYTES: usize = 400;

/// Bytes that an array takes for its reader.
const ROW_BYTES: usize = 160;

/// The largest integer that a number holds exactly, and all of whose neighbours it does.
const MOST_SAFE: i64 = (1 << 53) - 1;

/// The limits of the rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowLimits {
    pub(super) most_rows: u32,
    pub(super) most_bytes: usize,
}

/// The run has no room for the answer: it ends as `memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoRoom;

/// The changes that a write made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changes {
    pub(super) changes: u64,
    pub(super) last_insert_rowid: i64,
}

/// An answer that is being written: first [`Answer::rows`], if there are any, then [`Answer::changes`] of a write.
pub(super) struct Answer<'a> {
    writer: &'a mut Writer,
    room: &'a mut dyn Room,
}

/// A failure while rows are written.
#[derive(Debug)]
pub(super) enum RowsError {
    NoRoom,
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for RowsError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<NoRoom> for RowsError {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

impl<'a> Answer<'a> {
    /// Begins the object.
    pub(super) fn new(writer: &'a mut Writer, room: &'a mut dyn Room) -> Result<Self, NoRoom> {
        take(room, ROW_BYTES)?;
        writer.object();
        Ok(Self { writer, room })
    }

    /// Steps through a statement and writes its rows. A write is stepped to its end, a read only as far as needed.
    pub(super) fn rows(
        &mut self,
        statement: &mut Statement<'_>,
        limits: RowLimits,
        is_write: bool,
    ) -> Result<(), RowsError> {
        let mut rows = statement.raw_query();
        // SQLite may prepare the statement anew before it gives the first row, which may change the columns.
        let Some(first) = rows.next()? else {
            drop(rows);
            self.columns(statement)?;
            self.writer.key("rows");
            self.writer.array(0);
            self.end_rows(0, false);
            return Ok(());
        };
        let columns = first.as_ref().column_count();
        self.columns(first.as_ref())?;
        self.writer.key("rows");
        let start = self.writer.bytes();
        let place = self.writer.open_array();
        let (mut count, mut truncated) = (0, false);
        let mut next = Some(first);
        while let Some(row) = next {
            if !truncated {
                let bytes = self.writer.bytes() - start;
                truncated = count == limits.most_rows
                    || bytes.saturating_add(row_bytes(row, columns)?) > limits.most_bytes;
            }
            if !truncated {
                self.row(row, columns)?;
                count += 1;
            } else if !is_write {
                break;
            }
            next = rows.next()?;
        }
        self.writer.close_array(place, count);
        self.end_rows(count, truncated);
        Ok(())
    }

    fn end_rows(&mut self, count: u32, truncated: bool) {
        self.writer.key("row_count");
        self.writer.number(count.into());
        self.writer.key("truncated");
        self.writer.bool(truncated);
    }

    fn columns(&mut self, statement: &Statement<'_>) -> Result<(), RowsError> {
        let names = statement.column_names();
        take(self.room, ROW_BYTES)?;
        self.writer.key("columns");
        self.writer.array(u32::try_from(names.len()).unwrap_or(u32::MAX));
        for name in names {
            take(self.room, VALUE_BYTES + 3 * name.len())?;
            self.writer.string(name);
        }
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>, columns: usize) -> Result<(), RowsError> {
        take(self.room, ROW_BYTES)?;
        self.writer.array(u32::try_from(columns).unwrap_or(u32::MAX));
        for column in 0..columns {
            let value = row.get_ref(column)?;
            // The message has room for twice its bytes while it grows, and its reader copies them.
            take(self.room, VALUE_BYTES + 3 * content_bytes(value))?;
            match value {
                ValueRef::Null => self.writer.null(),
                ValueRef::Integer(number) => integer(self.writer, number),
                ValueRef::Real(number) => self.writer.number(number),
                ValueRef::Text(text) => self.writer.string(&String::from_utf8_lossy(text)),
                ValueRef::Blob(bytes) => {
                    take(self.room, BUFFER_BYTES)?;
                    let blob = self.writer.blob(bytes.to_vec());
                    self.writer.view(ViewKind::Uint8Array, blob, 0, bytes.len() as u64);
                }
            }
        }
        Ok(())
    }

    /// Writes the changes of a write.
    pub(super) fn changes(&mut self, changes: Changes) {
        self.writer.key("changes");
        integer(self.writer, i64::try_from(changes.changes).unwrap_or(i64::MAX));
        self.writer.key("last_insert_rowid");
        integer(self.writer, changes.last_insert_rowid);
    }

    /// Ends the object.
    pub(super) fn end(self) {
        self.writer.end_object();
    }
}

/// One row of the schema of a table, as the seed has it.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) is_not_null: bool,
    pub(super) is_primary_key: bool,
}

/// A table of the schema.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// `None` if the table cannot be read.
    pub(super) row_count: Option<i64>,
}

/// The message of a schema.
pub(super) fn schema(tables: &[Table], room: &mut dyn Room) -> Result<Value, NoRoom> {
    let mut writer = Writer::new();
    writer.object();
    writer.key("tables");
    writer.array(u32::try_from(tables.len()).unwrap_or(u32::MAX));
    for table in tables {
        take(room, 3 * ROW_BYTES + 3 * table.name.len())?;
        writer.object();
        writer.key("name");
        writer.string(&table.name);
        writer.key("columns");
        writer.array(u32::try_from(table.columns.len()).unwrap_or(u32::MAX));
        for column in &table.columns {
            take(room, 3 * (ROW_BYTES + column.name.len() + column.kind.len()))?;
            writer.object();
            writer.key("name");
            writer.string(&column.name);
            writer.key("type");
            writer.string(&column.kind);
            writer.key("notnull");
            writer.bool(column.is_not_null);
            writer.key("pk");
            writer.bool(column.is_primary_key);
            writer.end_object();
        }
        writer.key("row_count");
        match table.row_count {
            Some(count) => integer(&mut writer, count),
            None => writer.null(),
        }
        writer.end_object();
    }
    writer.end_object();
    Ok(writer.finish())
}

fn take(room: &mut dyn Room, bytes: usize) -> Result<(), NoRoom> {
    if room.take(bytes) { Ok(()) } else { Err(NoRoom) }
}

/// A number where that is exact, else a bigint.
fn integer(writer: &mut Writer, number: i64) {
    if let Ok(small) = i32::try_from(number) {
        writer.int(small);
    } else if number.unsigned_abs() <= MOST_SAFE.unsigned_abs() {
        #[expect(clippy::cast_precision_loss, reason = "a safe integer")]
        writer.number(number as f64);
    } else {
        writer.bigint(number < 0, &number.unsigned_abs().to_le_bytes());
    }
}

/// Bytes of a row in the message, about.
fn row_bytes(row: &Row<'_>, columns: usize) -> rusqlite::Result<usize> {
    let mut bytes = 2_usize;
    for column in 0..columns {
        bytes = bytes.saturating_add(content_bytes(row.get_ref(column)?)).saturating_add(2);
    }
    Ok(bytes)
}

fn content_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null => 0,
        ValueRef::Integer(_) | ValueRef::Real(_) => 8,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
    }
}
