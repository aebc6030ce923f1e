//! The environment of TypeScript: each execution is one cell in an isolate that nothing else ever uses.
//!
//! In: code. Out: what it prints, its output, its exit state. `cell` runs the code of one execution, `console` and
//! `globals` are what it has to report, `docs` describes all that and its imports, the tools.

mod cell;
mod console;
mod docs;
mod globals;
mod options;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use isolane::{Error, Runtime};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub use self::options::TypeScriptEnvironmentOptions;
use crate::{
    Environment, EnvironmentBindings, EnvironmentError, ExecutionExitState, ExecutionInput,
    ExecutionState, ToolInfo, locks::lock, tools::docs::tool_docs,
};

/// Runs TypeScript and JavaScript: each execution in an isolate of its own, without any capability but those of the
/// options and the tools of its service.
///
/// Under isolation by thread a bug of the engine's C code is a bug of this process. Run code of strangers with
/// [`Isolation::Process`](isolane::Isolation::Process).
#[derive(Debug)]
pub struct TypeScriptEnvironment {
    options: TypeScriptEnvironmentOptions,
    runtime: Runtime,
    /// Whether the environment closes the runtime at its end.
    owns_runtime: bool,
    places: Semaphore,
    /// The executions that are here, by their numbers.
    executions: Mutex<HashMap<u64, Entry>>,
    /// How many there are.
    count: watch::Sender<usize>,
    shut_down: CancellationToken,
}

#[derive(Debug)]
struct Entry {
    state: ExecutionState,
    killed: CancellationToken,
}

impl TypeScriptEnvironment {
    /// An environment.
    ///
    /// # Errors
    /// An option out of range; options that exclude each other; a system that refuses threads or processes.
    pub fn new(options: TypeScriptEnvironmentOptions) -> Result<Self, Error> {
        options.check()?;
        let (runtime, owns_runtime) = options.open_runtime()?;
        // The core checks the rest. A session costs nothing before its first cell.
        drop(cell::open(&options, &runtime, cell::Handed::default())?);
        let places = Semaphore::new(options.places());
        Ok(Self {
            options,
            runtime,
            owns_runtime,
            places,
            executions: Mutex::default(),
            count: watch::Sender::new(0),
            shut_down: CancellationToken::new(),
        })
    }

    /// Takes an execution in.
    fn enter(&self, eid: u64) -> Result<Present<'_>, EnvironmentError> {
        let killed = self.shut_down.child_token();
        let mut executions = lock(&self.executions);
        if let Some(entry) = executions.get(&eid) {
            let message = format!("execution {eid} is already {}", entry.state.as_str());
            return Err(EnvironmentError::new(message));
        }
        let entry = Entry { state: ExecutionState::Queued, killed: killed.clone() };
        executions.insert(eid, entry);
        self.count.send_replace(executions.len());
        Ok(Present { environment: self, eid, killed })
    }

    fn set_running(&self, eid: u64) {
        if let Some(entry) = lock(&self.executions).get_mut(&eid) {
            entry.state = ExecutionState::Running;
        }
    }
}

/// An execution that is here, until this is dropped.
struct Present<'e> {
    environment: &'e TypeScriptEnvironment,
    eid: u64,
    killed: CancellationToken,
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        let mut executions = lock(&self.environment.executions);
        executions.remove(&self.eid);
        self.environment.count.send_replace(executions.len());
    }
}

#[async_trait]
impl Environment for TypeScriptEnvironment {
    async fn execute(
        &self,
        input: ExecutionInput,
        bindings: EnvironmentBindings,
    ) -> Result<ExecutionExitState, EnvironmentError> {
        let ExecutionInput { eid, code, options } = input;
        let here = self.enter(eid)?;
        let refused = |error: Error| EnvironmentError::new(error.message());
        bindings.set_state(eid, ExecutionState::Queued).map_err(refused)?;
        let _place = tokio::select! {
            biased;
            () = here.killed.cancelled() => return Ok(ExecutionExitState::Canceled),
            // The semaphore is never closed.
            place = self.places.acquire() => place,
        };
        self.set_running(eid);
        bindings.set_state(eid, ExecutionState::Running).map_err(refused)?;
        let timeout_ms = match options {
            Some(options) => options.timeout_ms,
            None => self.options.default_timeout_ms.unwrap_or(options::DEFAULT_TIMEOUT_MS),
        };
        let running = cell::run(&self.options, &self.runtime, code, timeout_ms, &bindings);
        let ended = tokio::select! {
            biased;
            // Dropping the cell ends it.
            () = here.killed.cancelled() => return Ok(ExecutionExitState::Canceled),
            ended = running => ended.map_err(refused)?,
        };
        Ok(cell::tell(ended, timeout_ms, &bindings))
    }

    async fn kill(&self, eid: u64) -> Result<(), EnvironmentError> {
        if let Some(entry) = lock(&self.executions).get(&eid) {
            entry.killed.cancel();
        }
        Ok(())
    }

    async fn generate_docs(&self) -> Option<String> {
        Some(docs::environment_docs(&self.options))
    }

    async fn generate_tool_docs(&self, tool: &ToolInfo) -> Option<String> {
        Some(tool_docs(tool))
    }

    async fn shutdown(&self) {
        self.shut_down.cancel();
        let mut count = self.count.subscribe();
        // The sender lives as long as the environment, which is here.
        let _ = count.wait_for(|count| *count == 0).await;
        if self.owns_runtime {
            let (sender, closed) = oneshot::channel::<()>();
            self.runtime.close(move || drop(sender));
            // The sender sends nothing: it is dropped when the runtime is closed, or was closed already.
            let _ = closed.await;
        }
    }
}

impl Drop for TypeScriptEnvironment {
    fn drop(&mut self) {
        if self.owns_runtime {
            self.runtime.close(|| {});
        }
    }
}

/// The parts of an execution's host that several of its functions need.
type Reporter = Arc<EnvironmentBindings>;
