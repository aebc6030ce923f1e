//! What the core refused, as exceptions of Python.

use isolane::{Error, ErrorKind};
use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::PyType,
};

/// The exception for a refusal, in the core's words.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.message().to_owned();
    match error.kind() {
        ErrorKind::Type => PyTypeError::new_err(message),
        ErrorKind::Range => PyValueError::new_err(message),
        ErrorKind::Serialization => serialization_error(py, message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// The exception for a value that cannot be cloned.
pub(crate) fn serialization_error(py: Python<'_>, message: String) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CLASS.import(py, "isolane._errors", "SerializationError") {
        Ok(class) => PyErr::from_type(class.clone(), message),
        Err(failure) => failure,
    }
}
