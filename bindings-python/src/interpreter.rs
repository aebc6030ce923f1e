//! Which interpreters may import the module: the main one.
//!
//! Classes and exceptions are found once and kept for the whole process. One interpreter's must never
//! get into another, where they are strangers, or outlive their own.

#![expect(unsafe_code, reason = "the stable interface has no safe way to ask for an interpreter")]

use pyo3::{exceptions::PyImportError, ffi, prelude::*};

/// The number of the interpreter that the process began with.
const MAIN: i64 = 0;

/// An `ImportError` in every interpreter but the main one.
pub(crate) fn refuse_sub_interpreters(_py: Python<'_>) -> PyResult<()> {
    // SAFETY: `_py` says that this thread is attached to an interpreter, which is then alive.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if number == MAIN {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "isolane cannot be imported in a sub-interpreter, only in the main interpreter",
    ))
}
