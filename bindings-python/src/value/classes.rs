//! The Python classes that cross by kind and are not in Python's stable C interface.

use pyo3::{prelude::*, sync::PyOnceLock, types::PyType};

/// A class that is looked up once.
pub(crate) struct Class {
    module: &'static str,
    name: &'static str,
    found: PyOnceLock<Py<PyType>>,
}

impl Class {
    const fn new(module: &'static str, name: &'static str) -> Self {
        Self { module, name, found: PyOnceLock::new() }
    }

    pub(crate) fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyType>> {
        self.found.import(py, self.module, self.name)
    }

    /// Whether the value's type is that class or a subclass. Its `__class__` is not read: a mock returns the
    /// class that it replaces, and reading it runs the caller's code.
    pub(super) fn has(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        value.get_type().is_subclass(self.get(value.py())?)
    }
}

pub(super) static DATE: Class = Class::new("datetime", "date");
pub(super) static TIME: Class = Class::new("datetime", "time");
pub(super) static TIMEDELTA: Class = Class::new("datetime", "timedelta");
pub(super) static DECIMAL: Class = Class::new("decimal", "Decimal");
pub(super) static UUID: Class = Class::new("uuid", "UUID");
pub(super) static ENUM: Class = Class::new("enum", "Enum");
pub(super) static DATETIME: Class = Class::new("datetime", "datetime");
pub(super) static ORDERED_DICT: Class = Class::new("collections", "OrderedDict");
pub(super) static GENERATOR: Class = Class::new("types", "GeneratorType");
pub(super) static PATTERN: Class = Class::new("re", "Pattern");
pub(super) static MEMORYVIEW: Class = Class::new("builtins", "memoryview");
pub(super) static UNDEFINED: Class = Class::new("isolane._undefined", "Undefined");
pub(super) static SANDBOX_ERROR: Class = Class::new("isolane._errors", "SandboxError");
pub(super) static FUNCTION: Class = Class::new("types", "FunctionType");
pub(super) static METHOD: Class = Class::new("types", "MethodType");
pub(super) static SANDBOX_FUNCTION: Class =
    Class::new("isolane._sandbox_function", "SandboxFunction");
pub(crate) static LOG: Class = Class::new("isolane._result", "CodeExecutionLog");
