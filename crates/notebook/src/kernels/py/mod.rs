//! The kernel of Python: a process that is started for the first cell, and replaced when it died.
//!
//! In: cells. Out: how they ended, and what that did to the state. `process` is one process, `launch` starts it, with the
//! rights of this process or `confined`, `frame` is what it sends, `writer` what it is sent, `interpreter` finds its
//! program, `beats` are its heartbeats, `kernel` is the program.

#[cfg(unix)]
mod beats;
#[cfg(target_os = "linux")]
mod confined;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "unconfined.rs"]
mod confined;
#[cfg(unix)]
mod frame;
mod interpreter;
#[cfg(unix)]
mod launch;
#[cfg(unix)]
mod process;
#[cfg(not(unix))]
#[path = "elsewhere.rs"]
mod process;
#[cfg(unix)]
mod scratch;
mod shown;
#[cfg(unix)]
mod writer;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Mutex as TurnMutex, time::timeout};

use isolane_confine::program::ProgramConfinement;

#[cfg(unix)]
use self::confined::trial;
#[cfg(not(unix))]
use self::process::trial;
use self::process::{Done, Gone, Process, how};
pub(crate) use self::{
    interpreter::{Interpreter, program},
    shown::may_be_shown,
};
use super::{Cause, Cell, Ended};
use crate::{CellError, Isolation, Mode, PyOptions, clock::Clock, text::words};

/// Why there is no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: String,
    /// The confinement that it would have, if that is known.
    pub(crate) confinement: Option<ProgramConfinement>,
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self { reason, confinement: None }
    }
}

/// The kernel of Python of a notebook and its children.
#[derive(Debug)]
pub(crate) struct PyKernel {
    options: PyOptions,
    variables: BTreeMap<String, String>,
    /// Of output between cells, and of arguments of calls.
    kept_bytes: (usize, usize),
    /// The time between two looks at a process.
    heartbeat: Duration,
    /// Locked while a process is started or ended.
    changing: TurnMutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Arc<Process>>,
    /// The confinement of the last process, or of one that was refused.
    confinement: Option<ProgramConfinement>,
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
        kept_bytes: (usize, usize),
        heartbeat: Duration,
    ) -> Self {
        let (changing, state) = (TurnMutex::default(), Mutex::default());
        Self { options, variables, kept_bytes, heartbeat, changing, state }
    }

    /// Starts a process if there is none. Gives the text about one that died since the last cell, once.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) async fn prepare(&self) -> Result<Option<String>, String> {
        let _changing = self.changing.lock().await;
        let process = self.process().await;
        let notice = self.state().notice.take();
        process.map(|_| notice)
    }

    /// The number of its process, and how often one was replaced since the last reset; `None` if there is no process.
    pub(crate) fn known(&self) -> Option<(Option<u32>, u64)> {
        let state = self.state();
        let process = state.process.as_ref().filter(|process| process.gone().is_none())?;
        Some((process.id(), state.deaths.min(self.options.restarts)))
    }

    /// The confinement of its processes, once it is known.
    pub(crate) fn confinement(&self) -> Option<ProgramConfinement> {
        self.state().confinement
    }

    /// Notes the confinement that its processes would have, if that is known.
    pub(crate) fn note(&self, confinement: Option<ProgramConfinement>) {
        let mut state = self.state();
        state.confinement = confinement.or(state.confinement);
    }

    /// The interpreter of the process that lives.
    pub(crate) fn interpreter(&self) -> Option<Interpreter> {
        let state = self.state();
        let process = state.process.as_ref().filter(|process| process.gone().is_none())?;
        let (version, path) = process.found();
        Some(Interpreter { version: version.to_owned(), path: path.to_owned() })
    }

    /// Runs a cell to its end.
    pub(crate) async fn run(&self, cell: &Cell<'_>) -> Ended {
        let prepared = tokio::select! {
            prepared = self.process_of_cell() => prepared,
            cause = cell.end.ended() => return Ended::before(cause),
        };
        let process = match prepared {
            Ok(Some(process)) => process,
            Ok(None) => {
                let text = words::died_again(&self.state().last_death);
                return Ended::refused("KernelDied", text);
            }
            Err(reason) => {
                let text = words::unavailable(crate::Language::Py, &reason);
                return Ended::refused("Unavailable", text);
            }
        };
        let ended = self.run_in(&process, cell).await;
        if self.options.mode == Mode::PerCall {
            self.end(&process).await;
        }
        ended
    }

    async fn run_in(&self, process: &Arc<Process>, cell: &Cell<'_>) -> Ended {
        let number = process.next_cell();
        let name = format!("<cell {number}>");
        let clock = Clock::start(cell.seconds, cell.wall_seconds);
        (cell.begun)(name.clone(), clock.clone());
        let mut done = process.attend(number, cell);
        let work = async {
            process.begin(number, &name, cell).await;
            process.done(&mut done).await
        };
        // A kernel that reads nothing cannot be begun.
        let cause = tokio::select! {
            ended = work => return self.by_itself(process, ended, cell),
            expired = clock.expired() => Cause::Expired(expired),
            cause = cell.end.ended() => cause,
        };
        cell.desk.end();
        self.interrupt(process, number, done, cause).await
    }

    /// Ends a cell from outside.
    async fn interrupt(
        &self,
        process: &Arc<Process>,
        number: u32,
        mut done: Done,
        cause: Cause,
    ) -> Ended {
        let grace = Duration::from_millis(self.options.interrupt_grace_ms);
        let interrupted = async {
            process.interrupt(number).await;
            process.done(&mut done).await
        };
        let (state, state_text) = match timeout(grace, interrupted).await {
            // It ended, whatever it did with the interruption.
            Ok(Ok(_)) => ("kept", words::INTERRUPTED.to_owned()),
            Ok(Err(gone)) => ("reset", self.lost(process, gone)),
            Err(_) => {
                self.state().process.take_if(|known| Arc::ptr_eq(known, process));
                process.kill().await;
                ("reset", words::KILLED.to_owned())
            }
        };
        Ended { cause: Some(cause), error: None, state, state_text: Some(state_text) }
    }

    /// A cell that ended by itself, or whose process did.
    fn by_itself(
        &self,
        process: &Arc<Process>,
        done: Result<Option<CellError>, Gone>,
        cell: &Cell<'_>,
    ) -> Ended {
        match done {
            Ok(None) => Ended::well(),
            Ok(Some(error)) => {
                let line = format!("{}: {}", error.name, error.message);
                let text = error.stack.clone().unwrap_or(line);
                let state_text = Some(words::KEPT.to_owned());
                Ended { cause: None, error: Some((error, text)), state: "kept", state_text }
            }
            Err(gone) => {
                // Nobody takes the answers of its calls.
                cell.desk.end();
                let text = self.lost(process, gone);
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

    /// A process is gone: what to say of it to a cell.
    fn lost(&self, process: &Arc<Process>, gone: Gone) -> String {
        let mut state = self.state();
        // Of several cells the first one counts the death.
        let is_first = state.process.take_if(|known| Arc::ptr_eq(known, process)).is_some();
        let is_first = is_first || self.options.mode == Mode::PerCall;
        match gone {
            Gone::OutOfMemory => words::out_of_memory(self.options.memory_limit_bytes),
            // Another cell did not react.
            Gone::Killed => words::KILLED.to_owned(),
            Gone::Ended(_) | Gone::Malformed | Gone::Silent => {
                if is_first {
                    state.deaths += 1;
                    state.last_death = how(gone);
                }
                words::ended(&how(gone))
            }
        }
    }

    /// The process, which is started if there is none; `None` if none is started any more before a reset.
    ///
    /// # Errors
    /// The reason why there is none.
    async fn process_of_cell(&self) -> Result<Option<Arc<Process>>, String> {
        let _changing = self.changing.lock().await;
        let process = self.process().await;
        if self.options.mode == Mode::PerCall {
            // The next cell finds another one.
            self.state().process = None;
        }
        process
    }

    async fn process(&self) -> Result<Option<Arc<Process>>, String> {
        let process = self.state().process.clone();
        if let Some(process) = process {
            let Some(gone) = process.gone() else { return Ok(Some(process)) };
            let text = self.lost(&process, gone);
            self.state().notice = Some(text);
        }
        if self.state().deaths > self.options.restarts {
            return Ok(None);
        }
        let kept_bytes = self.kept_bytes;
        let started =
            Process::start(&self.options, &self.variables, kept_bytes, self.heartbeat).await;
        let mut state = self.state();
        match started {
            Ok(process) => {
                state.confinement = process.confinement().or(state.confinement);
                let process = Arc::new(process);
                state.process = Some(Arc::clone(&process));
                Ok(Some(process))
            }
            Err(Refused { reason, confinement }) => {
                state.confinement = confinement.or(state.confinement);
                Err(reason)
            }
        }
    }

    /// Ends the process, when no cell runs in it; the next cell finds a new one.
    pub(crate) async fn reset(&self) {
        let _changing = self.changing.lock().await;
        let process = self.state().process.take();
        if let Some(process) = process {
            self.end(&process).await;
        }
        let mut state = self.state();
        (state.deaths, state.notice) = (0, None);
    }

    /// Ends the process, in which no cell runs, with a notice for the next call. One that died is left to tell so.
    pub(crate) async fn end_idle(&self, notice: String) {
        let _changing = self.changing.lock().await;
        let process = self.state().process.take_if(|process| process.gone().is_none());
        if let Some(process) = process {
            self.state().notice = Some(notice);
            self.end(&process).await;
        }
    }

    async fn end(&self, process: &Process) {
        process.close(Duration::from_millis(self.options.shutdown_grace_ms)).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks whether a kernel could start, and which confinement it would have.
pub(crate) async fn ask(
    options: &PyOptions,
) -> (Result<Interpreter, String>, Option<ProgramConfinement>) {
    let found = match interpreter::ask(options).await {
        Ok(found) if options.isolation == Isolation::Confined => found,
        answer => return (answer, None),
    };
    match trial(options).await {
        Ok(confinement) => (Ok(found), Some(confinement)),
        Err(Refused { reason, confinement }) => (Err(reason), confinement),
    }
}

/// The resident memory of a process.
pub(crate) fn resident_bytes(id: u32) -> Option<u64> {
    process::resident_bytes(id)
}
