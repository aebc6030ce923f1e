//! What a run came to, as `python/isolane/_result.py` reads it.

use isolane::{ExecutionError, ExecutionLog, ExecutionResult};
use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{PyList, PyTuple},
};

use crate::value::{self, Owners};

/// `(status, result, reports, logs, error, duration_ms, memory_used_bytes)`, without the first
/// `delivered` reports, which Python has already.
pub(crate) fn read<'py>(
    py: Python<'py>,
    outcome: ExecutionResult,
    delivered: usize,
    owners: &Owners<'py>,
) -> PyResult<Bound<'py, PyTuple>> {
    let result = match outcome.result {
        Some(result) => value::read(py, &result, owners)?,
        None => py.None().into_bound(py),
    };
    let reports = PyList::empty(py);
    for report in outcome.reports.into_iter().skip(delivered) {
        reports.append(value::read(py, &report, owners)?)?;
    }
    let logs = PyList::empty(py);
    for ExecutionLog { level, args, timestamp } in outcome.logs {
        logs.append((level.as_str(), value::read(py, &args, owners)?, timestamp))?;
    }
    let error = match outcome.error {
        Some(error) => error_fields(py, error)?,
        None => py.None().into_bound(py),
    };
    (
        outcome.status.as_str(),
        result,
        reports,
        logs,
        error,
        outcome.duration_ms,
        outcome.memory_used_bytes,
    )
        .into_pyobject(py)
}

fn error_fields(py: Python<'_>, error: ExecutionError) -> PyResult<Bound<'_, PyAny>> {
    let ExecutionError { name, message, stack, specifier, filename, line, column } = error;
    (name, message, stack, specifier, filename, line, column).into_bound_py_any(py)
}
