//! Runs of the loop, with models and executors of Python.
//!
//! In: options, an input, and the answers of Python's models and executors. Out: news: what Python is to do, the events of
//! the run, and its end. The loop itself is that of `isolane-executors`, on the library's thread for futures.

use std::{
    collections::{HashMap, VecDeque},
    error::Error as StdError,
    fmt,
    future::poll_fn,
    mem,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{Stream, stream};
use isolane::{Error, Spelling};
use isolane_executors::{
    CancellationToken, CodeBlockDelimiters, CodeExecutionInput, CodeExecutionResult, CodeExecutor,
    CodeLoop, CodeLoopBuilder, ExecFile, ExecutorError, ExecutorErrorKind, InvocationContext,
    LoopEvent, LoopInput, LoopResult, Model, ModelError, ModelReply, ModelRequest, Part,
};
use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{PyList, PyTuple},
};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

use super::{
    PyCodeExecutor,
    data::{
        Output, Traits, duration, files_out, input_out, json_options, kind_of, read_json, result_of,
    },
    inbox::Inbox,
};
use crate::{error::exception, host::PyMailbox, lock::Lock};

/// The most events that wait for their reader. The run rests meanwhile.
const MOST_EVENTS: usize = 256;

/// An event with more bytes of text counts as several.
const BYTES_OF_ONE: usize = 64 << 10;

/// As many as an event counts at most.
const MOST_COUNTED: u32 = 64;

/// A run of the loop. Dropping it cancels the run.
#[pyclass(name = "LoopRun", module = "isolane._isolane", frozen)]
pub(crate) struct PyLoopRun {
    shared: Arc<Shared>,
    /// The loop and its input, until the run begins.
    prepared: Lock<Option<(CodeLoop, LoopInput)>>,
    streams: bool,
    cancellation: CancellationToken,
    room: Arc<Semaphore>,
    process: u32,
}

/// The state that the run and Python share.
struct Shared {
    inbox: Inbox<Item>,
    asked: Lock<Asked>,
}

#[derive(Default)]
struct Asked {
    last: u64,
    open: HashMap<u64, Question>,
}

/// A question to Python that has no answer yet.
struct Question {
    answer: oneshot::Sender<Answer>,
    /// The context of a call of an executor.
    context: Option<InvocationContext>,
}

enum Answer {
    Parts(Vec<Part>),
    Stream,
    End,
    /// Python keeps the exception.
    Raised,
    Executed(Result<CodeExecutionResult, ExecutorError>),
}

/// A piece of news. Numbers are those of questions.
enum Item {
    Generate(u64, String),
    /// The next part of the stream that answered a question.
    Next(u64),
    Execute(u64, CodeExecutionInput, (String, u32, u32)),
    /// Nobody waits for the answer, or reads the stream, any more.
    Dropped(u64),
    /// An event: as how many it counts, its JSON, and the files in it. These cross as bytes: as JSON they would hold
    /// Python's loop up.
    Event(u32, String, Vec<ExecFile>),
    /// The same for the result.
    Ended(Result<(String, Vec<ExecFile>), Failure>),
}

/// The error of a model.
enum Failure {
    /// The exception that answered a question.
    Raised(u64),
    Message(String),
}

/// An exception that Python keeps, by the number of its question.
#[derive(Debug)]
struct Raised(u64);

impl fmt::Display for Raised {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the model raised an exception")
    }
}

impl StdError for Raised {}

impl Shared {
    /// Asks Python. `None`: nobody will answer.
    async fn ask(
        self: &Arc<Self>,
        number: Option<u64>,
        context: Option<InvocationContext>,
        item: impl FnOnce(u64) -> Item,
    ) -> (u64, Option<Answer>) {
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut asked = self.asked.lock();
            let number = number.unwrap_or_else(|| {
                asked.last += 1;
                asked.last
            });
            asked.open.insert(number, Question { answer, context });
            number
        };
        let _dropped = DropGuard { shared: Arc::clone(self), number };
        self.inbox.push(item(number));
        (number, answered.await.ok())
    }

    fn answer(&self, number: u64, answer: Answer) {
        let question = self.asked.lock().open.remove(&number);
        if let Some(question) = question {
            // The question may be dropped at this moment.
            drop(question.answer.send(answer));
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// Tells Python that nobody waits for an answer any more.
struct DropGuard {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        let is_open = self.shared.asked.lock().open.remove(&self.number).is_some();
        if is_open {
            self.shared.inbox.push(Item::Dropped(self.number));
        }
    }
}

/// A model of Python.
#[derive(Debug)]
struct PyModel(Arc<Shared>);

#[async_trait]
impl Model for PyModel {
    async fn generate(&self, request: ModelRequest) -> Result<ModelReply, ModelError> {
        let request = serde_json::to_string(&request)?;
        let generate = |number| Item::Generate(number, request);
        match self.0.ask(None, None, generate).await {
            (_, Some(Answer::Parts(parts))) => Ok(ModelReply::Parts(parts)),
            (number, Some(Answer::Stream)) => {
                let reader = Reader { shared: Arc::clone(&self.0), number, parts: VecDeque::new() };
                Ok(ModelReply::Stream(Box::pin(reader.read())))
            }
            (number, answer) => Err(failed(number, answer.as_ref())),
        }
    }
}

fn failed(number: u64, answer: Option<&Answer>) -> ModelError {
    match answer {
        Some(Answer::Raised) => Box::new(Raised(number)),
        _ => "the model did not answer".into(),
    }
}

/// The reader of a stream of Python.
struct Reader {
    shared: Arc<Shared>,
    number: u64,
    parts: VecDeque<Part>,
}

impl Reader {
    fn read(self) -> impl Stream<Item = Result<Part, ModelError>> + Send {
        stream::unfold(Some(self), |reader| async move {
            let mut reader = reader?;
            loop {
                if let Some(part) = reader.parts.pop_front() {
                    return Some((Ok(part), Some(reader)));
                }
                let number = reader.number;
                match reader.shared.ask(Some(number), None, Item::Next).await.1 {
                    Some(Answer::Parts(parts)) => reader.parts.extend(parts),
                    Some(Answer::End) => return None,
                    answer => return Some((Err(failed(number, answer.as_ref())), None)),
                }
            }
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.inbox.push(Item::Dropped(self.number));
    }
}

/// An executor of Python, or one of the library that needs Python.
#[derive(Debug)]
struct PyExecutor {
    shared: Arc<Shared>,
    is_stateful: bool,
    attempts: u32,
    timeout: Option<Duration>,
    keeps_time: bool,
    delimiters: Vec<CodeBlockDelimiters>,
}

impl PyExecutor {
    fn new(
        shared: Arc<Shared>,
        (is_stateful, attempts, timeout_ms, keeps_time, delimiters): Traits,
    ) -> PyResult<Self> {
        let timeout = timeout_ms.map(|ms| duration("timeout_ms", ms)).transpose()?;
        Ok(Self { shared, is_stateful, attempts, timeout, keeps_time, delimiters })
    }
}

#[async_trait]
impl CodeExecutor for PyExecutor {
    async fn execute_code(
        &self,
        context: &InvocationContext,
        input: CodeExecutionInput,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        let place = (context.invocation_id.clone(), context.turn, context.attempt);
        let execute = |number| Item::Execute(number, input, place);
        let asked = self.shared.ask(None, Some(context.clone()), execute);
        tokio::select! {
            (_, answer) = asked => match answer {
                Some(Answer::Executed(executed)) => executed,
                _ => Err(ExecutorError::new(ExecutorErrorKind::Other, "the executor did not answer")),
            },
            () = context.cancellation.cancelled() => {
                Err(ExecutorError::new(ExecutorErrorKind::Cancelled, "the call was cancelled"))
            }
        }
    }

    fn stateful(&self) -> bool {
        self.is_stateful
    }

    fn error_retry_attempts(&self) -> u32 {
        self.attempts
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn keeps_time(&self) -> bool {
        self.keeps_time
    }

    fn code_block_delimiters(&self) -> Vec<CodeBlockDelimiters> {
        self.delimiters.clone()
    }
}

/// Checks the options of a loop, and what it asks of an executor.
#[pyfunction]
#[pyo3(signature = (options, executor, traits))]
pub(crate) fn check_loop(
    py: Python<'_>,
    options: &str,
    executor: Option<&PyCodeExecutor>,
    traits: Option<Traits>,
) -> PyResult<()> {
    let shared = Shared { inbox: Inbox::silent(), asked: Lock::default() };
    code_loop(py, &Arc::new(shared), options, executor, traits).map(drop)
}

fn code_loop(
    py: Python<'_>,
    shared: &Arc<Shared>,
    options: &str,
    executor: Option<&PyCodeExecutor>,
    traits: Option<Traits>,
) -> PyResult<CodeLoop> {
    let builder = CodeLoop::builder().model(Arc::new(PyModel(Arc::clone(shared))));
    let builder = match (executor, traits) {
        (Some(executor), _) => builder.executor(executor.executor()),
        (None, Some(traits)) => {
            builder.executor(Arc::new(PyExecutor::new(Arc::clone(shared), traits)?))
        }
        (None, None) => builder,
    };
    let options = json_options(options)?;
    let built = builder.json_options(&options, Spelling::Snake).and_then(CodeLoopBuilder::build);
    built.map_err(|error| exception(py, &error))
}

#[pymethods]
impl PyLoopRun {
    /// Prepares a run, whose news are notices of that number. `options` and `input` are JSON. The executor is one of the
    /// library, or else Python's, with those `traits`. `streams`: the events are wanted.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "as many as a run has parts")]
    #[pyo3(signature = (mailbox, number, options, input, executor, traits, streams))]
    fn new(
        py: Python<'_>,
        mailbox: &PyMailbox,
        number: u64,
        options: &str,
        input: &str,
        executor: Option<&PyCodeExecutor>,
        traits: Option<Traits>,
        streams: bool,
    ) -> PyResult<Self> {
        let shared = Shared { inbox: Inbox::new(mailbox, number), asked: Lock::default() };
        let shared = Arc::new(shared);
        let code_loop = code_loop(py, &shared, options, executor, traits)?;
        let refused = |error: Error| exception(py, &error);
        let input = LoopInput::from_json(read_json(input)?).map_err(refused)?;
        Ok(Self {
            shared,
            prepared: Lock::new(Some((code_loop, input))),
            streams,
            cancellation: CancellationToken::new(),
            room: Arc::new(Semaphore::new(MOST_EVENTS)),
            process: std::process::id(),
        })
    }

    /// Begins the run, once.
    fn begin(&self) {
        let Some((code_loop, input)) = self.prepared.lock().take() else { return };
        let (shared, cancellation) = (Arc::clone(&self.shared), self.cancellation.clone());
        let (streams, room) = (self.streams, Arc::clone(&self.room));
        drop(isolane::spawn(async move {
            let guard = EndGuard(shared);
            let ended = if streams {
                run_with_events(&guard.0, &code_loop, input, &cancellation, &room).await
            } else {
                code_loop.run_until(input, cancellation).await
            };
            let ended = ended.map_err(|error| match error.downcast_ref::<Raised>() {
                Some(Raised(number)) => Failure::Raised(*number),
                None => Failure::Message(error.to_string()),
            });
            let ended = ended.and_then(|mut result| {
                let files = mem::take(&mut result.files);
                let text = serde_json::to_string(&result);
                text.map(|text| (text, files)).map_err(|error| Failure::Message(error.to_string()))
            });
            guard.0.inbox.push_last(Item::Ended(ended));
        }));
    }

    /// The news: tuples of a kind, a number and what belongs to it.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for item in self.shared.inbox.take() {
            list.append(described(py, item)?)?;
        }
        Ok(list)
    }

    /// An event was read that counts as so many, and others may come.
    fn read_event(&self, count: u32) {
        self.room.add_permits(count as usize);
    }

    /// Answers with parts, as JSON. For a stream they are the next ones.
    fn answer(&self, py: Python<'_>, number: u64, parts: &str) -> PyResult<()> {
        let parts = Part::list_from_json(read_json(parts)?);
        let parts = parts.map_err(|error| exception(py, &error))?;
        self.shared.answer(number, Answer::Parts(parts));
        Ok(())
    }

    /// Answers with a stream, whose parts are asked for one by one.
    fn stream(&self, number: u64) {
        self.shared.answer(number, Answer::Stream);
    }

    /// The stream is over.
    fn end_stream(&self, number: u64) {
        self.shared.answer(number, Answer::End);
    }

    /// The model has raised an exception, which Python keeps.
    fn raised(&self, number: u64) {
        self.shared.answer(number, Answer::Raised);
    }

    /// Answers with the result of an executor.
    fn executed(&self, number: u64, result: Output) {
        self.shared.answer(number, Answer::Executed(Ok(result_of(result))));
    }

    /// Answers with the error of an executor.
    fn refused(&self, number: u64, kind: &str, message: String) {
        let error = ExecutorError::new(kind_of(kind), message);
        self.shared.answer(number, Answer::Executed(Err(error)));
    }

    /// Live output of an executor.
    fn output(&self, number: u64, is_stdout: bool, bytes: &[u8]) {
        let context = {
            let asked = self.shared.asked.lock();
            asked.open.get(&number).and_then(|question| question.context.clone())
        };
        match context {
            Some(context) if is_stdout => context.stdout(bytes),
            Some(context) => context.stderr(bytes),
            None => {}
        }
    }

    /// Ends the run, with the reason `cancelled`.
    fn cancel(&self) {
        if self.process == std::process::id() {
            self.cancellation.cancel();
        }
    }
}

impl Drop for PyLoopRun {
    fn drop(&mut self) {
        // In a forked child the run is its parent's.
        if self.process == std::process::id() {
            self.cancellation.cancel();
        } else {
            mem::forget(self.cancellation.clone());
            mem::forget(Arc::clone(&self.shared));
        }
    }
}

/// Ends a run whose future panics.
struct EndGuard(Arc<Shared>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let message = "the loop panicked".to_owned();
        self.0.inbox.push_last(Item::Ended(Err(Failure::Message(message))));
    }
}

/// Runs to the end, and hands over the events.
async fn run_with_events(
    shared: &Shared,
    code_loop: &CodeLoop,
    input: LoopInput,
    cancellation: &CancellationToken,
    room: &Semaphore,
) -> Result<LoopResult, ModelError> {
    let mut events = code_loop.stream_until(input, cancellation);
    let wait_for = async |count| {
        tokio::select! {
            // The room is never closed.
            permits = room.acquire_many(count) => drop(permits.map(SemaphorePermit::forget)),
            () = cancellation.cancelled() => {}
        }
    };
    loop {
        wait_for(1).await;
        let mut pinned = std::pin::Pin::new(&mut events);
        let Some(event) = poll_fn(|context| pinned.as_mut().poll_next(context)).await else {
            break;
        };
        let mut event = event?;
        let files = match &mut event {
            LoopEvent::Result { result, .. } => mem::take(&mut result.output_files),
            _ => Vec::new(),
        };
        let more = match &event {
            LoopEvent::Text { text, .. } | LoopEvent::Output { text, .. } => {
                u32::try_from(text.len() / BYTES_OF_ONE).unwrap_or(MOST_COUNTED).min(MOST_COUNTED)
            }
            _ => 0,
        };
        wait_for(more).await;
        shared.inbox.push(Item::Event(1 + more, serde_json::to_string(&event)?, files));
    }
    events.into_result().ok_or_else(|| "the run has no result".into())
}

fn described(py: Python<'_>, item: Item) -> PyResult<Bound<'_, PyTuple>> {
    let none = || py.None().into_bound(py);
    let (kind, number, rest) = match item {
        Item::Generate(number, request) => ("generate", number, request.into_bound_py_any(py)?),
        Item::Next(number) => ("next", number, none()),
        Item::Execute(number, input, place) => {
            ("execute", number, (input_out(py, input), place).into_bound_py_any(py)?)
        }
        Item::Dropped(number) => ("dropped", number, none()),
        Item::Event(count, event, files) => {
            ("event", count.into(), (event, files_out(py, files)).into_bound_py_any(py)?)
        }
        Item::Ended(Ok((result, files))) => {
            ("ended", 0, (result, files_out(py, files)).into_bound_py_any(py)?)
        }
        Item::Ended(Err(Failure::Raised(number))) => ("raised", number, none()),
        Item::Ended(Err(Failure::Message(message))) => {
            ("failed", 0, message.into_bound_py_any(py)?)
        }
    };
    (kind, number, rest).into_pyobject(py)
}
