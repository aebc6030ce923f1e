//! Notebooks and calls for all tests, and whether this machine has a Python. Built as tests of `isolane-worker` they run in
//! confined kernels.

use futures::executor::block_on;
use isolane_notebook::{
    Args, CallResult, CellInput, ExecuteOptions, Isolation, Language, Notebook, NotebookOptions,
    PyOptions,
};

/// The executable that starts confined kernels, if there is one for these tests.
const WORKER: Option<&str> = option_env!("CARGO_BIN_EXE_isolane-worker");

/// Options of kernels that have time to react, however busy the machine is.
pub(crate) fn python() -> PyOptions {
    PyOptions {
        isolation: if WORKER.is_some() { Isolation::Confined } else { Isolation::None },
        worker: WORKER.map(Into::into),
        interrupt_grace_ms: 60_000,
        start_timeout_ms: 120_000,
        ..PyOptions::default()
    }
}

pub(crate) fn notebook() -> Notebook {
    open(python())
}

/// The options of such kernels.
pub(crate) fn options() -> NotebookOptions {
    NotebookOptions { py: Some(python()), ..NotebookOptions::default() }
}

/// A notebook with these options of Python.
pub(crate) fn open(python: PyOptions) -> Notebook {
    let options = NotebookOptions { py: Some(python), ..NotebookOptions::default() };
    Notebook::new(options).expect("the options are valid")
}

/// Whether there is a Python that can run kernels. A test that needs one says that it did not run.
pub(crate) fn has_python() -> bool {
    let available = block_on(notebook().available()).expect("an answer");
    if !available.py.ok {
        eprintln!("not run, as there is no Python: {:?}", available.py.reason);
    }
    available.py.ok
}

pub(crate) fn cells(cells: &[(Language, &str)]) -> Args {
    Args { cells: cells.iter().map(|(language, code)| CellInput::new(*language, *code)).collect() }
}

pub(crate) fn run(notebook: &Notebook, list: &[(Language, &str)]) -> CallResult {
    notebook.execute(cells(list), ExecuteOptions::default()).expect("valid arguments").wait()
}
