//! The loop: a model writes programs, an executor runs them, and the model sees what came of them, until it answers.
//!
//! In: a model, an executor and options; then a text or contents. Out: events as they happen, and one [`LoopResult`].
//!
//! `builder` checks the options, `run` is the loop itself, `reply` reads a model's reply and finds its code (`fences`,
//! `nesting`), `call` runs one program, `files` keeps what programs leave, and `history` says how code and results are told
//! to the model. `events` is the queue to the reader.

mod builder;
mod call;
mod event;
mod events;
mod fences;
mod files;
mod history;
mod nesting;
mod reply;
mod run;
mod stream;

use std::{fmt, sync::Arc};

use isolane::{Error, ErrorKind};
use serde::Serialize;
use serde_json::Value as Json;

use self::{builder::Settings, events::Events};
pub use self::{
    builder::{AsText, CodeLoopBuilder},
    event::{LoopEvent, OutputStream},
    stream::LoopStream,
};
use crate::{CancellationToken, Content, ExecFile, ModelError, content::kind_of};

/// A model with an executor for its code.
///
/// Cheap to clone. Runs go on at once and share nothing but the model and the executor.
///
/// ```
/// use std::sync::Arc;
///
/// use isolane_executors::{CodeLoop, IsolateCodeExecutor, Reason, ScriptedModel};
///
/// let model = Arc::new(ScriptedModel::new());
/// model.push_text("Let me compute.\n```js\nconsole.log(6 * 7)\n```");
/// model.push_text("It is 42.");
/// let code_loop = CodeLoop::builder().model(model.clone()).executor(Arc::new(IsolateCodeExecutor::new())).build()?;
///
/// let result = futures::executor::block_on(code_loop.run("What is six times seven?"))?;
/// assert_eq!((result.reason, result.text.as_str()), (Reason::Answered, "It is 42."));
/// let shown = serde_json::to_value(&model.requests()[1].contents[2])?;
/// assert_eq!(shown["parts"][0]["text"], "```tool_output\n42\n\n```");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Clone)]
pub struct CodeLoop(Arc<Settings>);

impl CodeLoop {
    /// A loop to be set up.
    pub fn builder() -> CodeLoopBuilder {
        CodeLoopBuilder::default()
    }

    /// Runs until the model answers without code, or has no turn left.
    ///
    /// # Errors
    /// The error of the model.
    pub async fn run(&self, input: impl Into<LoopInput>) -> Result<LoopResult, ModelError> {
        self.run_until(input, CancellationToken::new()).await
    }

    /// The same, until it is cancelled. It then kills the program that runs, and asks the model no more.
    ///
    /// # Errors
    /// The error of the model.
    pub async fn run_until(
        &self,
        input: impl Into<LoopInput>,
        cancellation: CancellationToken,
    ) -> Result<LoopResult, ModelError> {
        let events = Events::new(false);
        // A program does not outlive a future that is dropped.
        let cancellation = cancellation.child_token();
        let _guard = cancellation.clone().drop_guard();
        run::run(Arc::clone(&self.0), input.into().0, cancellation, events).await
    }

    /// Runs with events, as the stream is read. Dropping it cancels the run.
    pub fn stream(&self, input: impl Into<LoopInput>) -> LoopStream {
        self.stream_until(input, &CancellationToken::new())
    }

    /// The same, until it is cancelled.
    pub fn stream_until(
        &self,
        input: impl Into<LoopInput>,
        cancellation: &CancellationToken,
    ) -> LoopStream {
        let (events, cancellation) = (Events::new(true), cancellation.child_token());
        let run =
            run::run(Arc::clone(&self.0), input.into().0, cancellation.clone(), events.clone());
        LoopStream::new(Box::pin(run), events, cancellation)
    }
}

impl fmt::Debug for CodeLoop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("CodeLoop").field(&self.0).finish()
    }
}

/// The beginning of a run: a text of the user, or contents.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopInput(Vec<Content>);

impl LoopInput {
    /// The beginning as JSON: a text, or a list of contents.
    ///
    /// # Errors
    /// The place of the first that is no content or no part.
    pub fn from_json(json: Json) -> Result<Self, Error> {
        match json {
            Json::String(text) => Ok(text.into()),
            Json::Array(_) => Content::list_from_json(json).map(Self),
            other => {
                let got = kind_of(&other);
                let message =
                    format!("the input must be a string or a list of contents, got {got}");
                Err(Error::new(ErrorKind::Type, message))
            }
        }
    }
}

impl From<&str> for LoopInput {
    fn from(text: &str) -> Self {
        Self(vec![Content::user(text)])
    }
}

impl From<String> for LoopInput {
    fn from(text: String) -> Self {
        Self(vec![Content::user(text)])
    }
}

impl From<Vec<Content>> for LoopInput {
    fn from(contents: Vec<Content>) -> Self {
        Self(contents)
    }
}

/// The reason why a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The model replied without code.
    Answered,
    /// The model had no turn left.
    MaxTurns,
    /// The caller cancelled.
    Cancelled,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoopResult {
    /// Why it is over.
    pub reason: Reason,
    /// The text of the last turn, without thoughts.
    pub text: String,
    /// The whole conversation, with the code and its results.
    pub contents: Vec<Content>,
    /// The files that programs left, the newest of each name, in the order of names.
    pub files: Vec<ExecFile>,
    /// How many turns there were.
    pub turns: u32,
}
