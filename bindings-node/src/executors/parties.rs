//! Models and executors of JavaScript, for the loop.
//!
//! In: requests and inputs of the loop. Out: replies and results, for which JavaScript is asked. Replies are parsed here,
//! on the library's thread for futures.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{Stream, stream};
use isolane::{Error, Value};
use isolane_executors::{
    CodeBlockDelimiters, CodeExecutionInput, CodeExecutionResult, CodeExecutor, CodeLoop, ExecFile,
    ExecutorError, ExecutorErrorKind, InvocationContext, LocalCodeExecutor, Model, ModelError,
    ModelReply, ModelRequest, Part, ScriptedModel,
};

use super::{
    NativeTraits,
    data::{input_message, json_message, read_json},
    options::duration,
    questions::{Answer, Questions, Raised},
};
use crate::wire::news_kind;

/// A model of JavaScript.
#[derive(Debug)]
pub(super) struct NodeModel(pub(super) Arc<Questions>);

#[async_trait]
impl Model for NodeModel {
    async fn generate(&self, request: ModelRequest) -> Result<ModelReply, ModelError> {
        let request = json_message(&serde_json::to_value(&request)?, Vec::new());
        match self.0.ask(None, None, news_kind::GENERATE, request).await {
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

fn read_parts(text: &str) -> Result<Vec<Part>, Error> {
    Part::list_from_json(read_json(text)?)
}

fn failed(number: u32, answer: Option<&Answer>) -> ModelError {
    match answer {
        Some(Answer::Raised) => Box::new(Raised(number)),
        _ => "the model did not answer".into(),
    }
}

/// The reader of a stream of JavaScript.
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
                let asked =
                    reader.questions.ask(Some(number), None, news_kind::NEXT, Value::undefined());
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

/// An executor of JavaScript, or one of the library that needs JavaScript.
#[derive(Debug)]
pub(super) struct NodeExecutor {
    pub(super) questions: Arc<Questions>,
    pub(super) traits: Traits,
}

#[async_trait]
impl CodeExecutor for NodeExecutor {
    async fn execute_code(
        &self,
        context: &InvocationContext,
        input: CodeExecutionInput,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        let message = input_message(input, context);
        let asked = self.questions.ask(None, Some(context.clone()), news_kind::EXECUTE, message);
        tokio::select! {
            (_, answer) = asked => match answer {
                Some(Answer::Executed(executed)) => executed.and_then(checked),
                _ => Err(ExecutorError::new(ExecutorErrorKind::Other, "the executor did not answer")),
            },
            () = context.cancellation.cancelled() => {
                Err(ExecutorError::new(ExecutorErrorKind::Cancelled, "the call was cancelled"))
            }
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
fn checked(result: CodeExecutionResult) -> Result<CodeExecutionResult, ExecutorError> {
    // A loop checks the names of the files that it is given. Of two files with one name it keeps the newer one.
    let names: BTreeSet<&str> = result.output_files.iter().map(|file| &*file.name).collect();
    let file = |name: &str| ExecFile { name: name.to_owned(), ..ExecFile::default() };
    let of_loop = CodeLoop::builder()
        .model(Arc::new(ScriptedModel::new()))
        .executor(Arc::new(LocalCodeExecutor::new()))
        .files(names.into_iter().map(file).collect());
    match of_loop.build() {
        Ok(_) => Ok(result),
        Err(error) => {
            let message = format!("the executor failed: outputFiles: {error}");
            Err(ExecutorError::new(ExecutorErrorKind::BadInput, message))
        }
    }
}

/// The properties of an executor of JavaScript.
#[derive(Clone, Debug)]
pub(super) struct Traits {
    is_stateful: bool,
    attempts: u32,
    timeout: Option<Duration>,
    keeps_time: bool,
    delimiters: Vec<CodeBlockDelimiters>,
}

impl TryFrom<Option<NativeTraits>> for Traits {
    type Error = Error;

    fn try_from(given: Option<NativeTraits>) -> Result<Self, Error> {
        let given = given.unwrap_or(NativeTraits {
            stateful: false,
            attempts: 1,
            timeout_ms: None,
            keeps_time: false,
            delimiters: Vec::new(),
        });
        let timeout = given.timeout_ms.map(|ms| duration("executor.timeoutMs", ms)).transpose()?;
        let pair = |pair: Vec<String>| <[String; 2]>::try_from(pair).ok().map(Into::into);
        let delimiters = given.delimiters.into_iter().filter_map(pair).collect();
        let NativeTraits { stateful: is_stateful, attempts, keeps_time, .. } = given;
        Ok(Self { is_stateful, attempts, timeout, keeps_time, delimiters })
    }
}
