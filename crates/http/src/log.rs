//! The log of failures.
//!
//! In: a failure that no client may see. Out: a line in the log, and the id that the client is told.

use std::{fmt, sync::Arc};

use isolane_environment::Log;
use uuid::Uuid;

/// Where lines about failures go.
#[derive(Clone)]
pub(crate) struct FailureLog(Log);

impl FailureLog {
    pub(crate) fn new(log: Option<Log>) -> Self {
        Self(log.unwrap_or_else(|| Arc::new(|line: &str| eprintln!("isolane: {line}"))))
    }

    /// Writes a line.
    pub(crate) fn line(&self, line: &str) {
        (self.0)(line);
    }

    /// Writes a line about a failure; its id.
    pub(crate) fn failure(&self, message: &str) -> Uuid {
        let id = Uuid::new_v4();
        self.line(&format!("failure {id}: {message}"));
        id
    }
}

impl fmt::Debug for FailureLog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("FailureLog")
    }
}
