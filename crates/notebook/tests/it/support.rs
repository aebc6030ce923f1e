//! Notebooks and calls for all tests, and whether this machine has a Python.

use futures::executor::block_on;
use isolane_notebook::{
    Args, CallResult, CellInput, ExecuteOptions, Language, Notebook, NotebookOptions, PyOptions,
};

/// A notebook whose kernels have time to react, however busy the machine is.
pub(crate) fn notebook() -> Notebook {
    let python = PyOptions { interrupt_grace_ms: 60_000, ..PyOptions::default() };
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
