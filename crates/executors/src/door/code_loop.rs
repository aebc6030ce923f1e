//! The loop for faces.
//!
//! In: options, inputs, and a function of the face for each run. Out: calls `run`, which settle with a result; news for
//! that function (`questions`), which the face answers by its asks. The model and the executor are those of the face
//! (`parties`).

use std::{
    collections::HashMap,
    future::poll_fn,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::Stream as _;
use isolane::{
    Caller, Completion, Error, ErrorKind, Spelling, Value,
    value::{ErrorClass, Writer},
};
use isolane_door::{Called, Context, Given, System, no_method};

use super::{
    data::{files, json_message, kind_of, result},
    parties::{FaceExecutor, FaceModel, Traits, read_json},
    questions::{Answer, Questions, Raised},
};
use crate::{
    CancellationToken, CodeLoop, CodeLoopBuilder, ExecutorError, LoopEvent, LoopInput, LoopResult,
    ModelError,
};

/// An event with more bytes of text counts as several.
const BYTES_OF_ONE: usize = 64 << 10;

/// As many as an event counts at most.
const MOST_COUNTED: u32 = 64;

/// Opens a loop. Its options are `options`, which are JSON, `files` and `traits`, those of the face's executor.
///
/// # Errors
/// Misuse of an option.
pub fn open(options: &Given, context: &Context) -> Result<Arc<dyn System>, Error> {
    let spelling = context.spelling;
    let Given::Text(json) = options.get("options") else { return Err(no_options()) };
    let serde_json::Value::Object(json) = read_json(json)? else { return Err(no_options()) };
    let traits = Traits::read(options.get("traits"), spelling)?;
    let mut builder = CodeLoop::builder().json_options(&json, spelling)?;
    if let given @ Given::List(_) = options.get("files") {
        let files = files(given.clone());
        builder = builder
            .files(files.map_err(|error| Error::new(ErrorKind::Type, error.message().to_owned()))?);
    }
    let process = std::process::id();
    let made = LoopSystem { builder, traits, spelling, runs: Arc::default(), process };
    // The builder checks the options.
    made.build(&Arc::new(Questions::new(None)))?;
    Ok(Arc::new(made))
}

fn no_options() -> Error {
    Error::new(ErrorKind::Type, "options must be an object")
}

struct LoopSystem {
    builder: CodeLoopBuilder,
    traits: Traits,
    spelling: Spelling,
    runs: Arc<Runs>,
    /// The process that made it: in a forked child its runs are those of its parent.
    process: u32,
}

/// The runs that go on, by the numbers that the face gave them.
#[derive(Default)]
struct Runs(Mutex<HashMap<u64, Run>>);

#[derive(Clone)]
struct Run {
    questions: Arc<Questions>,
    cancellation: CancellationToken,
}

impl Runs {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, Run>> {
        // A panic under the lock leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a run that is over.
struct Ended {
    runs: Arc<Runs>,
    number: u64,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let run = self.runs.open().remove(&self.number);
        drop(run);
    }
}

impl LoopSystem {
    /// The loop of a run that asks those questions.
    fn build(&self, questions: &Arc<Questions>) -> Result<CodeLoop, Error> {
        let executor = FaceExecutor {
            questions: Arc::clone(questions),
            traits: self.traits.clone(),
            spelling: self.spelling,
        };
        let model = Arc::new(FaceModel(Arc::clone(questions)));
        self.builder.clone().model(model).executor(Arc::new(executor)).build()
    }

    /// A run: its number, its input as JSON, whether it was cancelled before it began, whether its events are wanted, and
    /// the face's function.
    fn run(&self, args: Vec<Given>, caller: &Caller) -> Result<Called, Error> {
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or_default();
        let (number, input) = (whole(&next()), input(&next())?);
        let [is_cancelled, streams] = [next(), next()].map(|flag| flag == Given::Bool(true));
        let news = match next() {
            Given::Function(news) => Some(news),
            _ => None,
        };
        let questions = Arc::new(Questions::new(news));
        let code_loop = self.build(&questions)?;
        let cancellation = CancellationToken::new();
        if is_cancelled {
            cancellation.cancel();
        }
        let run = Run { questions: Arc::clone(&questions), cancellation: cancellation.clone() };
        self.runs.open().insert(number, run);
        let ended = Ended { runs: Arc::clone(&self.runs), number };
        let terminated = caller.terminated();
        let run = async move {
            let _ended = ended;
            let until = cancellation.clone();
            let run = async {
                if streams {
                    run_with_events(&questions, &code_loop, input, &until).await
                } else {
                    code_loop.run_until(input, until.clone()).await
                }
            };
            tokio::pin!(run);
            let ended = tokio::select! {
                ended = &mut run => ended,
                // The face is gone.
                _ = terminated => {
                    cancellation.cancel();
                    run.await
                }
            };
            completion(ended)
        };
        // The event loop waits for a stream while somebody reads it, and the face sees to that.
        Ok(if streams { Called::background(run) } else { Called::new(run) })
    }

    fn answer(&self, args: Vec<Given>) {
        let mut args = args.into_iter();
        let mut next = || args.next().unwrap_or_default();
        let Some(run) = self.found(&next()) else { return };
        let (number, kind) = (count(&next()), next());
        let answer = match &kind {
            Given::Text(kind) if kind == "parts" => match next() {
                Given::Text(parts) | Given::Torn(parts) => Answer::Parts(parts),
                _ => Answer::End,
            },
            Given::Text(kind) if kind == "stream" => Answer::Stream,
            Given::Text(kind) if kind == "end" => Answer::End,
            Given::Text(kind) if kind == "executed" => {
                Answer::Executed(result(next(), self.spelling))
            }
            Given::Text(kind) if kind == "refused" => {
                let [kind, message] = [next(), next()].map(|text| match text {
                    Given::Text(text) | Given::Torn(text) => text,
                    _ => String::new(),
                });
                Answer::Executed(Err(ExecutorError::new(kind_of(&kind), message)))
            }
            _ => Answer::Raised,
        };
        run.questions.answer(number, answer);
    }

    /// Live output of an executor: the run, the question, whether it is standard output, and the bytes.
    fn output(&self, args: &[Given]) {
        let [run, number, is_stdout, Given::Bytes(bytes)] = args else { return };
        let run = self.found(run);
        match run.and_then(|run| run.questions.context(count(number))) {
            Some(context) if *is_stdout == Given::Bool(true) => context.stdout(bytes),
            Some(context) => context.stderr(bytes),
            None => {}
        }
    }

    fn found(&self, number: &Given) -> Option<Run> {
        if self.process != std::process::id() {
            return None;
        }
        self.runs.open().get(&whole(number)).cloned()
    }
}

impl System for LoopSystem {
    fn call(&self, method: &str, args: Vec<Given>, caller: &Caller) -> Result<Called, Error> {
        match method {
            "run" => self.run(args, caller),
            _ => Err(no_method(method)),
        }
    }

    fn ask(&self, method: &str, args: Vec<Given>) -> Result<Value, Error> {
        let first = args.first().unwrap_or(&Given::Undefined);
        match method {
            "check" => drop(input(first)?),
            "answer" => self.answer(args),
            "output" => self.output(&args),
            // Events that count as so many were read, and others may come.
            "read" => {
                if let (Some(run), Some(read)) = (self.found(first), args.get(1)) {
                    run.questions.room.add_permits(count(read) as usize);
                }
            }
            "cancel" => {
                if let Some(run) = self.found(first) {
                    run.cancellation.cancel();
                }
            }
            _ => return Err(no_method(method)),
        }
        Ok(Value::undefined())
    }

    fn tells_torn(&self) -> bool {
        true
    }
}

fn input(given: &Given) -> Result<LoopInput, Error> {
    let (Given::Text(json) | Given::Torn(json)) = given else { return Err(no_options()) };
    LoopInput::from_json(read_json(json)?)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn whole(given: &Given) -> u64 {
    if let Given::Number(number) = given { *number as u64 } else { 0 }
}

fn count(given: &Given) -> u32 {
    u32::try_from(whole(given)).unwrap_or(u32::MAX)
}

/// Runs to the end, and hands over the events.
async fn run_with_events(
    questions: &Questions,
    code_loop: &CodeLoop,
    input: LoopInput,
    cancellation: &CancellationToken,
) -> Result<LoopResult, ModelError> {
    let mut events = code_loop.stream_until(input, cancellation);
    loop {
        questions.wait_for_room(1, cancellation).await;
        let mut pinned = Pin::new(&mut events);
        let Some(event) = poll_fn(|context| pinned.as_mut().poll_next(context)).await else {
            break;
        };
        let mut event = event?;
        // Files cross as bytes: as JSON they would hold the event loop up.
        let files = match &mut event {
            LoopEvent::Result { result, .. } => mem::take(&mut result.output_files),
            _ => Vec::new(),
        };
        let more = match &event {
            LoopEvent::Text { text, .. } | LoopEvent::Output { text, .. } => {
                u32::try_from(text.len() / BYTES_OF_ONE)
                    .map_or(MOST_COUNTED, |more| more.min(MOST_COUNTED))
            }
            _ => 0,
        };
        questions.wait_for_room(more, cancellation).await;
        let message = json_message(&serde_json::to_string(&event)?, files);
        questions.tell("event", 1 + more, message);
    }
    events.into_result().ok_or_else(|| "the run has no result".into())
}

/// The end of a run: its result as JSON and its files; or the number of the question that the model has answered with an
/// exception; or another error.
fn completion(ended: Result<LoopResult, ModelError>) -> Completion {
    let message = ended.and_then(|mut result| {
        let files = mem::take(&mut result.files);
        Ok(json_message(&serde_json::to_string(&result)?, files))
    });
    message.map_err(|error| {
        let mut writer = Writer::new();
        if let Some(Raised(number)) = error.downcast_ref() {
            writer.number((*number).into());
            return writer.finish();
        }
        let (class, message) = match error.downcast_ref::<Error>() {
            Some(error) => (class_of(error.kind()), error.message().to_owned()),
            None => (ErrorClass::Error, error.to_string()),
        };
        writer.error(class);
        writer.string(class.name());
        writer.string(&message);
        writer.undefined();
        writer.undefined();
        writer.finish()
    })
}

fn class_of(kind: ErrorKind) -> ErrorClass {
    match kind {
        ErrorKind::Type => ErrorClass::TypeError,
        ErrorKind::Range => ErrorClass::RangeError,
        _ => ErrorClass::Error,
    }
}
