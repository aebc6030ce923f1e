//! Values without members: numbers, texts and dates as Python objects.
//!
//! In: the parts of a node. Out: an object of Python. A `-0` stays a `float`, and a lone surrogate stays one.

use isolane::value::{Malformed, Str};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyFloat, PyInt, PyString},
};

use crate::value::{classes::DATETIME, utf16::utf16};

/// An `int` if it is a safe integer, else a `float`; `-0` is a `float`.
pub(super) fn number(py: Python<'_>, value: f64) -> PyResult<Bound<'_, PyAny>> {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
    let is_int = value.fract() == 0.0
        && value.abs() <= MAX_SAFE_INTEGER
        && (value != 0.0 || value.is_sign_positive());
    if !is_int {
        return Ok(PyFloat::new(py, value).into_any());
    }
    #[expect(clippy::cast_possible_truncation, reason = "a safe integer")]
    let int = value as i64;
    Ok(int.into_pyobject(py)?.into_any())
}

pub(super) fn bigint<'py>(
    py: Python<'py>,
    negative: bool,
    magnitude: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let class = py.get_type::<PyInt>();
    let value = class.call_method1("from_bytes", (PyBytes::new(py, magnitude), "little"))?;
    if negative { value.neg() } else { Ok(value) }
}

pub(super) fn string<'py>(py: Python<'py>, text: Str<'_>) -> PyResult<Bound<'py, PyString>> {
    match text {
        Str::Utf8(text) => Ok(PyString::new(py, text)),
        Str::Utf16(units) => utf16(py, units),
    }
}

pub(super) fn datetime(py: Python<'_>, epoch_ms: f64) -> PyResult<Bound<'_, PyAny>> {
    let module = py.import("datetime")?;
    let class = DATETIME.get(py)?;
    let epoch =
        class.call_method1("fromtimestamp", (0, module.getattr("timezone")?.getattr("utc")?))?;
    // Whole milliseconds, so that no second is rounded.
    #[expect(clippy::cast_possible_truncation, reason = "a date's milliseconds are whole and few")]
    let since = module.getattr("timedelta")?.call1((0, 0, 0, epoch_ms as i64))?;
    epoch.add(since)
}

pub(in crate::value) fn malformed(malformed: Malformed) -> PyErr {
    PyValueError::new_err(malformed.to_string())
}
