//! Runs of the loop.
//!
//! In: options, and inputs. Out: news: the questions of the run (`questions`), its events, and its end. The loop itself is
//! that of `isolane-executors`, on the library's thread for futures.

use std::{
    future::poll_fn,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::Stream as _;
use isolane::{Error, Spelling};
use isolane_executors::{
    CancellationToken, CodeExecutor, CodeLoop, CodeLoopBuilder, ExecFile, LoopEvent, LoopInput,
    LoopResult, ModelError,
};
use napi::{Either, Result};
use napi_derive::napi;
use serde_json::Value as Json;

use super::{
    NativeExecutor, NativeTraits, Work,
    data::{NativeFile, json_message, json_options, read_json},
    inbox::{Inbox, News},
    parties::{NodeExecutor, NodeModel, Traits},
    questions::Questions,
};
use crate::{bridge::with_bridge, error::Misuse, wire::news_kind};

/// An event with more bytes of text counts as several.
const BYTES_OF_ONE: usize = 64 << 10;

/// As many as an event counts at most.
const MOST_COUNTED: u32 = 64;

/// The options of a loop, and its executor.
#[napi]
pub struct NativeLoop {
    builder: CodeLoopBuilder,
    executor: LoopExecutor,
}

/// An executor of the library, or the properties of JavaScript's.
enum LoopExecutor {
    Library(Arc<dyn CodeExecutor>),
    Own(Traits),
}

/// A run that has not begun.
#[napi]
pub struct NativeLoopRun {
    questions: Arc<Questions>,
    number: u32,
    prepared: Mutex<Option<(CodeLoop, LoopInput)>>,
    streams: bool,
}

impl NativeLoop {
    fn new(
        options: &str,
        files: Option<Vec<NativeFile>>,
        executor: Option<&NativeExecutor>,
        traits: Option<NativeTraits>,
    ) -> std::result::Result<Self, Error> {
        let executor = match (executor, traits) {
            (Some(executor), _) => LoopExecutor::Library(executor.executor()),
            (None, traits) => LoopExecutor::Own(Traits::try_from(traits)?),
        };
        let options = json_options(options)?;
        let mut builder = CodeLoop::builder().json_options(&options, Spelling::Camel)?;
        if let Some(files) = files {
            builder = builder.files(files.into_iter().map(ExecFile::from).collect());
        }
        Ok(Self { builder, executor })
    }

    /// The loop of a run that asks those questions.
    fn build(&self, questions: &Arc<Questions>) -> std::result::Result<CodeLoop, Error> {
        let executor = match &self.executor {
            LoopExecutor::Library(executor) => Arc::clone(executor),
            LoopExecutor::Own(traits) => {
                Arc::new(NodeExecutor { questions: Arc::clone(questions), traits: traits.clone() })
            }
        };
        let model = Arc::new(NodeModel(Arc::clone(questions)));
        self.builder.clone().model(model).executor(executor).build()
    }
}

/// Makes a loop. `options` are JSON. The executor is one of the library, or else JavaScript's, with those `traits`.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn open_loop(
    bridge: u32,
    options: String,
    files: Option<Vec<NativeFile>>,
    executor: Option<&NativeExecutor>,
    traits: Option<NativeTraits>,
) -> Result<Either<NativeLoop, Misuse>> {
    let mailbox = with_bridge(bridge, |bridge| Arc::clone(&bridge.mailbox))?;
    let made = NativeLoop::new(&options, files, executor, traits).and_then(|made| {
        // The builder checks the options.
        let nobody = Arc::new(Questions::new(Arc::new(Inbox::new(mailbox, 0))));
        made.build(&nobody)?;
        Ok(made)
    });
    Ok(match made {
        Ok(made) => Either::A(made),
        Err(error) => Either::B(error.into()),
    })
}

/// Prepares a run, whose `input` is JSON. `streams`: the events are wanted.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn prepare_loop(
    bridge: u32,
    of: &NativeLoop,
    input: String,
    streams: bool,
) -> Result<Either<NativeLoopRun, Misuse>> {
    let (number, mailbox) =
        with_bridge(bridge, |bridge| (bridge.free_work_number(), Arc::clone(&bridge.mailbox)))?;
    let questions = Arc::new(Questions::new(Arc::new(Inbox::new(mailbox, number))));
    let prepared = || {
        let input = LoopInput::from_json(read_json(&input)?)?;
        Ok::<_, Error>((of.build(&questions)?, input))
    };
    Ok(match prepared() {
        Ok(prepared) => {
            let prepared = Mutex::new(Some(prepared));
            Either::A(NativeLoopRun { questions, number, prepared, streams })
        }
        Err(error) => Either::B(error.into()),
    })
}

/// Begins a run, once, and returns the number of its news. `is_cancelled`: it was cancelled before it began.
///
/// # Errors
/// For a bridge that is not open.
#[napi(catch_unwind)]
pub fn begin_loop(bridge: u32, run: &NativeLoopRun, is_cancelled: bool) -> Result<u32> {
    let prepared = run.prepared.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((code_loop, input)) = prepared else { return Ok(run.number) };
    let cancellation = CancellationToken::new();
    if is_cancelled {
        cancellation.cancel();
    }
    let questions = Arc::clone(&run.questions);
    with_bridge(bridge, |bridge| {
        let work = Work {
            inbox: Arc::clone(&questions.inbox),
            cancellation: cancellation.clone(),
            questions: Some(Arc::clone(&questions)),
        };
        bridge.works.borrow_mut().insert(run.number, work);
    })?;
    let streams = run.streams;
    drop(isolane::spawn(async move {
        let guard = EndGuard(questions);
        let ended = if streams {
            run_with_events(&guard.0, &code_loop, input, &cancellation).await
        } else {
            code_loop.run_until(input, cancellation).await
        };
        guard.0.end(ended);
    }));
    Ok(run.number)
}

/// Ends a run whose future panics.
struct EndGuard(Arc<Questions>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.fail("the loop panicked".into());
    }
}

/// Runs to the end, and hands over the events.
async fn run_with_events(
    questions: &Questions,
    code_loop: &CodeLoop,
    input: LoopInput,
    cancellation: &CancellationToken,
) -> std::result::Result<LoopResult, ModelError> {
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
        let event: Json = serde_json::to_value(&event)?;
        let message = json_message(&event, files);
        questions.inbox.push(News::new(news_kind::EVENT, 1 + more, message));
    }
    events.into_result().ok_or_else(|| "the run has no result".into())
}
