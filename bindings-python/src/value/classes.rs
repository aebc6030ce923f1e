//! The classes of Python that cross by kind and have no place in its stable C interface.

use pyo3::{prelude::*, sync::PyOnceLock, types::PyType};

/// A class, found once.
pub(super) struct Class {
    module: &'static str,
    name: &'static str,
    found: PyOnceLock<Py<PyType>>,
}

impl Class {
    const fn new(module: &'static str, name: &'static str) -> Self {
        Self { module, name, found: PyOnceLock::new() }
    }

    pub(super) fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyType>> {
        self.found.import(py, self.module, self.name)
    }

    pub(super) fn has(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        value.is_instance(self.get(value.py())?)
    }
}

pub(super) static DATETIME: Class = Class::new("datetime", "datetime");
pub(super) static MEMORYVIEW: Class = Class::new("builtins", "memoryview");
pub(super) static UNDEFINED: Class = Class::new("isolane._undefined", "Undefined");
pub(super) static SANDBOX_ERROR: Class = Class::new("isolane._errors", "SandboxError");
pub(super) static SANDBOX_FUNCTION: Class =
    Class::new("isolane._sandbox_function", "SandboxFunction");
