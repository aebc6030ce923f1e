//! The interceptors of a session of the notebook, and of its cells.
//!
//! In: all that a session tells of its cells. Out: the logs and displays of a cell in its record, and the desk that answers
//! its calls. If the session has a kit, the kit's own interceptors are inside: they are told the same, and take secrets out
//! of logs and results.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use isolane::{
    CallRequest, CellOptions, CellRequest, Error, ExecutionLog, ExecutionResult, LogLevel, Name,
    Rest, RunHandle, RunInterceptor, Session, SessionInterceptor, SessionState, UpdateRequest,
    Value, console_line, value::Event,
};

use super::shown;
use crate::{
    call::Announce,
    host::Desk,
    kernels::{Cell, note},
    record::Record,
    text::screen::Stream,
};

/// The bytes of a log's values that are no strings.
const LOG_BYTES: usize = 256 << 10;

/// The time limit of cells for a kit, in ms: none, as the notebook has the clock.
const NO_LIMIT: f64 = 1e12;

/// The interceptor of the session: gives each cell its record.
#[derive(Debug, Default)]
pub(super) struct Cells {
    /// Locked while a cell is begun.
    beginning: Mutex<()>,
    next: Mutex<Option<Recording>>,
    /// That of a kit.
    inner: Option<Arc<dyn SessionInterceptor>>,
}

/// The interceptor of a cell: writes its logs into its record, and has its desk.
#[derive(Default)]
pub(super) struct Recording {
    record: Option<Record>,
    pub(super) desk: Option<Arc<Desk>>,
    mark: String,
    /// Tells the caller of the cell of commands for a page of the kit.
    announce: Option<Announce>,
    /// That of a kit.
    inner: Option<Arc<dyn RunInterceptor>>,
}

impl Cells {
    /// The interceptor around that of a kit.
    pub(super) fn around(inner: Option<Arc<dyn SessionInterceptor>>) -> Self {
        Self { inner, ..Self::default() }
    }

    /// Queues a cell.
    pub(super) fn run(
        &self,
        session: &Session,
        source: &str,
        options: CellOptions,
        recording: Recording,
    ) -> isolane::Execution {
        let _beginning = self.beginning.lock().unwrap_or_else(PoisonError::into_inner);
        // The session asks for the interceptor before its method returns.
        *self.next() = Some(recording);
        session.run(source, options)
    }

    fn next(&self) -> MutexGuard<'_, Option<Recording>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The interceptor of something that is no cell.
    fn other(
        &self,
        inner: impl FnOnce(&dyn SessionInterceptor) -> Arc<dyn RunInterceptor>,
    ) -> Arc<dyn RunInterceptor> {
        Recording::default().around(self.inner.as_deref().map(inner))
    }
}

impl SessionInterceptor for Cells {
    fn opened(&self, close: Box<dyn Fn() + Send + Sync>) {
        if let Some(inner) = &self.inner {
            inner.opened(close);
        }
    }

    fn cell(&self, cell: &mut CellRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        let recording = self.next().take().unwrap_or_default();
        let inner = self.inner.as_ref().map(|inner| {
            let timeout_ms = cell.timeout_ms.replace(NO_LIMIT);
            let state = inner.cell(cell);
            cell.timeout_ms = timeout_ms;
            state
        });
        Ok(recording.around(inner.transpose()?))
    }

    fn call(&self, call: &mut CallRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        let inner = self.inner.as_ref().map(|inner| inner.call(call));
        Ok(Recording::default().around(inner.transpose()?))
    }

    fn update(&self, update: &UpdateRequest) -> Result<(), Error> {
        self.inner.as_ref().map_or(Ok(()), |inner| inner.update(update))
    }

    fn names(&self, names: &mut Vec<Name>) {
        if let Some(inner) = &self.inner {
            inner.names(names);
        }
    }

    fn outside(&self) -> Arc<dyn RunInterceptor> {
        self.other(SessionInterceptor::outside)
    }

    fn held(&self) -> Arc<dyn RunInterceptor> {
        self.other(SessionInterceptor::held)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Recording").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl RunInterceptor for Recording {
    fn started(&self, run: &RunHandle) {
        self.inside(|inner| inner.started(run));
    }

    fn ended(&self, by_itself: bool, rest: Rest) {
        self.inside(|inner| inner.ended(by_itself, rest));
    }

    fn concluded(&self, state: SessionState) {
        self.inside(|inner| inner.concluded(state));
    }

    fn logged(&self, log: &ExecutionLog) {
        self.inside(|inner| inner.logged(log));
        let Some(record) = &self.record else { return };
        let args = self.report(&log.args).map_or(Cow::Borrowed(&log.args), Cow::Owned);
        if let Some(value) = self.displayed(log.level, &args) {
            match value {
                Displayed::Value(value) => shown::show(&value, record),
                Displayed::Text(text) => record.text(&text),
                Displayed::Event(event) => record.event(event),
                Displayed::Nothing => {}
            }
            return;
        }
        let is_error = matches!(log.level, LogLevel::Warn | LogLevel::Error);
        let stream = if is_error { Stream::Stderr } else { Stream::Stdout };
        let line = console_line::<LOG_BYTES>(&args) + "\n";
        record.stream(stream, line.as_bytes());
    }

    fn report(&self, report: &Value) -> Option<Value> {
        self.inside(|inner| inner.report(report)).flatten()
    }

    fn takes_long(&self, bytes: usize) -> bool {
        self.inside(|inner| inner.takes_long(bytes)).unwrap_or_default()
    }

    fn result(&self, result: ExecutionResult) -> ExecutionResult {
        match &self.inner {
            Some(inner) => inner.result(result),
            None => result,
        }
    }

    fn terminated(&self) {
        self.inside(RunInterceptor::terminated);
    }

    fn inner(&self) -> Option<&Arc<dyn RunInterceptor>> {
        self.inner.as_ref()
    }
}

/// A value that `display` was given.
enum Displayed {
    Value(Value),
    /// The text in place of a value that cannot be copied.
    Text(String),
    /// A status event of a helper.
    Event(serde_json::Value),
    /// Something that code wrote in place of an event.
    Nothing,
}

impl Recording {
    /// That of a cell. `mark`: the notebook's own logs begin with it.
    pub(super) fn of(cell: &Cell<'_>, mark: &str) -> Self {
        Self {
            record: Some(cell.record.clone()),
            desk: Some(Arc::clone(cell.desk)),
            mark: mark.to_owned(),
            announce: cell.announce.cloned(),
            inner: None,
        }
    }

    fn around(self, inner: Option<Arc<dyn RunInterceptor>>) -> Arc<dyn RunInterceptor> {
        if let (Some(inner), Some(announce)) = (&inner, &self.announce) {
            inner.announce_with(Arc::clone(announce));
        }
        if let (Some(inner), Some(record)) = (&inner, &self.record) {
            let inner = Arc::clone(inner);
            record.redact(Arc::new(move |text| {
                inner.report(&Value::serialize(text).ok()?)?.deserialize().ok()
            }));
        }
        Arc::new(Self { inner, ..self })
    }

    fn inside<T>(&self, tell: impl FnOnce(&dyn RunInterceptor) -> T) -> Option<T> {
        self.inner.as_deref().map(tell)
    }

    /// The value of a log that `display` made.
    fn displayed(&self, level: LogLevel, args: &Value) -> Option<Displayed> {
        if level != LogLevel::Debug {
            return None;
        }
        let mut reader = args.reader();
        let Ok(Event::Array(3)) = reader.event() else { return None };
        if !matches!(reader.event(), Ok(Event::String(text)) if text.to_string_lossy() == self.mark)
        {
            return None;
        }
        let (_, kind, value): (String, String, Value) = args.deserialize().ok()?;
        if kind == "event" {
            let event = value.deserialize().ok().and_then(|event| note::event(&event));
            return Some(event.map_or(Displayed::Nothing, Displayed::Event));
        }
        let text = match value.reader().event().ok()? {
            Event::String(text) if kind != "string" => Some(text.to_string_lossy()),
            _ => None,
        };
        Some(text.map_or(Displayed::Value(value), Displayed::Text))
    }
}
