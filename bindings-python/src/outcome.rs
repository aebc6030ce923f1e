//! Outcomes of runs, as `python/isolane/_result.py` reads them.
//!
//! In: a result of the core. Out: the same as Python objects, read in one or several turns of a loop.

use std::{mem, sync::Arc, vec};

use isolane::{
    Cause, CellOutcome, ExecutionError, ExecutionLog, ExecutionResult, LogLevel, Value, ValueFrom,
};
use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{PyList, PyTuple},
};

use crate::{
    error::cause_of,
    message::Queue,
    value::{Budget, LOG, Owners},
};

/// A result that is being read.
pub(crate) struct Outcome {
    /// The fields without messages.
    rest: ExecutionResult,
    /// The messages to read: the part of a system and the result, if there are, then the reports, then the arguments of
    /// the logs.
    queue: Queue,
    extra: Option<Py<PyAny>>,
    has_extra: bool,
    result: Option<Py<PyAny>>,
    has_result: bool,
    reports_left: usize,
    reports: Py<PyList>,
    log_heads: vec::IntoIter<(LogLevel, f64)>,
    logs: Py<PyList>,
}

impl Outcome {
    /// Starts reading, without the first `delivered` reports, which Python has already.
    pub(crate) fn new(
        py: Python<'_>,
        mut outcome: ExecutionResult,
        extra: Option<Value>,
        delivered: usize,
    ) -> Self {
        let result = outcome.result.take();
        let reports = mem::take(&mut outcome.reports);
        let logs = mem::take(&mut outcome.logs);
        let (has_extra, has_result) = (extra.is_some(), result.is_some());
        let reports_left = reports.len().saturating_sub(delivered);
        let log_heads: Vec<_> = logs.iter().map(|log| (log.level, log.timestamp)).collect();
        let reports = reports.into_iter().skip(delivered);
        let args = logs.into_iter().map(|ExecutionLog { args, .. }| args);
        let first = extra.into_iter().chain(result);
        let queue = Queue::new(first.chain(reports).chain(args).map(Arc::new));
        Self {
            rest: outcome,
            queue,
            extra: None,
            has_extra,
            result: None,
            has_result,
            reports_left,
            reports: PyList::empty(py).unbind(),
            log_heads: log_heads.into_iter(),
            logs: PyList::empty(py).unbind(),
        }
    }

    /// Reads until the budget is spent; returns whether all has been read.
    pub(crate) fn go_on(&mut self, owners: &Owners<'_>, budget: &mut Budget) -> PyResult<bool> {
        while let Some(value) = self.queue.next(owners, budget)? {
            let py = value.py();
            if mem::take(&mut self.has_extra) {
                self.extra = Some(value.unbind());
            } else if mem::take(&mut self.has_result) {
                self.result = Some(value.unbind());
            } else if self.reports_left > 0 {
                self.reports_left -= 1;
                self.reports.bind(py).append(value)?;
            } else if let Some((level, timestamp)) = self.log_heads.next() {
                let log = LOG.get(py)?.call1((level.as_str(), value, timestamp))?;
                self.logs.bind(py).append(log)?;
                budget.spend(STEPS_PER_LOG);
            }
        }
        Ok(self.queue.is_empty())
    }

    /// `(status, result, reports, logs, error, duration_ms, memory_used_bytes, cell, extra)`; `cell` is `None` for a run,
    /// and `(session, text, uncloned, value_from)` for a cell; `extra` is `None` without a part of a system.
    pub(crate) fn finish(self, py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        let outcome = self.rest;
        let error = match outcome.error {
            Some(error) => error_fields(py, error)?,
            None => py.None().into_bound(py),
        };
        (
            outcome.status.as_str(),
            self.result,
            self.reports,
            self.logs,
            error,
            outcome.duration_ms,
            outcome.memory_used_bytes,
            outcome.cell.map(|cell| cell_fields(*cell)),
            self.extra,
        )
            .into_pyobject(py)
    }
}

type CellFields = (&'static str, Option<String>, Option<String>, Option<&'static str>);

fn cell_fields(cell: CellOutcome) -> CellFields {
    let CellOutcome { session, text, uncloned, value_from, .. } = cell;
    (session.as_str(), text, uncloned, value_from.map(ValueFrom::as_str))
}

/// The steps for making a log, which runs Python code.
const STEPS_PER_LOG: u32 = 16;

fn error_fields(py: Python<'_>, error: ExecutionError) -> PyResult<Bound<'_, PyAny>> {
    let ExecutionError { name, message, stack, specifier, filename, line, column, cause, .. } =
        error;
    let cause = match cause {
        Some(cause) => cause_field(py, &cause)?,
        None => py.None().into_bound(py),
    };
    (name, message, stack, specifier, filename, line, column, cause).into_bound_py_any(py)
}

/// `(kind, number)` of a throw, with Python's number of it; an exception for a Rust error.
fn cause_field<'py>(py: Python<'py>, cause: &Cause) -> PyResult<Bound<'py, PyAny>> {
    match cause {
        Cause::Call(number) => ("call", *number).into_bound_py_any(py),
        Cause::Promise(number) => ("promise", *number).into_bound_py_any(py),
        other => Ok(match other.error() {
            Some(error) => cause_of(py, error).into_value(py).into_bound(py).into_any(),
            None => py.None().into_bound(py),
        }),
    }
}
