//! The kernel of Python: a process that is started for the first cell, and replaced when it died.
//!
//! In: cells. Out: how they ended, and what that did to the state. `process` is one process, `frame` what it sends,
//! `writer` what it is sent, `interpreter` finds its program, `kernel` is the program.

#[cfg(unix)]
mod frame;
mod interpreter;
#[cfg(unix)]
mod process;
#[cfg(not(unix))]
#[path = "elsewhere.rs"]
mod process;
#[cfg(unix)]
mod writer;

use std::{collections::BTreeMap, time::Duration};

pub(crate) use self::interpreter::{Interpreter, ask};
use self::process::{Gone, Process, how};
use super::{Cause, Cell, Ended};
use crate::{CellError, Mode, PyOptions, clock::Clock, host::desk::Helpers, text::words};

/// The kernel of Python of a notebook.
#[derive(Debug)]
pub(crate) struct PyKernel {
    options: PyOptions,
    variables: BTreeMap<String, String>,
    helpers: Helpers,
    live_bytes: usize,
    process: Option<Process>,
    /// The cells of the process.
    count: u32,
    /// How often processes died by themselves since the last reset.
    deaths: u64,
    /// How the last one died.
    last_death: String,
    /// The notice for the next call.
    notice: Option<String>,
}

impl PyKernel {
    pub(crate) fn new(
        options: PyOptions,
        variables: BTreeMap<String, String>,
        helpers: Helpers,
        live_bytes: usize,
    ) -> Self {
        Self {
            options,
            variables,
            helpers,
            live_bytes,
            process: None,
            count: 0,
            deaths: 0,
            last_death: String::new(),
            notice: None,
        }
    }

    /// Starts a process if there is none; one that died since the last cell is noticed.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) async fn prepare(&mut self) -> Result<(), String> {
        if let Some(gone) = self.process.as_ref().and_then(Process::gone) {
            self.notice = Some(self.lost(gone));
        }
        if self.process.is_none() && !self.is_spent() {
            let start =
                Process::start(&self.options, &self.variables, &self.helpers, self.live_bytes);
            self.process = Some(start.await?);
            self.count = 0;
        }
        Ok(())
    }

    /// The text about a process that was replaced, once.
    pub(crate) fn take_notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    /// The number of its process.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().and_then(Process::id)
    }

    /// How often a process was replaced since the last reset.
    pub(crate) fn restarts(&self) -> u64 {
        self.deaths.min(self.options.restarts)
    }

    /// The interpreter of the process that lives.
    pub(crate) fn interpreter(&self) -> Option<Interpreter> {
        let process = self.process.as_ref().filter(|process| process.gone().is_none())?;
        let (version, path) = process.found();
        Some(Interpreter { version: version.to_owned(), path: path.to_owned() })
    }

    /// Runs a cell to its end.
    pub(crate) async fn run(&mut self, cell: &Cell<'_>) -> Ended {
        let prepared = tokio::select! {
            prepared = self.prepare() => prepared,
            cause = cell.end.ended() => return Ended::before(cause),
        };
        if let Err(reason) = prepared {
            let text = words::unavailable(crate::Language::Py, &reason);
            return Ended::refused("Unavailable", text);
        }
        let Some(process) = &mut self.process else {
            return Ended::refused("KernelDied", words::died_again(&self.last_death));
        };
        self.count += 1;
        let (number, name) = (self.count, format!("<cell {}>", self.count));
        let clock = Clock::start(cell.seconds, cell.wall_seconds);
        (cell.begun)(name.clone(), clock.clone());
        let work = async {
            process.begin(number, &name, cell).await;
            process.done(number).await
        };
        // A kernel that reads nothing cannot be begun.
        let cause = tokio::select! {
            done = work => return self.by_itself(done).await,
            expired = clock.expired() => Cause::Expired(expired),
            cause = cell.end.ended() => cause,
        };
        cell.desk.end();
        let grace = Duration::from_millis(self.options.interrupt_grace_ms);
        let interrupted = async {
            process.interrupt(number).await;
            process.done(number).await
        };
        match tokio::time::timeout(grace, interrupted).await {
            // It ended, whatever it did with the interruption.
            Ok(Ok(_)) => {
                let state_text = Some(words::INTERRUPTED.to_owned());
                self.after_cell().await;
                Ended { cause: Some(cause), error: None, state: "kept", state_text }
            }
            Ok(Err(gone)) => {
                let state_text = Some(self.lost(gone));
                Ended { cause: Some(cause), error: None, state: "reset", state_text }
            }
            Err(_) => {
                process.kill().await;
                self.process = None;
                let state_text = Some(words::KILLED.to_owned());
                Ended { cause: Some(cause), error: None, state: "reset", state_text }
            }
        }
    }

    /// A cell that ended by itself, or whose process did.
    async fn by_itself(&mut self, done: Result<Option<CellError>, Gone>) -> Ended {
        match done {
            Ok(None) => {
                self.after_cell().await;
                Ended::well()
            }
            Ok(Some(error)) => {
                self.after_cell().await;
                let line = format!("{}: {}", error.name, error.message);
                let text = error.stack.clone().unwrap_or(line);
                let state_text = Some(words::KEPT.to_owned());
                Ended { cause: None, error: Some((error, text)), state: "kept", state_text }
            }
            Err(gone) => {
                let text = self.lost(gone);
                let name = if gone == Gone::OutOfMemory { "MemoryLimit" } else { "KernelDied" };
                let error = CellError {
                    name: name.to_owned(),
                    message: text.clone(),
                    ..CellError::default()
                };
                let error = Some((error, String::new()));
                Ended { cause: None, error, state: "reset", state_text: Some(text) }
            }
        }
    }

    /// The process is gone: what to say of it.
    fn lost(&mut self, gone: Gone) -> String {
        self.process = None;
        if gone == Gone::OutOfMemory {
            return words::out_of_memory(self.options.memory_limit_bytes);
        }
        if gone != Gone::Killed {
            self.deaths += 1;
            self.last_death = how(gone);
        }
        words::ended(&how(gone))
    }

    /// Whether no process is started any more before a reset.
    fn is_spent(&self) -> bool {
        self.deaths > self.options.restarts
    }

    async fn after_cell(&mut self) {
        if self.options.mode == Mode::PerCall {
            self.end().await;
        }
    }

    /// Ends the process; the next cell finds a new one.
    pub(crate) async fn reset(&mut self) {
        self.end().await;
        (self.deaths, self.notice) = (0, None);
    }

    /// Ends the process.
    pub(crate) async fn end(&mut self) {
        if let Some(process) = self.process.take() {
            process.close(Duration::from_millis(self.options.shutdown_grace_ms)).await;
        }
    }
}

/// The resident memory of a process.
pub(crate) fn resident_bytes(id: u32) -> Option<u64> {
    process::resident_bytes(id)
}
