//! The command line: what `isolane.__main__` runs.

use std::{ffi::OsString, path::PathBuf};

use pyo3::prelude::*;

/// Runs a command to its end, on this thread and without the interpreter's lock; gives its exit code. `arguments` are the
/// words of the command line, the name of the program first.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>, worker_folder: PathBuf) -> u8 {
    py.detach(|| isolane_cli::main(arguments, Some(worker_folder)))
}
