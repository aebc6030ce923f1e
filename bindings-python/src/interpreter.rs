//! The refusal of sub-interpreters: only the main interpreter may import the module.
//!
//! The module looks up classes and exceptions once and keeps them for the whole process. They must not get into
//! another interpreter, which has classes of its own, and must not outlive their interpreter.

#![expect(unsafe_code, reason = "the stable interface has no safe way to ask for an interpreter")]

use pyo3::{exceptions::PyImportError, ffi, prelude::*};

/// The number of the main interpreter.
const MAIN: i64 = 0;

/// An `ImportError` in every interpreter but the main one.
pub(crate) fn refuse_sub_interpreters(_py: Python<'_>) -> PyResult<()> {
    // SAFETY: `_py` proves that this thread is attached to an interpreter, which is therefore alive.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if number == MAIN {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "isolane cannot be imported in a sub-interpreter, only in the main interpreter",
    ))
}
