//! `llm(prompt, { model, system, schema })`: a question to a model of the host.
//!
//! In: the arguments of a cell. Out: a call of the host's function, and a text, or with `schema` the value of the answer.

use std::{fmt, future::Future, sync::Arc};

use isolane::{HostError, Spelling, Value};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

use super::{
    HostAnswer, HostFuture,
    asked::{Asked, answered},
};

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
        answered("llm", answer, has_schema)
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
    pub(super) fn read(args: &Value, spelling: Spelling) -> Result<Self, HostError> {
        let asked = Asked::read("llm", args, &["prompt", "model", "system", "schema"], spelling)?;
        let model = asked.name("model")?;
        Ok(Self {
            prompt: asked.prompt()?,
            schema: asked.schema()?,
            model: model.unwrap_or_else(|| "default".to_owned()),
            system: asked.text("system")?,
        })
    }
}
