//! Models: something that goes on with a conversation.
//!
//! In: an instruction and contents. Out: parts, at once or as a stream, or an error, which the loop passes on as it is.

use std::{collections::VecDeque, error::Error, fmt, pin::Pin, sync::Mutex};

use async_trait::async_trait;
use futures_util::Stream;

use crate::{Content, Part};

/// The error of a model. The loop passes it on as it is.
pub type ModelError = Box<dyn Error + Send + Sync>;

/// Parts as they come.
pub type PartStream = Pin<Box<dyn Stream<Item = Result<Part, ModelError>> + Send>>;

/// A language model, as the loop sees it.
///
/// ```
/// use isolane_executors::{Model, ModelError, ModelReply, ModelRequest, Part};
///
/// #[derive(Debug)]
/// struct Parrot;
///
/// #[async_trait::async_trait]
/// impl Model for Parrot {
///     async fn generate(&self, request: ModelRequest) -> Result<ModelReply, ModelError> {
///         let last = request.contents.last().ok_or("nothing was said")?;
///         Ok(ModelReply::Parts(last.parts.clone()))
///     }
/// }
/// ```
#[async_trait]
pub trait Model: Send + Sync + fmt::Debug + 'static {
    /// Goes on with a conversation. Dropping the future, or the stream that it gave, ends the request.
    ///
    /// # Errors
    /// Any error: the run of the loop ends with it.
    async fn generate(&self, request: ModelRequest) -> Result<ModelReply, ModelError>;
}

/// The question to a model.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ModelRequest {
    /// The instruction of the loop, or an empty text.
    pub instruction: String,
    /// The conversation so far.
    pub contents: Vec<Content>,
}

/// The reply of a model.
pub enum ModelReply {
    /// All of it.
    Parts(Vec<Part>),
    /// The parts as they come. Texts without any other field that follow one another are one text.
    Stream(PartStream),
}

impl fmt::Debug for ModelReply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts(parts) => out.debug_tuple("Parts").field(parts).finish(),
            Self::Stream(_) => out.debug_struct("Stream").finish_non_exhaustive(),
        }
    }
}

/// A model for tests, which gives the replies that it was told to give.
///
/// ```
/// use isolane_executors::ScriptedModel;
///
/// let model = ScriptedModel::new();
/// model.push_code("python", "print(6 * 7)");
/// model.push_text("It is 42.");
/// ```
#[derive(Debug, Default)]
pub struct ScriptedModel(Mutex<Script>);

#[derive(Debug, Default)]
struct Script {
    replies: VecDeque<Reply>,
    requests: Vec<ModelRequest>,
}

#[derive(Debug)]
enum Reply {
    Parts(Vec<Part>),
    Stream(Vec<Part>, Option<String>),
    Error(String),
}

impl ScriptedModel {
    /// A model without replies.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Replies with a text.
    pub fn push_text(&self, text: impl Into<String>) {
        self.push_parts(vec![Part::text(text)]);
    }

    /// Replies with a program.
    pub fn push_code(&self, language: &str, code: impl Into<String>) {
        self.push_parts(vec![Part::code(language, code)]);
    }

    /// Replies with parts.
    pub fn push_parts(&self, parts: Vec<Part>) {
        self.push(Reply::Parts(parts));
    }

    /// Replies with a stream of parts.
    pub fn push_stream(&self, parts: Vec<Part>) {
        self.push(Reply::Stream(parts, None));
    }

    /// Replies with a stream that ends with an error.
    pub fn push_broken_stream(&self, parts: Vec<Part>, message: impl Into<String>) {
        self.push(Reply::Stream(parts, Some(message.into())));
    }

    /// Fails.
    pub fn push_error(&self, message: impl Into<String>) {
        self.push(Reply::Error(message.into()));
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.script().requests.clone()
    }

    fn push(&self, reply: Reply) {
        self.script().replies.push_back(reply);
    }

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn generate(&self, request: ModelRequest) -> Result<ModelReply, ModelError> {
        let mut script = self.script();
        script.requests.push(request);
        match script.replies.pop_front() {
            Some(Reply::Parts(parts)) => Ok(ModelReply::Parts(parts)),
            Some(Reply::Stream(parts, error)) => {
                let parts = parts.into_iter().map(Ok);
                let items = parts.chain(error.map(|message| Err(message.into())));
                Ok(ModelReply::Stream(Box::pin(Items(items.collect()))))
            }
            Some(Reply::Error(message)) => Err(message.into()),
            None => {
                let call = script.requests.len();
                Err(format!("the scripted model has no reply left (call {call})").into())
            }
        }
    }
}

/// A stream of a list.
struct Items(VecDeque<Result<Part, ModelError>>);

impl Stream for Items {
    type Item = Result<Part, ModelError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.pop_front())
    }
}
