//! A server whose environment does what lines of the code say, and a service in this test's runtime.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use isolane_environment::{
    Environment, EnvironmentBindings, EnvironmentError, ExecutionExitState, ExecutionFailure,
    ExecutionInput, ExecutionState, ProcessService, ProcessServiceOptions, ToolInfo,
};
use isolane_http::{ListenOptions, Server};
use tokio::{runtime::Handle, sync::watch};

/// Runs code of these lines: `out TEXT`, `err TEXT`, `json {…}`, `fail TEXT`, `flood`, and `hold`, which waits until the
/// process is killed or the test says `go`.
#[derive(Clone, Default)]
pub(crate) struct Scripted(Arc<Mutex<HashMap<u64, watch::Sender<Option<bool>>>>>);

impl Scripted {
    fn gate(&self, eid: u64) -> watch::Sender<Option<bool>> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(eid).or_insert_with(|| watch::Sender::new(None)).clone()
    }

    /// Lets an execution that holds go on.
    pub(crate) fn go(&self, eid: u64) {
        self.gate(eid).send_replace(Some(true));
    }
}

#[async_trait]
impl Environment for Scripted {
    async fn execute(
        &self,
        input: ExecutionInput,
        bindings: EnvironmentBindings,
    ) -> Result<ExecutionExitState, EnvironmentError> {
        let eid = input.eid;
        let refused = |error: isolane::Error| EnvironmentError::new(error.to_string());
        bindings.set_state(eid, ExecutionState::Running).map_err(refused)?;
        for line in input.code.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "out" => bindings.stdout(eid, rest).map_err(refused)?,
                "err" => bindings.stderr(eid, rest).map_err(refused)?,
                "json" => {
                    let fields = serde_json::from_str(rest).expect("an object");
                    bindings.output(eid, fields).map_err(refused)?;
                }
                "fail" => {
                    let failure = ExecutionFailure::Text(rest.to_owned());
                    bindings.error(eid, failure).map_err(refused)?;
                    return Ok(ExecutionExitState::Failed);
                }
                "flood" => {
                    let part = "x".repeat(2 << 20);
                    bindings.stdout(eid, &part).map_err(refused)?;
                    bindings.stderr(eid, &part).map_err(refused)?;
                }
                "hold" => {
                    let gate = self.gate(eid);
                    let mut gate = gate.subscribe();
                    let may_go = gate.wait_for(Option::is_some).await.expect("the test has it");
                    if *may_go == Some(false) {
                        return Ok(ExecutionExitState::Canceled);
                    }
                }
                _ => panic!("no such line: {line}"),
            }
        }
        Ok(ExecutionExitState::Success)
    }

    async fn kill(&self, eid: u64) -> Result<(), EnvironmentError> {
        self.gate(eid).send_replace(Some(false));
        Ok(())
    }

    async fn generate_docs(&self) -> Option<String> {
        assert!(self.0.lock().is_ok_and(|gates| gates.is_empty()), "a panic of the test");
        Some("# Lines".to_owned())
    }

    async fn generate_tool_docs(&self, tool: &ToolInfo) -> Option<String> {
        Some(format!("# {}", tool.name))
    }
}

/// A service, its environment and its server.
pub(crate) struct World {
    pub(crate) service: ProcessService,
    pub(crate) scripted: Scripted,
    pub(crate) server: Server,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
}

/// A world with the defaults.
pub(crate) async fn world() -> World {
    world_with(ProcessServiceOptions::default(), ListenOptions::default()).await
}

/// A world with an address of its own.
pub(crate) async fn world_with(service: ProcessServiceOptions, listen: ListenOptions) -> World {
    let scripted = Scripted::default();
    let environment = Some(Arc::new(scripted.clone()) as Arc<dyn Environment>);
    let handle = Some(Handle::current());
    let service = ProcessService::new(ProcessServiceOptions {
        environment,
        handle: handle.clone(),
        ..service
    });
    let service = service.expect("valid options");
    let log = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&log);
    let write = move |line: &str| {
        lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    };
    let listen = ListenOptions { port: 0, handle, log: Some(Arc::new(write)), ..listen };
    let server = Server::listen(service.clone(), listen).await.expect("an address");
    World { service, scripted, server, log }
}
