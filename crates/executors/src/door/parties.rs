//! Models and executors of a face, for the loop.
//!
//! In: requests and inputs of the loop. Out: replies and results, for which the face is asked. Replies are parsed here, on
//! the library's thread for futures.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{Stream, stream};
use isolane::{Error, ErrorKind, Spelling, Value};
use isolane_door::Given;
use serde_json::Value as Json;

use super::{
    data::{input_message, text_message},
    options::{duration, float, spelled},
    questions::{Answer, Questions, Raised},
};
use crate::{
    CodeBlockDelimiters, CodeExecutionInput, CodeExecutionResult, CodeExecutor, ExecutorError,
    ExecutorErrorKind, InvocationContext, Model, ModelError, ModelReply, ModelRequest, Part,
    checks::check_name,
};

/// A model of the face.
#[derive(Debug)]
pub(super) struct FaceModel(pub(super) Arc<Questions>);

#[async_trait]
impl Model for FaceModel {
    async fn generate(&self, request: ModelRequest) -> Result<ModelReply, ModelError> {
        let request = text_message(&serde_json::to_string(&request)?);
        match self.0.ask(None, None, "generate", request).await {
            (_, Some(Answer::Parts(parts))) => Ok(ModelReply::Parts(read_parts(&parts)?)),
            (number, Some(Answer::Stream)) => {
                let reader =
                    Reader { questions: Arc::clone(&self.0), number, parts: VecDeque::new() };
                Ok(ModelReply::Stream(Box::pin(reader.read())))
            }
            (number, answer) => Err(failed(number, answer.as_ref())),
        }
    }
}

/// JSON of a face.
pub(super) fn read_json(text: &str) -> Result<Json, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::new(ErrorKind::Type, format!("this is no JSON: {error}")))
}

fn read_parts(text: &str) -> Result<Vec<Part>, Error> {
    Part::list_from_json(read_json(text)?)
}

fn failed(number: u32, answer: Option<&Answer>) -> ModelError {
    match answer {
        Some(Answer::Raised) => Box::new(Raised(number)),
        _ => "the model did not answer".into(),
    }
}

/// The reader of a stream of the face.
struct Reader {
    questions: Arc<Questions>,
    number: u32,
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
                let asked = reader.questions.ask(Some(number), None, "next", Value::undefined());
                match asked.await.1 {
                    Some(Answer::Parts(parts)) => match read_parts(&parts) {
                        Ok(parts) => reader.parts.extend(parts),
                        Err(error) => return Some((Err(error.into()), None)),
                    },
                    Some(Answer::End) => return None,
                    answer => return Some((Err(failed(number, answer.as_ref())), None)),
                }
            }
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.questions.is_dropped(self.number);
    }
}

/// An executor of the face, or one of the library that the face calls.
#[derive(Debug)]
pub(super) struct FaceExecutor {
    pub(super) questions: Arc<Questions>,
    pub(super) traits: Traits,
    pub(super) spelling: Spelling,
}

#[async_trait]
impl CodeExecutor for FaceExecutor {
    async fn execute_code(
        &self,
        context: &InvocationContext,
        input: CodeExecutionInput,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        let message = input_message(input, context);
        let asked = self.questions.ask(None, Some(context.clone()), "execute", message);
        tokio::select! {
            (_, answer) = asked => match answer {
                Some(Answer::Executed(executed)) => {
                    executed.and_then(|result| checked(result, self.spelling))
                }
                _ => Err(ExecutorError::new(ExecutorErrorKind::Other, "the executor did not answer")),
            },
            () = context.cancellation.cancelled() => Err(ExecutorError::cancelled()),
        }
    }

    fn stateful(&self) -> bool {
        self.traits.is_stateful
    }

    fn error_retry_attempts(&self) -> u32 {
        self.traits.attempts
    }

    fn timeout(&self) -> Option<Duration> {
        self.traits.timeout
    }

    fn keeps_time(&self) -> bool {
        self.traits.keeps_time
    }

    fn code_block_delimiters(&self) -> Vec<CodeBlockDelimiters> {
        self.traits.delimiters.clone()
    }
}

/// The result, unless later programs of the run could not be given its files. Its program has run, and is not tried again.
fn checked(
    result: CodeExecutionResult,
    spelling: Spelling,
) -> Result<CodeExecutionResult, ExecutorError> {
    // Of two files with one name the loop keeps the newer one.
    let names: BTreeSet<&str> = result.output_files.iter().map(|file| &*file.name).collect();
    let refused = names.into_iter().try_for_each(check_name);
    match refused {
        Ok(()) => Ok(result),
        Err(error) => {
            let place = spelled("output_files", spelling);
            let message = format!("the executor failed: {place}: {error}");
            Err(ExecutorError::new(ExecutorErrorKind::BadInput, message))
        }
    }
}

/// The properties of an executor of the face.
#[derive(Clone, Debug)]
pub(super) struct Traits {
    is_stateful: bool,
    attempts: u32,
    timeout: Option<Duration>,
    keeps_time: bool,
    delimiters: Vec<CodeBlockDelimiters>,
}

impl Traits {
    /// The properties that a face has read: whether it is stateful, its attempts, its time in milliseconds, whether it keeps
    /// that itself, its delimiters.
    pub(super) fn read(given: &Given, spelling: Spelling) -> Result<Self, Error> {
        let fields = match given {
            Given::List(fields) => fields.as_slice(),
            _ => &[],
        };
        let field = |at: usize| fields.get(at).unwrap_or(&Given::Undefined);
        let timeout = match field(2) {
            Given::Number(ms) => Some(*ms),
            Given::BigInt(digits) => Some(float(digits)),
            _ => None,
        };
        let name = format!("executor.{}", spelled("timeout_ms", spelling));
        let timeout = timeout.map(|ms| duration(&name, ms)).transpose()?;
        let text = |given: &Given| match given {
            Given::Text(text) | Given::Torn(text) => text.clone(),
            _ => String::new(),
        };
        let delimiters = match field(4) {
            Given::List(pairs) => pairs
                .iter()
                .filter_map(|pair| match pair {
                    Given::List(pair) => Some((text(pair.first()?), text(pair.get(1)?))),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        let attempts = match field(1) {
            Given::Number(attempts) => *attempts as u32,
            _ => 1,
        };
        Ok(Self {
            is_stateful: *field(0) == Given::Bool(true),
            attempts,
            timeout,
            keeps_time: *field(3) == Given::Bool(true),
            delimiters,
        })
    }
}
