//! The bindings of an execution: how an environment reports to its host.
//!
//! In: calls with the number of the execution. Out: calls of an [`ExecutionHost`], in their order. A call with another
//! number is refused, so that output cannot go astray.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use isolane::Error;
use serde_json::{Map, Value};

use crate::{ExecutionFailure, ExecutionState, ToolError, ToolInfo};

/// The receiver of an execution's reports: the process service, or whoever else calls an environment.
#[async_trait]
pub trait ExecutionHost: Send + Sync + 'static {
    /// The code waits in the environment, or runs.
    fn set_state(&self, state: ExecutionState);
    /// Bytes of the standard output.
    fn stdout(&self, bytes: &[u8]);
    /// Bytes of the standard error.
    fn stderr(&self, bytes: &[u8]);
    /// Fields of the output.
    ///
    /// # Errors
    /// The output would be too large.
    fn output(&self, fields: Map<String, Value>) -> Result<(), Error>;
    /// Why the execution fails; the last one counts.
    fn error(&self, failure: ExecutionFailure);
    /// Calls a tool by its name, `service.tool`.
    ///
    /// # Errors
    /// The tool failed or was not called.
    async fn invoke_tool(&self, name: &str, args: Value) -> Result<Value, ToolError>;
    /// The tools that the execution may call.
    fn tools(&self) -> Arc<[ToolInfo]>;
}

/// The bindings of one execution. Clone: all clones are the same. After the execution has settled, calls do nothing.
#[derive(Clone)]
pub struct EnvironmentBindings {
    eid: u64,
    host: Arc<dyn ExecutionHost>,
}

/// The most bytes of one call.
const MOST_BYTES: usize = 4 << 20;

impl EnvironmentBindings {
    /// The bindings of the execution with that number.
    pub fn new(eid: u64, host: Arc<dyn ExecutionHost>) -> Self {
        Self { eid, host }
    }

    /// The number of the execution.
    #[must_use]
    pub fn eid(&self) -> u64 {
        self.eid
    }

    /// Reports a state. One that the table of states has not at this moment is ignored.
    ///
    /// # Errors
    /// Another execution's number.
    pub fn set_state(&self, eid: u64, state: ExecutionState) -> Result<(), Error> {
        self.check(eid)?;
        self.host.set_state(state);
        Ok(())
    }

    /// Writes to the standard output.
    ///
    /// # Errors
    /// Another execution's number; a range error for more than 4 MiB, of which nothing is written.
    pub fn stdout(&self, eid: u64, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.check(eid)?;
        self.host.stdout(checked("stdout", bytes.as_ref())?);
        Ok(())
    }

    /// Writes to the standard error.
    ///
    /// # Errors
    /// As [`stdout`](Self::stdout).
    pub fn stderr(&self, eid: u64, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.check(eid)?;
        self.host.stderr(checked("stderr", bytes.as_ref())?);
        Ok(())
    }

    /// Merges fields into the output.
    ///
    /// # Errors
    /// Another execution's number; a range error if the output would be larger than it may be.
    pub fn output(&self, eid: u64, fields: Map<String, Value>) -> Result<(), Error> {
        self.check(eid)?;
        self.host.output(fields)
    }

    /// Calls a tool by its name, `service.tool`, and waits for its answer.
    ///
    /// # Errors
    /// Another execution's number; whatever the tool throws.
    pub async fn invoke_tool(&self, eid: u64, name: &str, args: Value) -> Result<Value, ToolError> {
        self.check(eid).map_err(|error| ToolError::new("TypeError", error.to_string()))?;
        self.host.invoke_tool(name, args).await
    }

    /// Reports why the execution fails; the last one counts.
    ///
    /// # Errors
    /// Another execution's number.
    pub fn error(&self, eid: u64, failure: ExecutionFailure) -> Result<(), Error> {
        self.check(eid)?;
        self.host.error(failure);
        Ok(())
    }

    /// The tools that the execution may call: those that there were when it started.
    #[must_use]
    pub fn tools(&self) -> Arc<[ToolInfo]> {
        self.host.tools()
    }

    fn check(&self, eid: u64) -> Result<(), Error> {
        if eid == self.eid {
            return Ok(());
        }
        let message = format!("these bindings are of execution {}, not {eid}", self.eid);
        Err(Error::new(isolane::ErrorKind::Type, message))
    }
}

fn checked<'b>(name: &str, bytes: &'b [u8]) -> Result<&'b [u8], Error> {
    if bytes.len() <= MOST_BYTES {
        return Ok(bytes);
    }
    let message = format!("{name} takes at most {MOST_BYTES} bytes in a call, got {}", bytes.len());
    Err(Error::new(isolane::ErrorKind::Range, message))
}

impl fmt::Debug for EnvironmentBindings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EnvironmentBindings").field("eid", &self.eid).finish_non_exhaustive()
    }
}
