//! Inputs, results and options of executors, as Python has them.

use std::{path::PathBuf, time::Duration};

use isolane_executors::{
    CodeBlockDelimiters, CodeExecutionInput, CodeExecutionResult, ExecFile, ExecutorError,
    ExecutorErrorKind,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyBytes, PyDict, PyFloat, PyInt},
};
use serde_json::{Map, Value as Json};

/// A file: its name, content and media type.
type File = (String, Vec<u8>, Option<String>);
type FileOut<'py> = (String, Bound<'py, PyBytes>, Option<String>);

/// The source, the language, the files and the state of a call.
pub(crate) type Input = (String, String, Vec<File>, Option<String>);
pub(crate) type InputOut<'py> = (String, String, Vec<FileOut<'py>>, Option<String>);

/// Both streams, the files and the exit code of a result.
pub(crate) type Output = (String, String, Vec<File>, Option<i32>);
pub(crate) type OutputOut<'py> = (String, String, Vec<FileOut<'py>>, Option<i32>);

/// The properties of an executor that the loop asks for: whether it is stateful, its attempts, its time in milliseconds,
/// whether it keeps that itself, its delimiters.
pub(crate) type Traits = (bool, u32, Option<f64>, bool, Vec<CodeBlockDelimiters>);

pub(super) fn input_of((code, language, files, execution_id): Input) -> CodeExecutionInput {
    let input_files = files.into_iter().map(file_of).collect();
    CodeExecutionInput { code, language, input_files, execution_id }
}

pub(super) fn input_out(py: Python<'_>, input: CodeExecutionInput) -> InputOut<'_> {
    let CodeExecutionInput { code, language, input_files, execution_id } = input;
    (code, language, files_out(py, input_files), execution_id)
}

pub(super) fn result_of((stdout, stderr, files, exit_code): Output) -> CodeExecutionResult {
    let output_files = files.into_iter().map(file_of).collect();
    CodeExecutionResult { stdout, stderr, output_files, exit_code }
}

pub(super) fn result_out(py: Python<'_>, result: CodeExecutionResult) -> OutputOut<'_> {
    let CodeExecutionResult { stdout, stderr, output_files, exit_code } = result;
    (stdout, stderr, files_out(py, output_files), exit_code)
}

fn file_of((name, content, mime_type): File) -> ExecFile {
    ExecFile { name, content, mime_type }
}

pub(super) fn files_out(py: Python<'_>, files: Vec<ExecFile>) -> Vec<FileOut<'_>> {
    let file = |ExecFile { name, content, mime_type }: ExecFile| {
        (name, PyBytes::new(py, &content), mime_type)
    };
    files.into_iter().map(file).collect()
}

/// The kind with that word; `other` for any other word.
pub(super) fn kind_of(word: &str) -> ExecutorErrorKind {
    use ExecutorErrorKind::{
        BadInput, Cancelled, EngineFailed, EngineMissing, Other, Spawn, Staging, Unsupported,
    };
    let kinds = [BadInput, EngineMissing, EngineFailed, Spawn, Staging, Unsupported, Cancelled];
    kinds.into_iter().find(|kind| kind.as_str() == word).unwrap_or(Other)
}

/// The exception for options that are not valid.
pub(super) fn misuse(error: &ExecutorError) -> PyErr {
    PyValueError::new_err(error.message().to_owned())
}

/// JSON of Python.
pub(super) fn read_json(text: &str) -> PyResult<Json> {
    let refused = |error| PyTypeError::new_err(format!("this is no JSON: {error}"));
    serde_json::from_str(text).map_err(refused)
}

/// Options as a JSON object.
pub(super) fn json_options(text: &str) -> PyResult<Map<String, Json>> {
    match read_json(text)? {
        Json::Object(options) => Ok(options),
        _ => Err(PyTypeError::new_err("options must be a mapping")),
    }
}

/// A time in milliseconds.
pub(super) fn duration(name: &str, ms: f64) -> PyResult<Duration> {
    let time = Duration::try_from_secs_f64(ms / 1e3).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| {
        PyValueError::new_err(format!("{name} must be a positive number of milliseconds, got {ms}"))
    })
}

/// Options by name. One that is not given has its default.
pub(super) struct Options<'a, 'py>(pub(super) &'a Bound<'py, PyDict>);

impl<'py> Options<'_, 'py> {
    fn given(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.get_item(name)
    }

    fn read<T>(&self, name: &str, expected: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        let Some(given) = self.given(name)? else { return Ok(None) };
        given.extract().map(Some).map_err(|_| wrong_type(name, expected, &given))
    }

    pub(super) fn text(&self, name: &str) -> PyResult<Option<String>> {
        self.read(name, "a string")
    }

    pub(super) fn texts(&self, name: &str) -> PyResult<Option<Vec<String>>> {
        self.read(name, "a list of strings")
    }

    pub(super) fn paths(&self, name: &str) -> PyResult<Option<Vec<PathBuf>>> {
        self.read(name, "a list of paths")
    }

    pub(super) fn pairs(&self, name: &str) -> PyResult<Option<Vec<(String, String)>>> {
        self.read(name, "a mapping of strings")
    }

    pub(super) fn flag(&self, name: &str) -> PyResult<bool> {
        let Some(given) = self.given(name)? else { return Ok(false) };
        let flag = given.cast::<PyBool>().map_err(|_| wrong_type(name, "a boolean", &given))?;
        Ok(flag.is_true())
    }

    /// A whole number.
    pub(super) fn count(&self, name: &str, least: u32) -> PyResult<Option<u64>> {
        let Some(given) = self.given(name)? else { return Ok(None) };
        if given.is_instance_of::<PyBool>() || !given.is_instance_of::<PyInt>() {
            return Err(wrong_type(name, "a whole number", &given));
        }
        let count = given.extract::<u64>().ok().filter(|count| *count >= u64::from(least));
        count.map(Some).ok_or_else(|| {
            PyValueError::new_err(format!("{name} must be a whole number of at least {least}"))
        })
    }

    /// A time in milliseconds; `None` is no limit.
    pub(super) fn time(&self, name: &str, default: Option<Duration>) -> PyResult<Option<Duration>> {
        let Some(given) = self.given(name)? else { return Ok(default) };
        if given.is_none() {
            return Ok(None);
        }
        let is_number = given.is_instance_of::<PyInt>() || given.is_instance_of::<PyFloat>();
        if given.is_instance_of::<PyBool>() || !is_number {
            return Err(wrong_type(name, "a number or None", &given));
        }
        // An int that is too large for a float is too long, too.
        duration(name, given.extract().unwrap_or(f64::INFINITY)).map(Some)
    }
}

fn wrong_type(name: &str, expected: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let got = given.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{name} must be {expected}, got {got}"))
}
