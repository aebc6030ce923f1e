//! The kernel of JavaScript: a session of the core, whose cells interleave.
//!
//! In: cells. Out: their logs, displays and values in their records, and how they ended. The session begins with the first
//! cell; a cell that is ended from outside is rolled back by the core.

mod functions;
mod intercepted;
mod modules;
mod place;
mod shown;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use isolane::{
    CellOptions, Cells as Order, EndedBy, Error, ExecutionResult, Runtime, Session, SessionOptions,
    SessionState, SessionUpdate, Status, ValueFrom,
};
use isolane_kit::Kit;
use tokio::{sync::Mutex as TurnMutex, time::timeout};
use uuid::Uuid;

use self::{
    intercepted::{Cells, Recording},
    modules::Modules,
};
use super::{Cause, Cell, Ended};
use crate::{CellError, JsOptions, clock::Clock, files::Files, text::words};

/// The cell that declares `display`, `print`, `tool` and the other names. One text for all sessions, which is compiled once.
static BOOTSTRAP: LazyLock<String> = LazyLock::new(|| {
    let helpers = include_str!("helpers.js").trim_end().trim_end_matches(';');
    include_str!("bootstrap.js").replace("HELPERS", helpers)
});

/// The bridged module of that cell. Nothing else imports it, and no caller has one of this name.
const BOOTSTRAP_MODULE: &str = "isolane-notebook-6f0c4b1e-2a57-4d1c-9d0f-7be1a3c58e24";

/// The cells whose code is kept for positions in later stacks.
const KEPT_CELLS: usize = 100;

/// The longest line of code that an error shows.
const LINE_CHARACTERS: usize = 200;

/// A kernel of JavaScript.
#[derive(Debug)]
pub(crate) struct JsKernel {
    session: Session,
    /// Its end closes the session.
    kit: Option<Kit>,
    cells: Arc<Cells>,
    mark: String,
    /// Those that `env` gives.
    variables: BTreeMap<String, String>,
    /// The modules among the files of the notebook, locked while they are read.
    modules: Option<TurnMutex<Modules>>,
    /// Locked while `display` and the other names come into a session that is new.
    preparing: TurnMutex<()>,
    /// Whether they are there.
    is_ready: AtomicBool,
    history: Mutex<History>,
}

/// The cells so far.
#[derive(Debug, Default)]
struct History {
    count: u32,
    /// The code of the last cells, by their names.
    codes: VecDeque<(String, String)>,
    /// How many cells have completed, and the last of them.
    completed: u64,
    last_completed: String,
}

impl JsKernel {
    /// Opens a session.
    ///
    /// # Errors
    /// Options that the session refuses, or a runtime that is closed.
    pub(crate) fn open(
        options: &JsOptions,
        variables: BTreeMap<String, String>,
        files: Option<Arc<Files>>,
    ) -> Result<Self, Error> {
        let runtime = options.runtime.clone().or_else(|| options.kit.as_ref().map(Kit::runtime));
        let runtime = runtime.unwrap_or_else(Runtime::shared);
        let session_options = SessionOptions {
            imports: options.imports.clone(),
            modules: options.modules.clone(),
            globals: options.globals.clone(),
            language: options.language,
            memory_limit_bytes: options.memory_limit_bytes,
            cells: Order::Interleave,
            checkpoint_bytes: options.checkpoint_bytes,
            ..SessionOptions::default()
        };
        let mut cells = Arc::default();
        let session = runtime.session_with(session_options, |mut request| {
            if let Some(kit) = &options.kit {
                request = kit.session_request(request)?;
            }
            cells = Arc::new(Cells::around(request.interceptor.take()));
            request.interceptor = Some(Arc::clone(&cells) as _);
            // The record of a cell has them.
            request.keeps_logs = false;
            request.helpers_file = Some(place::OWN_FILE.to_owned());
            Ok(request)
        })?;
        let modules = files.map(|files| TurnMutex::new(Modules::new(files, options)));
        Ok(Self {
            session,
            kit: options.kit.clone(),
            cells,
            mark: Uuid::new_v4().to_string(),
            variables,
            modules,
            preparing: TurnMutex::default(),
            is_ready: AtomicBool::new(false),
            history: Mutex::default(),
        })
    }

    /// Runs a cell to its end.
    pub(crate) async fn run(&self, cell: &Cell<'_>) -> Ended {
        if self.has_closed_kit() {
            return Ended::refused("Error", words::KIT_CLOSED.to_owned());
        }
        if let Err(error) = self.prepare().await {
            return Ended::refused("Error", error);
        }
        let in_time = Duration::from_secs(cell.seconds);
        let loaded = tokio::select! {
            loaded = timeout(in_time, self.load(cell.code)) => {
                loaded.unwrap_or_else(|_| Err("its modules could not be read in time".to_owned()))
            }
            cause = cell.end.ended() => return Ended::before(cause),
        };
        if let Err(error) = loaded {
            return Ended::refused("RangeError", error);
        }
        let (name, completed) = self.history().begin(cell.code);
        let clock = Clock::start(cell.seconds, cell.wall_seconds);
        (cell.begun)(name.clone(), clock.clone());
        let execution = self.cells.run(
            &self.session,
            cell.code,
            CellOptions { filename: Some(name.clone()), ..CellOptions::default() },
            Recording::of(cell, &self.mark),
        );
        let (terminator, meter) = (execution.terminator(), execution.meter());
        clock.measure(move || meter.computed());
        let mut cause = None;
        let result = {
            tokio::pin!(execution);
            tokio::select! {
                result = &mut execution => result,
                ended = async {
                    tokio::select! {
                        expired = clock.expired() => Cause::Expired(expired),
                        cause = cell.end.ended() => cause,
                    }
                } => {
                    // While the cell can be measured.
                    clock.worked();
                    cell.desk.end();
                    terminator.terminate(Some("ended from outside"));
                    cause = Some(ended);
                    execution.await
                }
            }
        };
        match result {
            Ok(result) => self.conclude(result, cause, cell, (&name, completed)),
            Err(error) => Ended::refused("Error", error.to_string()),
        }
    }

    /// Hands over the modules that a cell imports, as they are in the files now.
    async fn load(&self, code: &str) -> Result<(), String> {
        let Some(modules) = &self.modules else { return Ok(()) };
        let mut modules = modules.lock().await;
        let Some(changes) = modules.changes(code).await? else { return Ok(()) };
        let (added, removed_modules) = (changes.added(), changes.removed());
        self.update(SessionUpdate { modules: added, removed_modules, ..SessionUpdate::default() })?;
        modules.keep(changes);
        Ok(())
    }

    /// Puts `display`, `print`, `tool` and the other names into a session that is new.
    async fn prepare(&self) -> Result<(), String> {
        let _preparing = self.preparing.lock().await;
        if self.is_ready.load(Ordering::Acquire) {
            return Ok(());
        }
        let options = CellOptions {
            filename: Some(place::OWN_FILE.to_owned()),
            language: Some(isolane::Language::JavaScript),
            ..CellOptions::default()
        };
        let variables: Vec<(&String, &String)> = self.variables.iter().collect();
        let exports =
            functions::functions().with("mark", self.mark.as_str()).with("variables", variables);
        // For this cell alone, so that no error of another one lists it.
        self.update(SessionUpdate {
            imports: [(BOOTSTRAP_MODULE.to_owned(), exports)].into(),
            ..SessionUpdate::default()
        })?;
        let result = self.cells.run(&self.session, &BOOTSTRAP, options, Recording::default()).await;
        self.update(SessionUpdate {
            removed_imports: vec![BOOTSTRAP_MODULE.to_owned()],
            ..SessionUpdate::default()
        })?;
        match result {
            Ok(result) if result.status == Status::Success => {
                self.is_ready.store(true, Ordering::Release);
                Ok(())
            }
            Ok(result) => Err(result.error.map(|error| error.message).unwrap_or_default()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn update(&self, update: SessionUpdate) -> Result<(), String> {
        self.session.update(update).map_err(|error| error.message().to_owned())
    }

    /// `begun`: the name of the cell, and how many had completed before it.
    fn conclude(
        &self,
        result: ExecutionResult,
        cause: Option<Cause>,
        cell: &Cell<'_>,
        (name, completed_before): (&str, u64),
    ) -> Ended {
        let outcome = result.cell.as_deref();
        let session = outcome.map_or(SessionState::Kept, |cell| cell.session);
        if session == SessionState::Reset {
            self.is_ready.store(false, Ordering::Release);
        }
        if session != SessionState::Kept {
            // The calls of the cell are undone with it.
            cell.desk.end();
        } else if result.status != Status::Terminated {
            self.history().complete(name);
        }
        if result.status == Status::Success {
            if let Some(outcome) = outcome
                && !matches!(outcome.value_from, None | Some(ValueFrom::Completion))
            {
                match &result.result {
                    Some(value) => shown::show(value, cell.record),
                    // The value cannot leave the sandbox.
                    None => cell.record.text(outcome.text.as_deref().unwrap_or_default()),
                }
            }
            return Ended::well();
        }
        let state = session.as_str();
        let completed = self.history().completed_since(completed_before);
        let state_text = words::javascript_state(session, completed.as_deref());
        if result.status == Status::Terminated && cause.is_none() && self.has_closed_kit() {
            let cause = Some(Cause::Caller(Some(words::KIT_CLOSED.to_owned())));
            let state_text = Some(words::lost(crate::Language::Js));
            return Ended { cause, error: None, state: SessionState::Reset.as_str(), state_text };
        }
        if result.status == Status::Terminated {
            // The end of another cell has undone this one. It is as if its caller had ended the cell.
            let by_another = match outcome.and_then(|cell| cell.ended_by) {
                Some(EndedBy::Rollback) => Some(Cause::RolledBack),
                Some(EndedBy::Reset) => Some(Cause::Reset),
                // By its caller, or by itself, as one that nothing can resume is.
                Some(EndedBy::Close) | None => None,
            };
            let is_told = match (&cause, &by_another) {
                // The state is that of the end or the beginning of another cell.
                (None, Some(Cause::RolledBack)) => completed.is_some(),
                // A cell that was ended is undone, unless it had not begun.
                _ => session != SessionState::Kept,
            };
            if let Some(cause) = cause.or(by_another) {
                let state_text = Some(state_text).filter(|_| is_told);
                return Ended { cause: Some(cause), error: None, state, state_text };
            }
        }
        let error = self.placed(result.error.unwrap_or_default());
        let text = self.text_of(&error);
        let error = CellError {
            name: error.name,
            message: error.message,
            stack: error.stack,
            filename: error.filename,
            line: error.line,
            column: error.column,
        };
        Ended { cause: None, error: Some((error, text)), state, state_text: Some(state_text) }
    }

    /// The error at the place of its throw, without frames of the notebook.
    fn placed(&self, mut error: isolane::ExecutionError) -> isolane::ExecutionError {
        let Some(stack) = error.stack.as_deref().map(place::without_own) else { return error };
        let history = self.history();
        if let Some(place) = place::thrown_at(&stack, |file| history.code(file)) {
            error.filename = Some(place.file.to_owned());
            (error.line, error.column) = (Some(place.line), Some(place.column));
        }
        error.stack = Some(stack);
        error
    }

    /// `Name: message`, the frames, the line of code with a caret.
    fn text_of(&self, error: &isolane::ExecutionError) -> String {
        // A stack begins with the name and the message.
        let head = || format!("{}: {}", error.name, error.message);
        let mut text = error.stack.clone().unwrap_or_else(head);
        // Code of a file that does not parse has no frames.
        let has_frames = text.contains("\n    at ");
        let history = self.history();
        let code = error.filename.as_deref().and_then(|name| history.code(name));
        if let (Some(code), Some(line), Some(column)) = (code, error.line, error.column)
            && let Some(source) = place::line_of(code, line)
            && source.chars().count() <= LINE_CHARACTERS
        {
            let before = column.saturating_sub(1) as usize;
            // Columns count UTF-16 units; a tab keeps its width.
            let mut units = 0;
            let mut pad = String::new();
            for letter in source.chars().take_while(|letter| {
                units += letter.len_utf16();
                units <= before
            }) {
                pad.push(if letter == '\t' { '\t' } else { ' ' });
            }
            let number = line.to_string();
            let gutter = " ".repeat(number.len());
            text = format!("{}\n{number} | {source}\n{gutter} | {pad}^", text.trim_end());
        } else if let (false, None, Some(file), Some(line), Some(column)) =
            (has_frames, code, &error.filename, error.line, error.column)
        {
            text = format!("{}\n    at {file}:{line}:{column}", text.trim_end());
        }
        text
    }

    fn has_closed_kit(&self) -> bool {
        self.kit.as_ref().is_some_and(Kit::is_closed)
    }

    /// Ends the session.
    pub(crate) async fn close(&self) {
        // A session that is closed already is closed.
        drop(self.session.close().await);
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    /// A cell begins: its name, and how many have completed before.
    fn begin(&mut self, code: &str) -> (String, u64) {
        self.count += 1;
        let name = format!("<cell {}>", self.count);
        self.codes.push_back((name.clone(), code.to_owned()));
        if self.codes.len() > KEPT_CELLS {
            self.codes.pop_front();
        }
        (name, self.completed)
    }

    /// A cell has completed.
    fn complete(&mut self, name: &str) {
        self.completed += 1;
        name.clone_into(&mut self.last_completed);
    }

    /// The last cell that has completed, if any has since so many had.
    fn completed_since(&self, before: u64) -> Option<String> {
        (self.completed > before).then(|| self.last_completed.clone())
    }

    /// The code of a cell.
    fn code(&self, name: &str) -> Option<&str> {
        self.codes.iter().rev().find(|known| known.0 == name).map(|(_, code)| code.as_str())
    }
}
