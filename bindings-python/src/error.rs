//! Refusals of the core, as exceptions of Python.

use std::{error::Error as _, io};

use isolane::{Error, ErrorKind};
use pyo3::{
    PyErrArguments,
    exceptions::{PyOSError, PyRuntimeError, PyTypeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::PyType,
};

/// The exception for a refusal, with the core's message.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.message().to_owned();
    if let Some(name) = error.kind().name() {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        return of_package(py, &CLASS, "SandboxError", (name, message));
    }
    let raised = match error.kind() {
        ErrorKind::Type => PyTypeError::new_err(message),
        ErrorKind::Range => PyValueError::new_err(message),
        ErrorKind::Serialization => serialization_error(py, message),
        ErrorKind::QueueFull => {
            static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
            of_package(py, &CLASS, "QueueFullError", message)
        }
        ErrorKind::RuntimeClosed => {
            static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
            of_package(py, &CLASS, "RuntimeClosedError", message)
        }
        _ => PyRuntimeError::new_err(message),
    };
    if let Some(cause) = error.source() {
        raised.set_cause(py, Some(cause_of(py, cause)));
    }
    raised
}

/// A Rust error as an exception: an `OSError` for a system error.
pub(crate) fn cause_of(py: Python<'_>, error: &(dyn std::error::Error + 'static)) -> PyErr {
    let system = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    let Some(number) = system else { return PyRuntimeError::new_err(error.to_string()) };
    let text = py.import("os").and_then(|os| os.getattr("strerror")?.call1((number,)));
    // Python chooses the subclass of `OSError` by the number.
    match text {
        Ok(text) => PyOSError::new_err((number, text.unbind())),
        Err(failure) => failure,
    }
}

/// The exception for a value that cannot be cloned.
pub(crate) fn serialization_error(py: Python<'_>, message: String) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    of_package(py, &CLASS, "SerializationError", message)
}

/// The exception of a class that the package declares, which `class` keeps.
fn of_package(
    py: Python<'_>,
    class: &PyOnceLock<Py<PyType>>,
    name: &str,
    args: impl PyErrArguments + 'static,
) -> PyErr {
    match class.import(py, "isolane._errors", name) {
        Ok(class) => PyErr::from_type(class.clone(), args),
        Err(failure) => failure,
    }
}
