//! MCP servers: their tools, and calls of them.
//!
//! In: the way to a server. Out: its tools, and the answers of calls. A server that has ended is started again by the next
//! call. `program` starts servers that are programs, `answer` makes a value of an answer, `lines` bounds what a program
//! writes, `failure` words why something failed.

mod answer;
mod failure;
mod lines;
mod program;

use std::{borrow::Cow, sync::Arc, time::Duration};

use async_trait::async_trait;
use isolane::Error;
use isolane_environment::{Log, ToolContext, ToolError, ToolHandler};
use reqwest::Client;
use rmcp::{
    Peer, RoleClient,
    model::{
        CallToolRequestParams, ClientConfig, Implementation, PaginatedRequestParams,
        ProtocolVersion, Tool,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService, ServiceError,
    },
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::Value as Json;
use tokio::{sync::Mutex, time::timeout};

use self::{failure::Failure, program::Program};
use crate::config::{Reach, Server};

/// The time in which a server must be ready, and list its tools. One that is a package may be fetched first.
const START_TIME: Duration = Duration::from_mins(1);

/// The time that a program has to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// The most tools of a server.
const MOST_TOOLS: usize = 1000;

/// The most pages of a server's list of tools: a page may be empty.
const MOST_PAGES: usize = 1000;

/// The most bytes of all descriptions of a server's tools, as JSON.
const MOST_LISTED_BYTES: usize = 4 << 20;

/// The most bytes of one message.
const MOST_MESSAGE_BYTES: usize = 16 << 20;

/// A server, which runs or is started by the next call.
pub(crate) struct Connection {
    pub(crate) server: Server,
    /// Of servers with an address.
    client: Client,
    log: Log,
    running: Mutex<Option<Running>>,
}

/// A server that runs.
struct Running {
    service: RunningService<RoleClient, ClientConfig>,
    program: Option<Program>,
}

impl Connection {
    pub(crate) fn new(server: Server, client: Client, log: Log) -> Self {
        Self { server, client, log, running: Mutex::default() }
    }

    /// Starts the server, and asks for its tools.
    ///
    /// # Errors
    /// Why that failed, without what the configuration hides.
    pub(crate) async fn open(&self) -> Result<Vec<Tool>, Error> {
        let listing = async {
            let peer = self.peer().await?;
            list(&peer).await
        };
        let listed = match timeout(START_TIME, listing).await {
            Ok(listed) => listed,
            Err(_) => Err(Failure::late(START_TIME)),
        };
        listed.map_err(|failure| failure.into_error(&self.server))
    }

    /// Ends the server.
    pub(crate) async fn shutdown(&self) {
        if let Some(running) = self.running.lock().await.take() {
            running.end().await;
        }
    }

    /// Calls a tool. Dropping the future cancels the call.
    async fn call(&self, tool: &str, args: Json) -> Result<Json, Failure> {
        let peer = match timeout(START_TIME, self.peer()).await {
            Ok(peer) => peer?,
            Err(_) => return Err(Failure::late(START_TIME)),
        };
        let mut params = CallToolRequestParams::new(Cow::Owned(tool.to_owned()));
        if let Json::Object(args) = args {
            params.arguments = Some(args);
        }
        let result = peer.call_tool(params).await;
        if let Err(error @ (ServiceError::TransportClosed | ServiceError::TransportSend(_))) =
            &result
        {
            let reason = self.reason().await;
            return Err(Failure::of_service(error).because(reason));
        }
        answer::value(result.map_err(|error| Failure::of_service(&error))?)
    }

    /// The server, started if it does not run.
    async fn peer(&self) -> Result<Peer<RoleClient>, Failure> {
        let mut running = self.running.lock().await;
        if let Some(running) = running.as_ref().filter(|running| !running.is_over()) {
            return Ok(running.service.peer().clone());
        }
        if let Some(ended) = running.take() {
            ended.end().await;
        }
        let started = self.start().await?;
        let peer = started.service.peer().clone();
        *running = Some(started);
        Ok(peer)
    }

    /// Why the program is of no use any more, if it said something wrong.
    async fn reason(&self) -> Option<String> {
        let running = self.running.lock().await;
        running.as_ref()?.program.as_ref()?.fault()
    }

    /// Starts the server. A server that knows the newest revision alone is started a second time, in its way.
    async fn start(&self) -> Result<Running, Failure> {
        match self.start_by(ClientLifecycleMode::Initialize).await {
            Err((refused @ ClientInitializeError::JsonRpcError(_), fault)) => {
                let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
                let discover = ClientLifecycleMode::Discover { preferred_versions };
                self.start_by(discover).await.map_err(|(error, newest_fault)| {
                    let newest = Failure::of_start(&error).because(newest_fault);
                    Failure::of_start(&refused).because(fault).and(&newest)
                })
            }
            started => started.map_err(|(error, fault)| Failure::of_start(&error).because(fault)),
        }
    }
}

impl Connection {
    async fn start_by(
        &self,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Running, (ClientInitializeError, Option<String>)> {
        let mut info = ClientConfig::default();
        info.client_info = Implementation::new("isolane", env!("CARGO_PKG_VERSION"));
        match &self.server.reach {
            Reach::Program { .. } => {
                let started = Program::start(&self.server, &self.log);
                let (program, pipes) = started.map_err(|error| {
                    let closed = ClientInitializeError::ConnectionClosed(String::new());
                    (closed, Some(format!("the program cannot be started: {error}")))
                })?;
                match info.serve_with_lifecycle(pipes, lifecycle).await {
                    Ok(service) => Ok(Running { service, program: Some(program) }),
                    Err(error) => {
                        let fault = program.fault();
                        // The lines that it writes before its end tell why it does not start.
                        program.end(GRACE).await;
                        Err((error, fault))
                    }
                }
            }
            Reach::Address { url, headers } => {
                let headers =
                    headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers)
                    .max_json_response_size(MOST_MESSAGE_BYTES)
                    .max_sse_event_size(MOST_MESSAGE_BYTES);
                let transport =
                    StreamableHttpClientTransport::with_client(self.client.clone(), config);
                let service = info.serve_with_lifecycle(transport, lifecycle).await;
                let service = service.map_err(|error| (error, None))?;
                Ok(Running { service, program: None })
            }
        }
    }
}

impl Running {
    fn is_over(&self) -> bool {
        self.service.peer().is_transport_closed()
    }

    async fn end(mut self) {
        // Closing the pipe tells a program to end. A program that does not end by itself is killed.
        let _ = self.service.close_with_timeout(GRACE).await;
        if let Some(program) = self.program {
            program.end(GRACE).await;
        }
    }
}

/// All tools of a server.
async fn list(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, Failure> {
    let mut tools = Vec::new();
    let mut bytes = 0;
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(page)).await;
        let page = page.map_err(|error| Failure::of_service(&error))?;
        bytes += serde_json::to_string(&page.tools).map_or(0, |text| text.len());
        tools.extend(page.tools);
        if bytes > MOST_LISTED_BYTES {
            let problem =
                format!("its tools have more than {MOST_LISTED_BYTES} bytes of descriptions");
            return Err(Failure::new(problem));
        }
        if tools.len() > MOST_TOOLS {
            return Err(Failure::new(format!("the server has more than {MOST_TOOLS} tools")));
        }
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(tools),
        }
    }
    Err(Failure::new(format!("the server lists its tools on more than {MOST_PAGES} pages")))
}

/// Answers the calls of one tool.
pub(crate) struct Calls {
    pub(crate) connection: Arc<Connection>,
    /// Its name as the server has it.
    pub(crate) tool: String,
    /// `github.createIssue`.
    pub(crate) shown_name: String,
}

#[async_trait]
impl ToolHandler for Calls {
    async fn call(&self, args: Json, context: ToolContext) -> Result<Json, ToolError> {
        let answer = tokio::select! {
            // Dropping a call tells the server that nobody waits for it.
            () = context.signal.cancelled() => Err(Failure::new("the execution has ended".to_owned())),
            answer = self.connection.call(&self.tool, args) => answer,
        };
        answer.map_err(|failure| failure.into_tool_error(&self.shown_name, &self.connection.server))
    }
}
