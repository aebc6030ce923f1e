//! Functions that are answered in Rust, as Python hands them over.
//!
//! In: the name of a function of the kit. Out: an object that crosses as a function. Its calls never reach Python.

use std::sync::Arc;

use isolane::NativeFunction;
use pyo3::{exceptions::PyKeyError, prelude::*};

/// A function that is answered in Rust.
#[pyclass(name = "NativeFunction", module = "isolane._isolane", frozen)]
pub(crate) struct PyNativeFunction(pub(crate) Arc<dyn NativeFunction>);

#[pymethods]
impl PyNativeFunction {
    #[getter]
    fn __name__(&self) -> &str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("<native function {}>", self.0.name())
    }
}

/// The function of the kit with that name.
#[pyfunction]
pub(crate) fn kit_function(name: &str) -> PyResult<PyNativeFunction> {
    let unknown = || PyKeyError::new_err(format!("the kit has no function {name:?}"));
    isolane_systems::function(name).map(PyNativeFunction).ok_or_else(unknown)
}
