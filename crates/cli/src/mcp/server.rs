//! The server: which request is answered by what.
//!
//! In: requests of a host, as the protocol's library reads them. Out: answers.

use isolane::CellOptions;
use isolane_environment::{CancellationToken, ToolSet};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::Map;

use super::{
    answer,
    arguments::{Code, DEFAULT_TIMEOUT_MS, Fields},
    catalogue::{self, DEFAULT_LIMIT},
    code_mode::CodeMode,
    rounds::Rounds,
    running::{Held, Running, Step},
    sessions::Sessions,
    tools::{self, DESCRIBE_TOOLS, INSTRUCTIONS, LIST_NAMES, RESET_SESSION, RUN_CELL, RUN_CODE},
};

pub(super) struct Server {
    sessions: Sessions,
    /// The tools of other servers, if there are any.
    code_mode: Option<CodeMode>,
    /// Cells that wait for the next request.
    rounds: Rounds,
    /// The end of the input.
    closing: CancellationToken,
}

impl Server {
    pub(super) fn new(
        sessions: Sessions,
        code_mode: Option<CodeMode>,
        closing: CancellationToken,
    ) -> Self {
        Self { sessions, code_mode, rounds: Rounds::default(), closing }
    }

    fn tools(&self) -> Vec<Tool> {
        tools::all(self.code_mode.as_ref())
    }

    async fn call(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let none = Map::new();
        let fields = request.arguments.as_ref().unwrap_or(&none);
        let answer = match &*request.name {
            RUN_CODE | RUN_CELL => {
                let begin = || match &*request.name {
                    RUN_CODE => self.run_code(fields, context),
                    _ => self.run_cell(fields, context),
                };
                let ran = self.run(begin, request, context).await;
                return Ok(ran.unwrap_or_else(|reason| answer::refused(reason).into()));
            }
            LIST_NAMES => self.list_names(fields, context).await,
            RESET_SESSION => self.reset_session(fields).await,
            DESCRIBE_TOOLS if self.code_mode.is_some() => self.describe_tools(fields),
            name => {
                let name: String = name.chars().take(100).collect();
                let names = self.tools().into_iter().map(|tool| tool.name).collect::<Vec<_>>();
                let message = format!("there is no tool '{name}'; tools are {}", names.join(", "));
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        Ok(answer.unwrap_or_else(answer::refused).into())
    }

    fn run_code(
        &self,
        fields: &Map<String, serde_json::Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Running, String> {
        let fields = Fields::new(fields, &["code", "language", "timeoutMs"])?;
        let code = fields.code(self.default_timeout_ms())?;
        let session = self.sessions.once().map_err(|error| error.message().to_owned())?;
        Ok(self.begin(Held::Once(session), code, context))
    }

    fn run_cell(
        &self,
        fields: &Map<String, serde_json::Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Running, String> {
        let fields = Fields::new(fields, &["session", "code", "timeoutMs"])?;
        let (name, code) = (fields.session()?, fields.code(self.default_timeout_ms())?);
        Ok(self.begin(Held::Named(self.sessions.take(name)?), code, context))
    }

    /// Begins a cell.
    fn begin(&self, session: Held, code: Code, context: &RequestContext<RoleServer>) -> Running {
        let Code { source, language, timeout_ms } = code;
        let options = CellOptions {
            language: Some(language),
            timeout_ms: Some(timeout_ms),
            ..CellOptions::default()
        };
        let begin = || session.session().run(source, options);
        let (execution, asking) = match &self.code_mode {
            Some(code_mode) => {
                let (execution, asking) = code_mode.begin(context, begin);
                (execution, Some(asking))
            }
            None => (begin(), None),
        };
        Running { execution, asking, session }
    }

    /// Runs a cell to its end, or up to questions for the user. A request may answer those of a cell that began before.
    async fn run(
        &self,
        begin: impl FnOnce() -> Result<Running, String>,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, String> {
        let running = match &request.request_state {
            Some(number) => self.rounds.answer(number, request.input_responses.as_ref())?,
            None => begin()?,
        };
        Ok(match running.go_on(context, &self.closing).await? {
            Step::Done(answer) => answer.into(),
            Step::Asks(running, questions) => {
                CallToolResponse::InputRequired(self.rounds.ask(running, questions))
            }
        })
    }

    fn describe_tools(
        &self,
        fields: &Map<String, serde_json::Value>,
    ) -> Result<CallToolResult, String> {
        let fields = Fields::new(fields, &["query", "limit"])?;
        let (query, limit) = (fields.query()?, fields.limit()?.unwrap_or(DEFAULT_LIMIT));
        let none = ToolSet::default();
        let tools = self.code_mode.as_ref().map_or(&none, CodeMode::tools);
        Ok(answer::of_tools(&catalogue::find(tools, query, limit)))
    }

    async fn list_names(
        &self,
        fields: &Map<String, serde_json::Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let used = self.sessions.find(Fields::new(fields, &["session"])?.session()?)?;
        tokio::select! {
            names = used.session().names() => match names {
                Ok(names) => Ok(answer::of_names(&names)),
                Err(error) => Err(error.message().to_owned()),
            },
            reason = self.ended(context) => Err(reason.to_owned()),
        }
    }

    async fn reset_session(
        &self,
        fields: &Map<String, serde_json::Value>,
    ) -> Result<CallToolResult, String> {
        let name = Fields::new(fields, &["session"])?.session()?;
        let session = self.sessions.remove(name)?;
        // Ends its cells, whose calls hold it too.
        session.close().await.map_err(|error| error.message().to_owned())?;
        Ok(answer::of_reset(name))
    }

    fn default_timeout_ms(&self) -> u64 {
        self.code_mode.as_ref().map_or(DEFAULT_TIMEOUT_MS, CodeMode::default_timeout_ms)
    }

    /// Resolves when nobody wants the answer of a call any more, with the reason.
    async fn ended(&self, context: &RequestContext<RoleServer>) -> &'static str {
        tokio::select! {
            () = context.ct.cancelled() => "the call was canceled",
            () = self.closing.cancelled() => "the input has ended",
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("isolane", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(&request, &context).await
    }
}
