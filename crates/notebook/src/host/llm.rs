//! `llm(prompt, { model, system, schema })`: a question to a model of the host.
//!
//! In: the arguments of a cell. Out: a call of the host's function, and a text, or with `schema` the value of the answer.

use std::{fmt, future::Future, sync::Arc};

use isolane::{HostError, Spelling};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

use super::{HostAnswer, HostFuture};
use crate::given::Group;

type Function = dyn Fn(String, LlmOptions) -> HostFuture + Send + Sync;

/// The function of the host behind `llm`.
#[derive(Clone)]
pub struct Llm(Arc<Function>);

/// The options of a call of `llm`.
#[derive(Clone, Debug)]
pub struct LlmOptions {
    /// `smol`, `default`, `slow`, or any name.
    pub model: String,
    /// The system prompt.
    pub system: Option<String>,
    /// The JSON Schema of the answer, which is then an object or JSON text.
    pub schema: Option<Json>,
    /// Cancelled when nobody waits for the answer any more.
    pub signal: CancellationToken,
}

impl Llm {
    /// A function that gets the prompt and the options, and answers with a text, with `schema` with a value or JSON text.
    /// It must not block.
    pub fn new<F>(call: impl Fn(String, LlmOptions) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = HostAnswer> + Send + 'static,
    {
        Self(Arc::new(move |prompt, options| Box::pin(call(prompt, options)) as HostFuture))
    }

    /// Answers a call with these arguments of a cell.
    pub(super) async fn answer(&self, request: Request, signal: CancellationToken) -> HostAnswer {
        let Request { prompt, model, system, schema } = request;
        let has_schema = schema.is_some();
        let answer = (self.0)(prompt, LlmOptions { model, system, schema, signal }).await?;
        match answer {
            None | Some(Json::Null) => Err(HostError::new("Error", "llm gave an empty answer")),
            Some(Json::String(text)) if text.trim().is_empty() => {
                Err(HostError::new("Error", "llm gave an empty answer"))
            }
            Some(Json::String(text)) if has_schema => {
                let parsed = serde_json::from_str(&text);
                parsed.map(Some).map_err(|error| {
                    HostError::new("SyntaxError", format!("the answer of llm is no JSON: {error}"))
                })
            }
            Some(value) if has_schema || value.is_string() => Ok(Some(value)),
            Some(_) => Err(HostError::new("TypeError", "the answer of llm must be a string")),
        }
    }
}

impl fmt::Debug for Llm {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Llm").finish_non_exhaustive()
    }
}

/// The arguments of a call.
pub(super) struct Request {
    prompt: String,
    pub(super) model: String,
    system: Option<String>,
    schema: Option<Json>,
}

impl Request {
    /// Reads `{ prompt, model?, system?, schema? }`.
    pub(super) fn read(args: &Json) -> Result<Self, HostError> {
        let refused = |message: String| HostError::new("TypeError", message);
        let keys = ["prompt", "model", "system", "schema"];
        let group = Group::new("", args, &keys, Spelling::Snake)
            .map_err(|misuse| refused(format!("llm: {misuse}")))?;
        let text = |key: &str| match group.value(key) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(refused(format!("llm: {key} must be a string"))),
        };
        let prompt =
            text("prompt")?.ok_or_else(|| refused("llm: prompt must be a string".into()))?;
        let schema = match group.value("schema") {
            Some(schema) if !schema.is_object() => {
                return Err(refused("llm: schema must be an object".to_owned()));
            }
            schema => schema.cloned(),
        };
        let model = text("model")?.filter(|model| !model.is_empty());
        Ok(Self {
            prompt,
            model: model.unwrap_or_else(|| "default".to_owned()),
            system: text("system")?,
            schema,
        })
    }
}
