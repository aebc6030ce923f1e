//! Errors of SQLite as errors of the sandbox.
//!
//! In: an error of SQLite, and how its call stood then. Out: `DbError` with a code, `DbBlocked`, `DbTimeout` or
//! `DbLimit`. No message has a path.

use std::time::Duration;

use isolane::HostError;
use rusqlite::{Error, ffi};

use super::stop::{Reason, Stop};

/// The state of a call when SQLite reported an error.
#[derive(Debug)]
pub(super) struct Circumstances {
    /// The reason for which the call was stopped.
    pub(super) stopped: Option<Reason>,
    /// Whether SQLite was refused memory because of the limit.
    pub(super) memory_exceeded: bool,
    /// The refusal of an action.
    pub(super) refusal: Option<String>,
    /// The call's time limit.
    pub(super) timeout: Duration,
    /// The longest value that this statement handles, bytes.
    pub(super) longest_value: i32,
    /// The limits of a statement's memory and of the database's file, bytes.
    pub(super) most_bytes: usize,
    pub(super) most_file_bytes: u64,
}

/// A `DbLimit`.
pub(super) fn limit(text: impl Into<String>) -> HostError {
    HostError::new("DbLimit", text)
}

/// A `DbBlocked`.
pub(super) fn blocked(text: impl Into<String>) -> HostError {
    HostError::new("DbBlocked", text)
}

/// A `DbError` of the general code, for mistakes that we find before SQLite does.
pub(super) fn mistake(text: impl Into<String>) -> HostError {
    HostError::new("DbError", text).with_code("SQLITE_ERROR")
}

/// A `DbTimeout`.
pub(super) fn timeout(after: Duration) -> HostError {
    let text = format!("the statement took longer than {} ms", after.as_millis());
    HostError::new("DbTimeout", text)
}

/// The error for the sandbox.
pub(super) fn translated(error: &Error, at: &Circumstances) -> HostError {
    // The error of a call whose run has ended is seen by nobody.
    if at.stopped == Some(Reason::Time) {
        return timeout(at.timeout);
    }
    if let Some(refusal) = &at.refusal {
        return blocked(refusal);
    }
    let (code, message) = parts(error);
    match code & 0xFF {
        ffi::SQLITE_NOMEM | ffi::SQLITE_INTERRUPT if at.memory_exceeded => {
            limit(format!("the statement needs more than {} bytes of memory", at.most_bytes))
        }
        ffi::SQLITE_TOOBIG => limit(format!("a value is larger than {} bytes", at.longest_value)),
        ffi::SQLITE_FULL => {
            limit(format!("the database is larger than {} bytes", at.most_file_bytes))
        }
        _ if message.ends_with("may not be modified") => {
            blocked(message.strip_prefix("table ").map_or(message.clone(), writing))
        }
        _ => HostError::new("DbError", message).with_code(code_name(code)),
    }
}

/// Whether a call that was tried on its caller's thread failed only for what it may not have there: time, long values,
/// waiting for other connections. SQLite has undone what it did.
pub(super) fn is_of_short(error: &Error, stop: &Stop) -> bool {
    let code = parts(error).0 & 0xFF;
    stop.is_stopped() || matches!(code, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED | ffi::SQLITE_TOOBIG)
}

fn writing(rest: &str) -> String {
    let table = rest.strip_suffix(" may not be modified").unwrap_or(rest);
    format!("writing '{table}' is not allowed")
}

/// The extended code and SQLite's own message.
fn parts(error: &Error) -> (i32, String) {
    match error {
        Error::SqliteFailure(code, Some(text)) => (code.extended_code, text.clone()),
        Error::SqliteFailure(code, None) => {
            (code.extended_code, ffi::code_to_str(code.extended_code).to_owned())
        }
        Error::SqlInputError { error, msg, .. } => (error.extended_code, msg.clone()),
        // Texts of the database that are no UTF-8, and other conversions.
        other => (ffi::SQLITE_ERROR, other.to_string()),
    }
}

/// The name of a code; the plain one where SQLite has no extended one.
fn code_name(code: i32) -> &'static str {
    let known = |wanted| NAMES.iter().find(|(known, _)| *known == wanted).map(|(_, name)| *name);
    known(code).or_else(|| known(code & 0xFF)).unwrap_or("SQLITE_ERROR")
}

macro_rules! names {
    ($($name:ident),* $(,)?) => {
        &[$((ffi::$name, stringify!($name))),*]
    };
}

const NAMES: &[(i32, &str)] = names![
    SQLITE_ERROR,
    SQLITE_INTERNAL,
    SQLITE_PERM,
    SQLITE_ABORT,
    SQLITE_BUSY,
    SQLITE_LOCKED,
    SQLITE_NOMEM,
    SQLITE_READONLY,
    SQLITE_INTERRUPT,
    SQLITE_IOERR,
    SQLITE_CORRUPT,
    SQLITE_NOTFOUND,
    SQLITE_FULL,
    SQLITE_CANTOPEN,
    SQLITE_PROTOCOL,
    SQLITE_SCHEMA,
    SQLITE_TOOBIG,
    SQLITE_CONSTRAINT,
    SQLITE_MISMATCH,
    SQLITE_MISUSE,
    SQLITE_NOLFS,
    SQLITE_AUTH,
    SQLITE_RANGE,
    SQLITE_NOTADB,
    SQLITE_CONSTRAINT_CHECK,
    SQLITE_CONSTRAINT_COMMITHOOK,
    SQLITE_CONSTRAINT_DATATYPE,
    SQLITE_CONSTRAINT_FOREIGNKEY,
    SQLITE_CONSTRAINT_FUNCTION,
    SQLITE_CONSTRAINT_NOTNULL,
    SQLITE_CONSTRAINT_PINNED,
    SQLITE_CONSTRAINT_PRIMARYKEY,
    SQLITE_CONSTRAINT_ROWID,
    SQLITE_CONSTRAINT_TRIGGER,
    SQLITE_CONSTRAINT_UNIQUE,
    SQLITE_CONSTRAINT_VTAB,
    SQLITE_CORRUPT_INDEX,
    SQLITE_CORRUPT_VTAB,
    SQLITE_READONLY_DBMOVED,
    SQLITE_READONLY_DIRECTORY,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_without_a_name_has_that_of_its_kind() {
        assert_eq!(code_name(ffi::SQLITE_CONSTRAINT_UNIQUE), "SQLITE_CONSTRAINT_UNIQUE");
        assert_eq!(code_name(ffi::SQLITE_IOERR | 99 << 8), "SQLITE_IOERR");
        assert_eq!(code_name(250), "SQLITE_ERROR");
    }
}
