//! `isolane notebook`: the cells of a file, in kernels that keep their state.
//!
//! In: a notebook of Jupyter, or a list of cells. Out: the output of each cell as soon as the cell has ended, an exit code,
//! and on demand the file with the outputs in it, or files of their own. `document` reads the file and puts outputs in; `file`
//! writes it; `rendered` writes the others; `shown` shows cells to people.

mod arguments;
mod document;
mod file;
mod rendered;
mod shown;

use std::{
    collections::BTreeMap,
    env,
    path::Path,
    time::{Duration, Instant},
};

use isolane_notebook::{
    Args, CallResult, CellInput, CellResult, CellStatus, ExecuteOptions, Execution, FilesOptions,
    Isolation, JsOptions, Language, Limits, Notebook, NotebookOptions, PyOptions, launcher_in,
};

pub(crate) use self::arguments::NotebookArguments;
use self::{
    document::{Document, Done},
    file::NotebookFile,
    rendered::Rendered,
    shown::Shown,
};
use crate::{
    code::{Given, Installation},
    exit::{self, Ended},
    run::flush,
    signals::Signals,
    sources,
    streams::Streams,
};

/// The longest timeout of a cell, in seconds: the notebook's bound.
const MOST_SECONDS: u64 = 600;

/// The time between two writings of the file while cells run.
const WRITE_TIME: Duration = Duration::from_secs(2);

pub(crate) async fn notebook(
    arguments: NotebookArguments,
    installation: &Installation,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    if arguments.write && arguments.file == Path::new("-") {
        return Err(Ended::misuse("--write needs a file; stdin cannot be written to"));
    }
    let limits = limits(arguments.timeout)?;
    let (path, is_written, given) =
        (arguments.file.clone(), arguments.write, arguments.given.clone());
    let rendered = Rendered::new(&arguments)?;
    let read = move || {
        let text = sources::text(&path)?;
        let file = is_written.then(|| NotebookFile::open(&path, &text)).transpose()?;
        Ok((Given::read(&given)?, Document::read(&text, &path)?, file))
    };
    let (given, document, file) = signals.during(read).await?;
    let has_python = document.cells.iter().any(|cell| cell.language == Language::Py);
    let options = options(&arguments, given, limits.clone(), installation)?;
    let interpreter = options.py.clone();
    let notebook = Notebook::new(options).map_err(|misuse| Ended::misuse(misuse.to_string()))?;
    if has_python && let Some(reason) = notebook.available().await?.py.reason {
        return Err(unavailable(&reason, interpreter).await);
    }
    let streams = Streams::new(true).map_err(|error| Ended::failure(&error))?;
    let mut run = Run {
        shown: Shown::new(document.cells.len()),
        arguments,
        document,
        notebook,
        timeout_seconds: limits.timeout_seconds,
        streams,
        done: Vec::new(),
        file,
        written: Instant::now(),
    };
    let code = run.all(signals).await;
    let written = run.write(signals).await;
    let is_rendered = run.render(&rendered, signals).await;
    run.notebook.close().await?;
    let code = code?;
    written.and(is_rendered).map(|()| code)
}

/// The options of the notebook.
fn options(
    arguments: &NotebookArguments,
    given: Given,
    limits: Limits,
    installation: &Installation,
) -> Result<NotebookOptions, Ended> {
    let js = JsOptions {
        runtime: Some(installation.runtime(arguments.isolation)?),
        memory_limit_bytes: arguments.given.memory,
        globals: given.globals,
        imports: given.imports,
        modules: given.modules,
        ..JsOptions::default()
    };
    let texts = |(name, text): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, text.into_string().ok()?))
    };
    let is_unconfined = arguments.unconfined_python;
    let root = arguments.files.as_ref();
    Ok(NotebookOptions {
        js: Some(js),
        py: Some(python(arguments, installation)),
        files: root.map(FilesOptions::new),
        // Cells of JavaScript see the variables, too: only a caller who trusts the file hands them over.
        env: if is_unconfined {
            env::vars_os().filter_map(texts).collect()
        } else {
            BTreeMap::new()
        },
        limits,
        ..NotebookOptions::default()
    })
}

/// The options of Python.
fn python(arguments: &NotebookArguments, installation: &Installation) -> PyOptions {
    let confined = PyOptions {
        interpreter: arguments.interpreter.clone(),
        worker: installation.worker_folder.as_deref().map(launcher_in),
        ..PyOptions::default()
    };
    if !arguments.unconfined_python {
        return confined;
    }
    // It has what a program of this user has: a folder, the environment, the machine's memory.
    let folder = arguments.file.parent().filter(|_| arguments.file != Path::new("-"));
    let folder = arguments.files.as_deref().or(folder).unwrap_or(Path::new(""));
    PyOptions {
        working_folder: Some(folder.join(".")),
        isolation: Isolation::None,
        memory_limit_bytes: 1 << 50,
        ..confined
    }
}

/// The limits for people, who read more than a model.
fn limits(timeout_ms: Option<u64>) -> Result<Limits, Ended> {
    let timeout_ms = timeout_ms.unwrap_or(MOST_SECONDS * 1000);
    let timeout_seconds = timeout_ms / 1000;
    if !timeout_ms.is_multiple_of(1000) || timeout_seconds > MOST_SECONDS {
        let message = format!("--timeout: a cell has whole seconds, from 1s to {MOST_SECONDS}s");
        return Err(Ended::misuse(message));
    }
    Ok(Limits {
        timeout_seconds,
        code_bytes: 16 << 20,
        output_bytes: 16 << 20,
        output_lines: 1_000_000,
        display_bytes: 1 << 20,
        json_bytes: 16 << 20,
        image_bytes: 32 << 20,
        images: 1000,
        ..Limits::default()
    })
}

/// Why no cell of Python can run, and the flag that changes that, if only the confinement is missing.
async fn unavailable(reason: &str, python: Option<PyOptions>) -> Ended {
    let message = format!("Python: {reason}");
    let Some(confined) = python.filter(|python| python.isolation == Isolation::Confined) else {
        return Ended::misuse(message);
    };
    let unconfined = PyOptions { isolation: Isolation::None, ..confined };
    let options = NotebookOptions { py: Some(unconfined), ..NotebookOptions::default() };
    let Ok(notebook) = Notebook::new(options) else { return Ended::misuse(message) };
    match notebook.available().await {
        Ok(available) if available.py.ok => Ended::misuse(format!(
            "{message}; --unconfined-python runs its cells without confinement: they can do whatever you can"
        )),
        _ => Ended::misuse(message),
    }
}

/// A run of this command.
struct Run {
    arguments: NotebookArguments,
    document: Document,
    notebook: Notebook,
    timeout_seconds: u64,
    streams: Streams,
    shown: Shown,
    /// The cells that have run, in order.
    done: Vec<Done>,
    /// The file that gets the outputs.
    file: Option<NotebookFile>,
    /// When it got some.
    written: Instant,
}

impl Run {
    /// Runs the cells; gives the exit code of the first that failed.
    async fn all(&mut self, signals: &mut Signals) -> Result<u8, Ended> {
        let (mut code, mut is_lost) = (exit::SUCCESS, false);
        for index in 0..self.document.cells.len() {
            let cell = &self.document.cells[index];
            if !self.arguments.json {
                self.shown.begin(index, cell, &self.streams);
            }
            let input = CellInput {
                // A kernel that died twice is started anew only on demand.
                reset: is_lost && cell.language == Language::Py,
                ..CellInput::new(cell.language, cell.code.clone())
            };
            let execution =
                self.notebook.execute(Args { cells: vec![input] }, ExecuteOptions::default());
            let execution = execution
                .map_err(|misuse| Ended::misuse(format!("cell {}: {misuse}", index + 1)))?;
            let (result, signal) = settle(execution, &self.streams, signals).await;
            let failed = code_of(&result);
            if !self.arguments.json {
                self.shown.end(index, &result, self.timeout_seconds, &self.streams);
            }
            let truncation = result.truncation;
            for cell in result.cells {
                if cell.language == Language::Py {
                    is_lost = cell.state == Some("reset");
                }
                self.done.push(Done { result: CellResult { index, ..cell }, truncation });
            }
            self.flush(signal.is_some(), signals).await?;
            if let Some(code) = signal {
                return Ok(code);
            }
            code = if code == exit::SUCCESS { failed } else { code };
            if failed != exit::SUCCESS && !self.arguments.keep_going {
                self.shown.rest(index + 1, &self.streams);
                break;
            }
            if self.written.elapsed() > WRITE_TIME {
                self.write(signals).await?;
            }
        }
        if self.arguments.json {
            self.streams.out(document::line(&self.done));
        }
        self.flush(false, signals).await?;
        Ok(code)
    }

    /// Waits until all is shown.
    async fn flush(&self, is_hurried: bool, signals: &mut Signals) -> Result<(), Ended> {
        flush(&self.streams, is_hurried, signals).await?;
        self.streams.failure().map_or(Ok(()), |error| Err(Ended::unwritten(&error)))
    }

    /// Puts the outputs into the file, if that was asked for.
    async fn write(&mut self, signals: &mut Signals) -> Result<(), Ended> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let text = self.document.with(&self.done);
        let write = move || file.write(text).map(|()| file);
        // A file that could not be written is not tried again.
        self.file = Some(signals.during(write).await?);
        self.written = Instant::now();
        Ok(())
    }

    /// Writes the files that show the cells.
    async fn render(&self, rendered: &Rendered, signals: &mut Signals) -> Result<(), Ended> {
        if rendered.is_none() {
            return Ok(());
        }
        let texts = rendered.texts(&self.document, &self.done);
        signals.during(move || rendered::write(&texts)).await
    }
}

/// Waits for the end of a call; a signal, or an output that nobody reads any more, ends the call.
async fn settle(
    mut execution: Execution,
    streams: &Streams,
    signals: &mut Signals,
) -> (CallResult, Option<u8>) {
    tokio::select! {
        result = &mut execution => (result, None),
        (code, name) = signals.next() => {
            execution.terminate(Some(&format!("{name} ended the cell")));
            (execution.await, Some(code))
        }
        () = streams.closed() => {
            execution.terminate(Some("nobody reads the output any more"));
            (execution.await, None)
        }
    }
}

/// The exit code of a call of one cell.
fn code_of(result: &CallResult) -> u8 {
    match result.cells.first() {
        _ if !result.is_error => exit::SUCCESS,
        // The call itself failed.
        None => exit::FAILURE,
        // Only an end from outside has no exit code, so the name is ours.
        Some(CellResult {
            status: CellStatus::Error, exit_code: None, error: Some(error), ..
        }) if error.name == "Timeout" => exit::TIMEOUT,
        Some(_) => exit::ERROR,
    }
}
