//! `isolane mcp`: a server of the Model Context Protocol on stdin and stdout, for the host of a model.
//!
//! In: messages, one a line. Out: the same, and nothing else on stdout; an exit code. `server` answers the protocol,
//! `tools` declares the tools, `arguments` reads their arguments, `sessions` keeps what stays between calls, `answer`
//! makes an answer of a result, `transport` carries messages. The end of stdin ends all calls; an end of stdout the server.

mod answer;
mod arguments;
mod bounded;
mod input;
mod lines;
mod server;
mod sessions;
mod tools;
mod transport;

use isolane::{Report, SessionOptions};
use isolane_environment::CancellationToken;
use rmcp::{
    service::{ServerInitializeError, ServiceExt},
    transport::io::stdio_pipes,
};

use self::{server::Server, sessions::Sessions, transport::Lined};
use crate::{
    arguments::McpArguments,
    code::{Given, Installation},
    exit::{self, Ended},
    signals::Signals,
};

pub(crate) async fn mcp(
    arguments: McpArguments,
    installation: &Installation,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    let runtime = installation.runtime(arguments.isolation)?;
    let memory_limit_bytes = arguments.given.memory;
    let given = signals.during(move || Given::read(&arguments.given)).await?;
    let options = SessionOptions {
        globals: given.globals,
        imports: given.imports,
        modules: given.modules,
        memory_limit_bytes,
        report: Report::On,
        ..SessionOptions::default()
    };
    let sessions = Sessions::new(runtime, options)?;
    let closing = CancellationToken::new();
    let server = Server::new(sessions.clone(), closing.clone());
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
