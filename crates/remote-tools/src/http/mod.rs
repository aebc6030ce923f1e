//! Tools over HTTP: each call is one request.
//!
//! In: arguments. Out: the answer of the server: JSON, or its text. A status of 300 or more is an error with that status as
//! its code; no redirect is followed. An answer has 30 seconds, and at most 4 MiB. `target` makes the address of a call.

mod target;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use isolane::ErrorCode;
use isolane_environment::{ToolContext, ToolDescription, ToolError, ToolHandler};
use reqwest::{
    Client, Method, Response, Url,
    header::{CONTENT_TYPE, HeaderMap},
};
use serde_json::{Map, Value as Json};

use crate::{client::cause, hidden::Hidden};

/// The time that a server has to answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes of an answer.
const MOST_BYTES: usize = 4 << 20;

/// The most characters of an answer that are shown in an error.
const MOST_SHOWN: usize = 1000;

/// The tools of one service.
#[derive(Clone)]
pub(crate) struct HttpService {
    pub(crate) name: String,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) hidden: Hidden,
    pub(crate) tools: Vec<HttpTool>,
}

/// Shows no value.
impl std::fmt::Debug for HttpService {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("HttpService").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One tool.
#[derive(Clone, Debug)]
pub(crate) struct HttpTool {
    pub(crate) name: String,
    pub(crate) method: Method,
    /// The path behind that of the service's address.
    pub(crate) parts: Vec<PathPart>,
    pub(crate) description: ToolDescription,
}

/// A part of a path.
#[derive(Clone, Debug)]
pub(crate) enum PathPart {
    /// As it stands.
    Text(String),
    /// The argument of that name.
    Field(String),
}

/// Answers the calls of one tool.
pub(crate) struct Requests {
    pub(crate) client: Client,
    pub(crate) service: Arc<HttpService>,
    pub(crate) tool: HttpTool,
    /// `weather.forecast`.
    pub(crate) shown_name: String,
}

#[async_trait]
impl ToolHandler for Requests {
    async fn call(&self, args: Json, context: ToolContext) -> Result<Json, ToolError> {
        let args = match args {
            Json::Object(args) => args,
            _ => Map::new(),
        };
        tokio::select! {
            // Dropping a request ends it.
            () = context.signal.cancelled() => Err(self.error("the execution has ended")),
            answer = tokio::time::timeout(TIMEOUT, self.answer(args)) => answer.unwrap_or_else(|_| {
                let ms = TIMEOUT.as_millis();
                let message = format!("{} did not answer within {ms} ms", self.shown_name);
                Err(ToolError::new("Error", message))
            }),
        }
    }
}

impl Requests {
    async fn answer(&self, args: Map<String, Json>) -> Result<Json, ToolError> {
        let Self { service, tool, shown_name, .. } = self;
        let target = target::target(&service.url, tool, args)
            .map_err(|fault| ToolError::new("TypeError", format!("{shown_name}: {fault}")))?;
        let mut request =
            self.client.request(tool.method.clone(), target.url).headers(service.headers.clone());
        if let Some(body) = target.body {
            if !service.headers.contains_key(CONTENT_TYPE) {
                request = request.header(CONTENT_TYPE, "application/json");
            }
            request = request.body(body);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let kind = media_type(&response);
        let is_success = status < 300;
        let bytes = match self.body(response).await {
            Ok(bytes) => bytes,
            // The status says more than a body that is too large.
            Err(_) if !is_success => Vec::new(),
            Err(error) => return Err(error),
        };
        if !is_success {
            let text = String::from_utf8_lossy(&bytes);
            let text: String = service.hidden.hide(text.trim()).chars().take(MOST_SHOWN).collect();
            let reason = if text.is_empty() { reason(status) } else { text };
            let message = format!("{shown_name} answered {status}: {reason}");
            return Err(
                ToolError::new("Error", message).with_code(ErrorCode::Number(f64::from(status)))
            );
        }
        self.value(bytes, &kind)
    }

    /// The body, as far as it may go.
    async fn body(&self, mut response: Response) -> Result<Vec<u8>, ToolError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if chunk.len() > MOST_BYTES - bytes.len() {
                let name = &self.shown_name;
                let message = format!("{name}: the answer is larger than {MOST_BYTES} bytes");
                return Err(ToolError::new("RangeError", message));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn value(&self, bytes: Vec<u8>, kind: &str) -> Result<Json, ToolError> {
        if bytes.is_empty() {
            return Ok(Json::Null);
        }
        if kind == "application/json" || kind.ends_with("+json") {
            return serde_json::from_slice(&bytes)
                .map_err(|error| self.error(&format!("the answer is no JSON: {error}")));
        }
        String::from_utf8(bytes)
            .map(Json::String)
            .map_err(|_| self.error("the answer is neither JSON nor text in UTF-8"))
    }

    fn error(&self, problem: &str) -> ToolError {
        ToolError::new("Error", format!("{}: {problem}", self.shown_name))
    }

    /// The error for a request that got no answer, or not the whole one.
    fn unreachable(&self, error: &reqwest::Error) -> ToolError {
        let cause = self.service.hidden.hide(&cause(error));
        self.error(&format!("the server cannot be reached: {cause}"))
    }
}

fn media_type(response: &Response) -> String {
    let header = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = header.and_then(|value| value.split(';').next()).unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

fn reason(status: u16) -> String {
    if (300..400).contains(&status) {
        return "a redirect, which is not followed".to_owned();
    }
    let known = reqwest::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason());
    known.unwrap_or("no text").to_owned()
}
