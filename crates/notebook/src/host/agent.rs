//! `agent(prompt, { agentType, model, context, label, schema })`: a task for a subagent of the host.
//!
//! In: the arguments of a cell. Out: a call of the host's function, which gets a notebook for the subagent, and a text, or
//! with `schema` the value of the answer.

use std::{fmt, future::Future, sync::Arc};

use isolane::{HostError, Spelling, Value};
use serde_json::{Value as Json, json};
use tokio::{task::spawn_blocking, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    HostAnswer, HostFuture,
    asked::{Asked, answered},
    value,
};
use crate::{Notebook, artifacts::Artifacts};

type Function = dyn Fn(String, AgentOptions) -> HostFuture + Send + Sync;

/// The function of the host behind `agent`.
#[derive(Clone)]
pub struct Agent(Arc<Function>);

/// The options of a call of `agent`.
#[derive(Debug)]
pub struct AgentOptions {
    /// `task` if the cell gives none.
    pub agent_type: String,
    /// A name of a model.
    pub model: Option<String>,
    /// Anything that the subagent should know: JSON.
    pub context: Option<Json>,
    /// A short name of the task.
    pub label: Option<String>,
    /// The JSON Schema of the answer, which is then an object or JSON text.
    pub schema: Option<Json>,
    /// The agents above the subagent, and itself: 1 for one that a cell of your own notebook calls.
    pub depth: u64,
    /// The session of the notebook.
    pub session_id: String,
    /// Cancelled when nobody waits for the answer any more.
    pub signal: CancellationToken,
    /// A notebook for the subagent, with the kernels, the functions and the limits of the one whose cell calls. Calls of it end
    /// with `signal`. Dropping it ends its calls too.
    pub notebook: Notebook,
}

impl Agent {
    /// A function that gets the prompt and the options, and answers with a text, with `schema` with a value or JSON text.
    /// It must not block.
    pub fn new<F>(call: impl Fn(String, AgentOptions) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = HostAnswer> + Send + 'static,
    {
        Self(Arc::new(move |prompt, options| Box::pin(call(prompt, options)) as HostFuture))
    }

    /// Answers a call with these arguments of a cell, at that depth.
    pub(super) async fn answer(
        &self,
        request: Request,
        depth: u64,
        notebook: Notebook,
        signal: CancellationToken,
    ) -> HostAnswer {
        let Request { prompt, agent_type, model, context, label, schema } = request;
        let has_schema = schema.is_some();
        let session_id = notebook.session_id().to_owned();
        let options = AgentOptions {
            agent_type,
            model,
            context,
            label,
            schema,
            depth,
            session_id,
            signal,
            notebook,
        };
        answered("agent", (self.0)(prompt, options).await?, has_schema)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Agent").finish_non_exhaustive()
    }
}

/// The arguments of a call.
pub(super) struct Request {
    prompt: String,
    agent_type: String,
    model: Option<String>,
    context: Option<Json>,
    label: Option<String>,
    schema: Option<Json>,
}

impl Request {
    /// Reads `{ prompt, agentType?, model?, context?, label?, schema? }`.
    pub(super) fn read(args: &Value, spelling: Spelling) -> Result<Self, HostError> {
        let keys = ["prompt", "agent_type", "model", "context", "label", "schema"];
        let asked = Asked::read("agent", args, &keys, spelling)?;
        let agent_type = asked.name("agent_type")?;
        Ok(Self {
            prompt: asked.prompt()?,
            agent_type: agent_type.unwrap_or_else(|| "task".to_owned()),
            model: asked.name("model")?,
            context: asked.data("context").cloned(),
            label: asked.name("label")?,
            schema: asked.schema()?,
        })
    }

    /// The name of the task in status events: its label, or else its type.
    pub(super) fn label(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.agent_type.clone())
    }
}

/// A call that the host works on, as status events tell of it.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// `agent-1` for the first one of a notebook.
    pub(super) id: String,
    pub(super) label: String,
    pub(super) began: Instant,
}

impl Task {
    /// Keeps the answer of the agent, if it is a text or plain data, and says where in the event.
    pub(super) async fn keep(&self, answer: &Value, artifacts: &Arc<Artifacts>, event: &mut Json) {
        let text = value::as_text(answer).or_else(|| {
            let data: Json = answer.deserialize().ok()?;
            Some(data.to_string())
        });
        let Some(text) = text else { return };
        let (artifacts, label) = (Arc::clone(artifacts), self.label.clone());
        // It fails only when this library's thread ends.
        let kept = spawn_blocking(move || artifacts.put(&label, &text)).await;
        event["artifact"] = match kept {
            Ok(Ok(artifact)) => artifact.uri.into(),
            Ok(Err(reason)) => format!("not kept: {reason}").into(),
            Err(_) => Json::Null,
        };
    }

    /// `{ op, id, label, status, ms }`, with `running`, `complete` or `error` as the status.
    pub(super) fn event(&self, status: &str) -> Json {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        json!({ "op": "agent", "id": self.id, "label": self.label, "status": status, "ms": ms })
    }
}
