//! Why a server did not start, or a call has no answer.
//!
//! In: errors of the protocol's library. Out: a sentence without addresses, and without what the configuration hides.

use std::{error::Error as StdError, io, time::Duration};

use isolane::{Error, ErrorCode, ErrorKind};
use isolane_environment::ToolError;
use rmcp::{
    service::{ClientInitializeError, ServiceError},
    transport::streamable_http_client::StreamableHttpError,
};

use crate::{client::cause, config::Server};

/// The most characters of a message.
const MOST_SHOWN: usize = 4000;

/// The most characters of a message that are searched for hidden values, which take more room than their marks.
const MOST_SEARCHED: usize = 16 * MOST_SHOWN;

const UNREADY: &str = "the server ended before it was ready";
const UNANSWERED: &str = "the server ended before it answered";

/// Why something failed.
#[derive(Debug)]
pub(super) struct Failure {
    message: String,
    /// The tool itself says so: the message stands alone.
    is_of_tool: bool,
    code: Option<i32>,
}

impl Failure {
    pub(super) fn new(message: String) -> Self {
        Self { message, is_of_tool: false, code: None }
    }

    /// The text that a tool answers as its error.
    pub(super) fn of_tool(message: String) -> Self {
        Self { is_of_tool: true, ..Self::new(message) }
    }

    pub(super) fn late(limit: Duration) -> Self {
        Self::new(format!("the server was not ready within {} s", limit.as_secs()))
    }

    pub(super) fn of_service(error: &ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => {
                Self { code: Some(error.code.0), ..Self::new(error.message.to_string()) }
            }
            ServiceError::TransportClosed => Self::new(UNANSWERED.to_owned()),
            ServiceError::TransportSend(error) => {
                Self::new(transport(error.error.as_ref(), UNANSWERED))
            }
            ServiceError::UnexpectedResponse => {
                Self::new("the server answered something else than a result".to_owned())
            }
            other => Self::new(other.to_string()),
        }
    }

    pub(super) fn of_start(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::ConnectionClosed(_) => Self::new(UNREADY.to_owned()),
            ClientInitializeError::TransportError { error, .. } => {
                Self::new(transport(error.error.as_ref(), UNREADY))
            }
            ClientInitializeError::JsonRpcError(error) => {
                let message = format!("the server refused to start: {}", error.message);
                Self { code: Some(error.code.0), ..Self::new(message) }
            }
            _ => Self::new("the server does not speak the protocol".to_owned()),
        }
    }

    /// The same with a better reason, if there is one.
    pub(super) fn because(self, reason: Option<String>) -> Self {
        match reason {
            Some(message) => Self::new(message),
            None => self,
        }
    }

    /// The same, and the failure of the other way to start.
    pub(super) fn and(self, newest: &Self) -> Self {
        let message = format!("{}; in its newest revision: {}", self.message, newest.message);
        Self { message, ..self }
    }

    pub(super) fn into_error(self, server: &Server) -> Error {
        let message = shown(&self.message, server);
        Error::new(ErrorKind::Unavailable, format!("mcpServers.{}: {message}", server.name))
    }

    pub(super) fn into_tool_error(self, shown_name: &str, server: &Server) -> ToolError {
        let message = shown(&self.message, server);
        let message = if self.is_of_tool { message } else { format!("{shown_name}: {message}") };
        let error = ToolError::new("Error", message);
        match self.code {
            Some(code) => error.with_code(ErrorCode::from(code)),
            None => error,
        }
    }
}

fn shown(text: &str, server: &Server) -> String {
    let searched: String = text.chars().take(MOST_SEARCHED).collect();
    server.hidden.hide(&searched).chars().take(MOST_SHOWN).collect()
}

/// Why a request was not made, without its address. `ended` is the reason for a program that reads no more.
fn transport(error: &(dyn StdError + 'static), ended: &str) -> String {
    let unreachable =
        |error: &reqwest::Error| format!("the server cannot be reached: {}", cause(error));
    let mut error = error;
    loop {
        if let Some(error) = error.downcast_ref::<reqwest::Error>() {
            return unreachable(error);
        }
        match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Client(error)) => return unreachable(error),
            Some(StreamableHttpError::AuthRequired(_)) => {
                return "the server answered 401: the headers have no token that it takes"
                    .to_owned();
            }
            Some(StreamableHttpError::InsufficientScope(_)) => {
                return "the server answered 403: the token does not allow this".to_owned();
            }
            _ => {}
        }
        let broken = error.downcast_ref::<io::Error>();
        if broken.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            return ended.to_owned();
        }
        match error.source() {
            Some(source) => error = source,
            None => return error.to_string(),
        }
    }
}
