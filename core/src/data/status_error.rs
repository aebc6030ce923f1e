//! A result as Rust's own `Result`, for callers to whom every other status is an error.
//!
//! In: an [`ExecutionResult`]. Out: its value, or a [`StatusError`] that contains the whole result.

use std::fmt;

use super::outcome::{ExecutionError, ExecutionResult, Status};
use crate::value::Value;

impl ExecutionResult {
    /// The resolved export of a run that succeeded; any other result as an error, for `?`.
    ///
    /// On success, the reports, logs and figures are dropped: read them first.
    ///
    /// ```
    /// use isolane::{ExecutionOptions, Status, run_code};
    ///
    /// fn eval(source: &str) -> Result<f64, Box<dyn std::error::Error>> {
    ///     let result = run_code(source, ExecutionOptions::default()).wait()?;
    ///     Ok(result.into_value()?.deserialize()?)
    /// }
    /// assert_eq!(eval("export default 6 * 7").ok(), Some(42.0));
    ///
    /// let error = eval("throw new RangeError('no such row')").unwrap_err();
    /// assert_eq!(error.to_string(), "RangeError: no such row (<runCode>:1:11)");
    /// # let error = error.downcast::<isolane::StatusError>().unwrap();
    /// # assert_eq!(error.status(), Status::Error);
    /// ```
    ///
    /// # Errors
    /// Every status except [`Status::Success`].
    pub fn into_value(mut self) -> Result<Value, StatusError> {
        match self.status {
            Status::Success => Ok(self.result.take().unwrap_or_else(Value::undefined)),
            _ => Err(StatusError(Box::new(self))),
        }
    }
}

/// A run that did not succeed, as an error: see [`ExecutionResult::into_value`].
///
/// Displayed as `name: message (file:line:col)`, with the position if there is one. It describes an error of the
/// sandbox's code and not a failure of the library.
///
/// Its [`source`](std::error::Error::source) is the error of a host function that the sandbox did not catch, or the
/// reason why no worker could be started:
///
/// ```
/// use isolane::{ExecutionOptions, HostFunction, Inputs, run_code};
///
/// let parse = HostFunction::new(|text: String| text.parse::<i32>());
/// let globals = Inputs::new().with("parse", parse);
/// let options = ExecutionOptions { globals, ..Default::default() };
/// let error = run_code("export default parse('x')", options).wait()?.into_value().unwrap_err();
/// let source = std::error::Error::source(&error).expect("the host function's own error");
/// assert!(source.is::<std::num::ParseIntError>());
/// # Ok::<(), isolane::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct StatusError(Box<ExecutionResult>);

impl StatusError {
    /// The end of the run.
    #[must_use]
    pub fn status(&self) -> Status {
        self.0.status
    }

    /// The reason.
    #[must_use]
    pub fn error(&self) -> Option<&ExecutionError> {
        self.0.error.as_ref()
    }

    /// The whole result of the run, with its reports and logs.
    #[must_use]
    pub fn result(&self) -> &ExecutionResult {
        &self.0
    }

    /// The whole result, owned.
    #[must_use]
    pub fn into_result(self) -> ExecutionResult {
        *self.0
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(error) = self.error() else { return out.write_str(self.status().as_str()) };
        write!(out, "{}: {}", error.name, error.message)?;
        if let (Some(file), Some(line), Some(column)) = (&error.filename, error.line, error.column)
        {
            write!(out, " ({file}:{line}:{column})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for StatusError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = (self.status(), self.error());
        out.debug_struct("StatusError")
            .field("status", &fields.0)
            .field("error", &fields.1)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for StatusError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error()?.cause.as_ref()?.error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(status: Status, error: Option<ExecutionError>) -> ExecutionResult {
        ExecutionResult {
            status,
            result: None,
            reports: vec![Value::serialize(&1).expect("data")],
            logs: Vec::new(),
            error,
            duration_ms: 1.5,
            memory_used_bytes: Some(7),
            cell: None,
        }
    }

    fn error() -> ExecutionError {
        ExecutionError {
            name: "RangeError".to_owned(),
            message: "too far".to_owned(),
            filename: Some("lib/a.ts".to_owned()),
            line: Some(3),
            column: Some(14),
            ..ExecutionError::default()
        }
    }

    fn shown(status: Status, error: Option<ExecutionError>) -> String {
        result(status, error).into_value().expect_err("no success").to_string()
    }

    #[test]
    fn a_success_is_its_value() {
        let success = ExecutionResult {
            result: Some(Value::serialize(&1).expect("data")),
            ..result(Status::Success, None)
        };
        assert_eq!(success.into_value(), Ok(Value::serialize(&1).expect("data")));
        assert_eq!(result(Status::Success, None).into_value(), Ok(Value::undefined()));
    }

    #[test]
    fn any_other_status_is_shown_with_what_there_is() {
        assert_eq!(shown(Status::LinkError, Some(error())), "RangeError: too far (lib/a.ts:3:14)");
        let nowhere = ExecutionError { line: None, ..error() };
        assert_eq!(shown(Status::Error, Some(nowhere)), "RangeError: too far");
        assert_eq!(shown(Status::Memory, None), "memory");
    }

    #[test]
    fn nothing_of_the_result_is_lost() {
        let whole = result(Status::Terminated, Some(error()));
        let failed = whole.clone().into_value().expect_err("no success");
        assert_eq!((failed.status(), failed.error()), (Status::Terminated, Some(&error())));
        assert_eq!(failed.result(), &whole);
        assert_eq!(failed.into_result(), whole);
    }
}
