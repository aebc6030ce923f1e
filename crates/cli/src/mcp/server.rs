//! The server: which request is answered by what.
//!
//! In: requests of a host, as the protocol's library reads them. Out: answers; reports as progress. A call that the host
//! cancels, and the end of the input, end the run.

use futures_util::StreamExt;
use isolane::{CellOptions, Execution, ExecutionResult, Session, SessionState, inspect};
use isolane_environment::CancellationToken;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use serde_json::Map;

use super::{
    answer,
    arguments::{Code, Fields},
    sessions::Sessions,
    tools::{self, INSTRUCTIONS, LIST_NAMES, RESET_SESSION, RUN_CELL, RUN_CODE},
};

/// The most reports of a run that are told while it runs. All are in the answer.
const MOST_TOLD: usize = 1000;

/// The bytes of a report that are shown as progress.
const MOST_SHOWN_BYTES: usize = 4 << 10;

pub(super) struct Server {
    sessions: Sessions,
    /// The end of the input.
    closing: CancellationToken,
}

impl Server {
    pub(super) fn new(sessions: Sessions, closing: CancellationToken) -> Self {
        Self { sessions, closing }
    }

    async fn call(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let none = Map::new();
        let fields = request.arguments.as_ref().unwrap_or(&none);
        let answer = match &*request.name {
            RUN_CODE => self.run_code(fields, context).await,
            RUN_CELL => self.run_cell(fields, context).await,
            LIST_NAMES => self.list_names(fields, context).await,
            RESET_SESSION => self.reset_session(fields).await,
            name => {
                let name: String = name.chars().take(100).collect();
                let names = tools::all().into_iter().map(|tool| tool.name).collect::<Vec<_>>();
                let message = format!("there is no tool '{name}'; tools are {}", names.join(", "));
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        Ok(answer.unwrap_or_else(answer::refused))
    }

    async fn run_code(
        &self,
        fields: &Map<String, serde_json::Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let code = Fields::new(fields, &["code", "language", "timeoutMs"])?.code()?;
        let session = self.sessions.once().map_err(|error| error.message().to_owned())?;
        let result = self.run(&session, code, context).await?;
        Ok(answer::of_result(&result, false))
    }

    async fn run_cell(
        &self,
        fields: &Map<String, serde_json::Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let fields = Fields::new(fields, &["session", "code", "timeoutMs"])?;
        let (name, code) = (fields.session()?, fields.code()?);
        let used = self.sessions.take(name)?;
        let mut result = self.run(used.session(), code, context).await?;
        if let Some(cell) = result.cell.as_mut().filter(|_| used.is_reset()) {
            cell.session = SessionState::Reset;
        }
        Ok(answer::of_result(&result, true))
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

    /// Runs a cell to its end, or until nobody wants it any more.
    async fn run(
        &self,
        session: &Session,
        code: Code,
        context: &RequestContext<RoleServer>,
    ) -> Result<ExecutionResult, String> {
        let Code { source, language, timeout_ms } = code;
        let options = CellOptions {
            language: Some(language),
            timeout_ms: Some(timeout_ms),
            ..CellOptions::default()
        };
        let mut execution = session.run(source, options);
        let result = {
            let telling = tell(&execution, context);
            let running = async { tokio::join!(&mut execution, telling).0 };
            tokio::select! {
                result = running => Some(result),
                // The host learns of no reason: it canceled the call, or is gone.
                _ = self.ended(context) => None,
            }
        };
        let result = match result {
            Some(result) => result,
            None => {
                execution.terminate(Some("the call was canceled"));
                execution.await
            }
        };
        result.map_err(|error| error.message().to_owned())
    }

    /// Resolves when nobody wants the answer of a call any more, with the reason.
    async fn ended(&self, context: &RequestContext<RoleServer>) -> &'static str {
        tokio::select! {
            () = context.ct.cancelled() => "the call was canceled",
            () = self.closing.cancelled() => "the input has ended",
        }
    }
}

/// Tells the host of reports as they come, if it asked for progress.
fn tell(
    execution: &Execution,
    context: &RequestContext<RoleServer>,
) -> impl Future<Output = ()> + Send + use<> {
    let token = context.meta.get_progress_token();
    let (peer, reports) = (context.peer.clone(), execution.report_stream());
    async move {
        let Some(token) = token else { return };
        let mut reports = reports.take(MOST_TOLD);
        let mut progress = 0.0;
        while let Some(report) = reports.next().await {
            progress += 1.0;
            let told = ProgressNotificationParam::new(token.clone(), progress)
                .with_message(inspect(&report, MOST_SHOWN_BYTES));
            if peer.notify_progress(told).await.is_err() {
                return;
            }
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
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(self.call(&request, &context).await?.into())
    }
}
