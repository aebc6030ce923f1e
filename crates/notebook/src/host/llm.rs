//! `llm(prompt, { model, system, schema })`: a question to a model of the host.
//!
//! In: the arguments of a cell. Out: a call of the host's function, and a text, or with `schema` the value of the answer.

use std::{fmt, future::Future, sync::Arc};

use isolane::{HostError, Spelling, Step, Value, value::Event};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

use super::{HostAnswer, HostFuture, seen::Seen, value};
use crate::{door::message, given::Group};

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
        let text = value::as_text(&answer);
        let is_nothing = matches!(answer.reader().event(), Ok(Event::Undefined | Event::Null));
        if is_nothing || text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(HostError::new("Error", "llm gave an empty answer"));
        }
        match text {
            Some(text) if has_schema => {
                let parsed = serde_json::from_str::<Json>(&text);
                parsed.map(|json| message(&json)).map_err(|error| {
                    HostError::new("SyntaxError", format!("the answer of llm is no JSON: {error}"))
                })
            }
            None if !has_schema => {
                Err(HostError::new("TypeError", "the answer of llm must be a string"))
            }
            _ => Ok(answer),
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
    pub(super) fn read(args: &Value) -> Result<Self, HostError> {
        let refused = |message: String| HostError::new("TypeError", message);
        let seen = Seen::new(args);
        let seen = seen.ok_or_else(|| refused("llm: the arguments are too large".to_owned()))?;
        if let Some((place, kind)) = seen.first_odd() {
            let key = match place.first() {
                Some(Step::Key(key)) => key.as_str(),
                _ => "args",
            };
            return Err(refused(format!("llm: {key} must be JSON, got {kind}")));
        }
        let keys = ["prompt", "model", "system", "schema"];
        let group = Group::new("", &seen.json, &keys, Spelling::Snake)
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
