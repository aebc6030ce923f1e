//! `isolane mcp`: a server of the Model Context Protocol on stdin and stdout, for the host of a model.
//!
//! In: messages, one a line. Out: the same, and nothing else on stdout; an exit code. `server` answers the protocol,
//! `tools` declares the tools, `arguments` reads their arguments, `sessions` keeps what stays between calls, `answer`
//! makes an answer of a result, `running` is a cell with the request that waits for it, `transport` carries messages. The end of stdin ends all calls; an end of stdout the server.
//! With tools of other servers, `code_mode` hands them to cells, `cells` has the calls of each cell, `catalogue` tells the
//! model of the tools, `approvals` asks the user of the host, `rounds` keeps the cells that wait for an answer.

mod answer;
mod approvals;
mod arguments;
mod bounded;
mod catalogue;
mod cells;
mod code_mode;
mod input;
mod lines;
mod rounds;
mod running;
mod server;
mod sessions;
mod tools;
mod transport;

use std::sync::Arc;

use isolane::{Report, Runtime, SessionOptions};
use isolane_environment::CancellationToken;
use rmcp::{
    service::{ServerInitializeError, ServiceExt},
    transport::io::stdio_pipes,
};

use self::{
    approvals::Approvals, code_mode::CodeMode, server::Server, sessions::Sessions, transport::Lined,
};
use crate::{
    arguments::McpArguments,
    code::{Given, Installation},
    exit::{self, Ended},
    remote::{self, Remote},
    signals::Signals,
};

pub(crate) async fn mcp(
    arguments: McpArguments,
    installation: &Installation,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    let runtime = installation.runtime(arguments.isolation)?;
    let memory_limit_bytes = arguments.given.memory;
    let reading = move || {
        let config = arguments.config.as_deref().map(remote::read).transpose()?;
        Ok((Given::read(&arguments.given)?, config))
    };
    let (given, config) = signals.during(reading).await?;
    let approvals = Approvals::default();
    let remote = match config {
        Some(config) => {
            Some(Remote::open(&config, Some(Arc::new(approvals.clone())), signals).await?)
        }
        None => None,
    };
    let tools = remote.as_ref().map(|remote| (remote.set.clone(), remote.tools.asks()));
    let code_mode = tools.map(|(tools, asks)| CodeMode::new(tools, approvals, asks));
    let ended = serve(runtime, given, memory_limit_bytes, code_mode, signals).await;
    if let Some(remote) = remote {
        remote.end().await;
    }
    ended
}

/// Answers the host until it is gone, or until a signal.
async fn serve(
    runtime: Runtime,
    mut given: Given,
    memory_limit_bytes: Option<u64>,
    code_mode: Option<CodeMode>,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    if let Some(code_mode) = &code_mode {
        code_mode.insert_imports(&mut given.imports);
    }
    let options = SessionOptions {
        globals: given.globals,
        imports: given.imports,
        modules: given.modules,
        memory_limit_bytes,
        report: Report::On,
        ..SessionOptions::default()
    };
    let interceptor = code_mode.as_ref().map(CodeMode::interceptor);
    let sessions = Sessions::new(runtime, options, interceptor)?;
    let closing = CancellationToken::new();
    let server = Server::new(sessions.clone(), code_mode, closing.clone());
    let unread = CancellationToken::new();
    transport::watch(unread.clone()).map_err(|error| Ended::failure(&error))?;
    let transport = Lined::new(stdio_pipes(), closing, unread.clone());
    let serving = async {
        match server.serve(transport).await {
            Ok(running) => match running.waiting().await {
                Ok(_) => Ok(exit::SUCCESS),
                Err(error) => Err(Ended::failure(&error)),
            },
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(exit::SUCCESS),
            Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
                Err(Ended::misuse("the first message of a client must be a request"))
            }
            Err(error) => Err(Ended::failure(&error)),
        }
    };
    tokio::select! {
        ended = serving => ended,
        never = sessions.expire() => match never {},
        (code, _) = signals.next() => Ok(code),
        () = unread.cancelled() => Ok(exit::UNREAD),
    }
}
