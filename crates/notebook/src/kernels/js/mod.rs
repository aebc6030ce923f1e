//! The kernel of JavaScript: a session of the core.
//!
//! In: cells. Out: their logs, displays and values in their records, and how they ended. The session begins with the first
//! cell; a cell that is ended from outside is rolled back by the core.

mod place;
mod shown;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use isolane::{
    CallRequest, CellOptions, CellRequest, Error, ExecutionLog, ExecutionResult, HostFunction,
    Inputs, LogLevel, RunInterceptor, Runtime, Session, SessionInterceptor, SessionOptions,
    SessionState, SessionUpdate, Status, Value, ValueFrom, console_line, value::Event,
};
use uuid::Uuid;

use super::{Cause, Cell, Ended};
use crate::{
    CellError, JsOptions,
    clock::Clock,
    host::{
        Desk,
        desk::{Helpers, HostCall, no_cell},
    },
    record::Record,
    text::{screen::Stream, words},
};

/// The bytes of a log's values that are no strings.
const LOG_BYTES: usize = 256 << 10;

/// The cells whose code is kept for positions in later stacks.
const KEPT_CELLS: usize = 100;

/// The longest line of code that an error shows.
const LINE_CHARACTERS: usize = 200;

/// A kernel of JavaScript.
#[derive(Debug)]
pub(crate) struct JsKernel {
    session: Session,
    cells: Arc<Cells>,
    /// Whether `display` and the other names are there.
    is_ready: bool,
    mark: String,
    count: u32,
    /// The code of the last cells, by their names.
    codes: VecDeque<(String, String)>,
    helpers: Helpers,
    /// The desk of the cell that runs.
    desk: Arc<Mutex<Option<Arc<Desk>>>>,
}

/// The interceptor of the session: gives each cell its record.
#[derive(Debug, Default)]
struct Cells {
    next: Mutex<Option<Arc<Recording>>>,
}

/// The interceptor of a cell: writes its logs into its record.
#[derive(Debug)]
struct Recording {
    record: Option<Record>,
    mark: String,
}

impl JsKernel {
    /// Opens a session.
    ///
    /// # Errors
    /// Options that the session refuses, or a runtime that is closed.
    pub(crate) fn open(options: &JsOptions, helpers: Helpers) -> Result<Self, Error> {
        let cells = Arc::new(Cells::default());
        let interceptor = Arc::clone(&cells) as Arc<dyn SessionInterceptor>;
        let runtime = options.runtime.clone().unwrap_or_else(Runtime::shared);
        let mark = Uuid::new_v4().to_string();
        let desk = Arc::default();
        let session_options = SessionOptions {
            imports: options.imports.clone(),
            modules: options.modules.clone(),
            globals: options.globals.clone(),
            language: options.language,
            memory_limit_bytes: options.memory_limit_bytes,
            checkpoint_bytes: options.checkpoint_bytes,
            ..SessionOptions::default()
        };
        let session = runtime.session_with(session_options, |mut request| {
            request.interceptor = Some(interceptor);
            // The record of a cell has them.
            request.keeps_logs = false;
            Ok(request)
        })?;
        let codes = VecDeque::new();
        Ok(Self { session, cells, is_ready: false, mark, count: 0, codes, helpers, desk })
    }

    /// Runs a cell to its end.
    pub(crate) async fn run(&mut self, cell: &Cell<'_>) -> Ended {
        if let Err(error) = self.prepare().await {
            return Ended::refused("Error", error);
        }
        self.count += 1;
        let name = format!("<cell {}>", self.count);
        self.codes.push_back((name.clone(), cell.code.to_owned()));
        if self.codes.len() > KEPT_CELLS {
            self.codes.pop_front();
        }
        let clock = Clock::start(cell.seconds, cell.wall_seconds);
        (cell.begun)(name.clone(), clock.clone());
        *lock(&self.desk) = Some(Arc::clone(cell.desk));
        let execution = self.cells.run(
            &self.session,
            cell.code,
            CellOptions { filename: Some(name), ..CellOptions::default() },
            Recording { record: Some(cell.record.clone()), mark: self.mark.clone() },
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
        *lock(&self.desk) = None;
        match result {
            Ok(result) => self.conclude(result, cause, cell.record),
            Err(error) => Ended::refused("Error", error.to_string()),
        }
    }

    /// Puts `display`, `print`, `tool` and `llm` into a session that is new.
    async fn prepare(&mut self) -> Result<(), String> {
        if self.is_ready {
            return Ok(());
        }
        let mark = format!("'{}'", self.mark);
        let names = serde_json::json!(self.helpers.tools).to_string();
        let [concurrency, most] = self.helpers.concurrency;
        let source = include_str!("bootstrap.js")
            .replace("MARK", &mark)
            .replace("TOOLS", &names)
            .replace("CONCURRENCY", &format!("{concurrency}, {most}"));
        let options = CellOptions {
            filename: Some(place::OWN_FILE.to_owned()),
            language: Some(isolane::Language::JavaScript),
            ..CellOptions::default()
        };
        let recording = Recording { record: None, mark: String::new() };
        // For this cell alone, so that no error of another one lists it.
        let call = Inputs::new().with("call", call_function(&self.desk));
        self.update(SessionUpdate {
            imports: [(self.mark.clone(), call)].into(),
            ..SessionUpdate::default()
        })?;
        let result = self.cells.run(&self.session, &source, options, recording).await;
        self.update(SessionUpdate {
            removed_imports: vec![self.mark.clone()],
            ..SessionUpdate::default()
        })?;
        match result {
            Ok(result) if result.status == Status::Success => {
                self.is_ready = true;
                Ok(())
            }
            Ok(result) => Err(result.error.map(|error| error.message).unwrap_or_default()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn update(&self, update: SessionUpdate) -> Result<(), String> {
        self.session.update(update).map_err(|error| error.message().to_owned())
    }

    fn conclude(
        &mut self,
        result: ExecutionResult,
        cause: Option<Cause>,
        record: &Record,
    ) -> Ended {
        let outcome = result.cell.as_deref();
        let session = outcome.map_or(SessionState::Kept, |cell| cell.session);
        if session == SessionState::Reset {
            self.is_ready = false;
        }
        if result.status == Status::Success {
            if let Some(outcome) = outcome
                && !matches!(outcome.value_from, None | Some(ValueFrom::Completion))
            {
                match &result.result {
                    Some(value) => shown::show(value, record),
                    // The value cannot leave the sandbox.
                    None => record.text(outcome.text.as_deref().unwrap_or_default()),
                }
            }
            return Ended::well();
        }
        let state = session.as_str();
        let state_text = Some(words::javascript_state(session).to_owned());
        if result.status == Status::Terminated && cause.is_some() {
            // A cell that was ended is undone, unless it had not begun.
            let state_text = state_text.filter(|_| session != SessionState::Kept);
            return Ended { cause, error: None, state, state_text };
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
        Ended { cause: None, error: Some((error, text)), state, state_text }
    }

    /// The error at the place of its throw, without frames of the notebook.
    fn placed(&self, mut error: isolane::ExecutionError) -> isolane::ExecutionError {
        let Some(stack) = error.stack.as_deref().map(place::without_own) else { return error };
        if let Some(place) = place::thrown_at(&stack, |file| self.code(file)) {
            error.filename = Some(place.file.to_owned());
            (error.line, error.column) = (Some(place.line), Some(place.column));
        }
        error.stack = Some(stack);
        error
    }

    /// The code of a cell.
    fn code(&self, name: &str) -> Option<&str> {
        self.codes.iter().rev().find(|known| known.0 == name).map(|(_, code)| code.as_str())
    }

    /// `Name: message`, the frames, the line of code with a caret.
    fn text_of(&self, error: &isolane::ExecutionError) -> String {
        // A stack begins with the name and the message.
        let head = || format!("{}: {}", error.name, error.message);
        let mut text = error.stack.clone().unwrap_or_else(head);
        let code = error.filename.as_deref().and_then(|name| self.code(name));
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
        }
        text
    }

    /// Ends the session.
    pub(crate) async fn close(self) {
        // A session that is closed already is closed.
        drop(self.session.close().await);
    }
}

/// The function behind `tool` and `llm`: `(helper, name, args)`.
fn call_function(desk: &Arc<Mutex<Option<Arc<Desk>>>>) -> HostFunction {
    let desk = Arc::clone(desk);
    HostFunction::future(move |helper: String, name: String, args: Value| {
        // A call belongs to the cell that runs.
        let desk = lock(&desk).clone();
        async move {
            let Some(desk) = desk else { return Err(no_cell()) };
            desk.answer(HostCall::new(helper, name, args), std::future::ready).await
        }
    })
}

fn lock(desk: &Mutex<Option<Arc<Desk>>>) -> MutexGuard<'_, Option<Arc<Desk>>> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cells {
    fn run(
        &self,
        session: &Session,
        source: &str,
        options: CellOptions,
        recording: Recording,
    ) -> isolane::Execution {
        // The session asks for the interceptor before its method returns, and cells of a kernel are begun one by one.
        *self.next() = Some(Arc::new(recording));
        session.run(source, options)
    }

    fn next(&self) -> MutexGuard<'_, Option<Arc<Recording>>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nobody() -> Arc<dyn RunInterceptor> {
        Arc::new(Recording { record: None, mark: String::new() })
    }
}

impl SessionInterceptor for Cells {
    fn cell(&self, _cell: &mut CellRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        Ok(self.next().take().map_or_else(Self::nobody, |recording| recording as _))
    }

    fn call(&self, _call: &mut CallRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        Ok(Self::nobody())
    }

    fn outside(&self) -> Arc<dyn RunInterceptor> {
        Self::nobody()
    }
}

impl RunInterceptor for Recording {
    fn logged(&self, log: &ExecutionLog) {
        let Some(record) = &self.record else { return };
        if let Some(value) = self.displayed(log) {
            match value {
                Displayed::Value(value) => shown::show(&value, record),
                Displayed::Text(text) => record.text(&text),
            }
            return;
        }
        let is_error = matches!(log.level, LogLevel::Warn | LogLevel::Error);
        let stream = if is_error { Stream::Stderr } else { Stream::Stdout };
        let line = console_line::<LOG_BYTES>(&log.args) + "\n";
        record.stream(stream, line.as_bytes());
    }
}

/// A value that `display` was given.
enum Displayed {
    Value(Value),
    /// The text in place of a value that cannot be copied.
    Text(String),
}

impl Recording {
    /// The value of a log that `display` made.
    fn displayed(&self, log: &ExecutionLog) -> Option<Displayed> {
        if log.level != LogLevel::Debug {
            return None;
        }
        let mut reader = log.args.reader();
        let Ok(Event::Array(3)) = reader.event() else { return None };
        if !matches!(reader.event(), Ok(Event::String(text)) if text.to_string_lossy() == self.mark)
        {
            return None;
        }
        let (_, kind, value): (String, String, Value) = log.args.deserialize().ok()?;
        let text = match value.reader().event().ok()? {
            Event::String(text) if kind != "string" => Some(text.to_string_lossy()),
            _ => None,
        };
        Some(text.map_or(Displayed::Value(value), Displayed::Text))
    }
}
