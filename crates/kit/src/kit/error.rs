//! The error of a call that the host itself makes of a capability.
//!
//! In: an error that code would be thrown. Out: the same for the host, in the other languages a `KitError`.

use std::fmt;

use isolane::{Error, ErrorCode, ExecutionError, HostError, Value, value::Event};

/// The failure of a call by the host: with the name and the message that code would see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallError {
    /// The name, such as `DbError`.
    pub name: String,
    /// The message.
    pub message: String,
    /// SQLite's code, such as `SQLITE_CONSTRAINT`, of a `DbError`.
    pub code: Option<String>,
    /// The file of a place, `library:NAME`, of a `LibraryError` of a source.
    pub filename: Option<String>,
    /// The line of the place, from 1.
    pub line: Option<u32>,
    /// The column of the place, from 1, in UTF-16 code units.
    pub column: Option<u32>,
}

impl CallError {
    pub(super) fn new(name: &str, message: impl Into<String>) -> Self {
        Self { name: name.to_owned(), message: message.into(), ..Self::default() }
    }

    /// The error of a library whose source is wrong.
    pub(super) fn of_source(error: ExecutionError) -> Self {
        let ExecutionError { message, filename, line, column, .. } = error;
        // The place is in the text, too: an error that a host function throws has no more when it reaches code.
        let message = match (&filename, line, column) {
            (Some(file), Some(line), Some(column)) => format!("{message} ({file}:{line}:{column})"),
            _ => message,
        };
        Self { filename, line, column, ..Self::new("LibraryError", message) }
    }

    /// A thrown value.
    pub(super) fn of_thrown(error: &Value) -> Self {
        let mut reader = error.reader();
        let Ok(Event::Error(_)) = reader.event() else {
            return Self::new("Error", "the call failed");
        };
        let mut text = || reader.text().map(|text| text.to_string_lossy()).unwrap_or_default();
        let (name, message) = (text(), text());
        // The stack comes before the code. These errors have none.
        let code = match (reader.event(), reader.event()) {
            (Ok(_), Ok(Event::String(code))) => Some(code.to_string_lossy()),
            _ => None,
        };
        Self { code, ..Self::new(&name, message) }
    }
}

impl From<HostError> for CallError {
    fn from(error: HostError) -> Self {
        let code = match error.code {
            Some(ErrorCode::Text(code)) => Some(code),
            Some(ErrorCode::Number(code)) => Some(code.to_string()),
            None => None,
        };
        Self { code, ..Self::new(&error.name, error.message) }
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::new("TypeError", error.message())
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.name, self.message)
    }
}

impl std::error::Error for CallError {}
