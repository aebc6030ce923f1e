//! Environments and hosts of executions whose methods are functions of the caller's language.
//!
//! In: executions, reports. Out: calls of these functions.

use std::sync::Arc;

use async_trait::async_trait;
use isolane::{Callback, Completion, Error, wrong_type};
use isolane_door::Given;
use serde_json::{Map, Value};

use super::{
    bindings::AllBindings,
    thrown::{environment_error, message, no_exit_state, tool_error},
    type_error,
};
use crate::{
    Environment, EnvironmentBindings, EnvironmentError, ExecutionExitState, ExecutionFailure,
    ExecutionHost, ExecutionInput, ExecutionState, ToolError, ToolInfo,
    json::{Reading, to_json, to_message},
};

/// The most bytes of an answer that is read at all.
const MOST_BYTES: usize = 8 << 20;

/// An environment of the caller's language.
pub(super) struct ForeignEnvironment {
    execute: Callback,
    kill: Callback,
    docs: Option<Callback>,
    tool_docs: Option<Callback>,
    shutdown: Option<Callback>,
    bindings: Arc<AllBindings>,
}

impl ForeignEnvironment {
    /// Reads `{ execute, kill, docs?, toolDocs?, shutdown? }`. `execute` gets the input and the number of its bindings.
    pub(super) fn read(given: &Given, bindings: &Arc<AllBindings>) -> Result<Self, Error> {
        let function = |name: &str| match given.get(name) {
            Given::Function(callback) => Some(callback.clone()),
            _ => None,
        };
        let (Some(execute), Some(kill)) = (function("execute"), function("kill")) else {
            return Err(type_error("environment must have the methods execute and kill"));
        };
        Ok(Self {
            execute,
            kill,
            docs: function("docs"),
            tool_docs: function("toolDocs"),
            shutdown: function("shutdown"),
            bindings: Arc::clone(bindings),
        })
    }
}

#[async_trait]
impl Environment for ForeignEnvironment {
    async fn execute(
        &self,
        input: ExecutionInput,
        bindings: EnvironmentBindings,
    ) -> Result<ExecutionExitState, EnvironmentError> {
        let known = self.bindings.add(bindings);
        let completion = self.execute.call(&[message(&input), message(&known.number)]).await;
        drop(known);
        let value = completion.map_err(|thrown| environment_error(&thrown))?;
        let state = text(&value).and_then(|word| ExecutionExitState::named(&word));
        state.ok_or_else(|| no_exit_state(&value))
    }

    async fn kill(&self, eid: u64) -> Result<(), EnvironmentError> {
        let done = self.kill.call(&[message(&eid)]).await;
        done.map(drop).map_err(|thrown| environment_error(&thrown))
    }

    async fn generate_docs(&self) -> Option<String> {
        let answer = self.docs.as_ref()?.call(&[]).await;
        text(&answer.ok()?)
    }

    async fn generate_tool_docs(&self, tool: &ToolInfo) -> Option<String> {
        let answer = self.tool_docs.as_ref()?.call(&[message(tool)]).await;
        text(&answer.ok()?)
    }

    async fn shutdown(&self) {
        if let Some(shutdown) = &self.shutdown {
            // The caller, who shuts down, cannot do anything about an error.
            let _: Completion = shutdown.call(&[]).await;
        }
    }
}

fn text(value: &isolane::Value) -> Option<String> {
    value.deserialize().ok()
}

/// The host of an execution, as functions of the caller's language.
pub(super) struct ForeignHost {
    eid: isolane::Value,
    set_state: Callback,
    stdout: Callback,
    stderr: Callback,
    output: Callback,
    error: Callback,
    invoke_tool: Option<Callback>,
    tools: Arc<[ToolInfo]>,
}

impl ForeignHost {
    /// Reads `{ setState, stdout, stderr, output, error, invokeTool?, tools? }`.
    pub(super) fn read(eid: u64, given: &Given) -> Result<Self, Error> {
        let function = |name: &str| match given.get(name) {
            Given::Function(callback) => Ok(callback.clone()),
            other => Err(wrong_type(&format!("bindings.{name}"), "a function", other.kind())),
        };
        let tools: Vec<ToolInfo> = match given.get("tools") {
            absent if absent.is_absent() => Vec::new(),
            tools => {
                let read = tools.json().and_then(|json| serde_json::from_value(json).ok());
                read.ok_or_else(|| type_error("bindings.tools must be a list of tools"))?
            }
        };
        let has_calls = !given.get("invokeTool").is_absent();
        Ok(Self {
            eid: message(&eid),
            set_state: function("setState")?,
            stdout: function("stdout")?,
            stderr: function("stderr")?,
            output: function("output")?,
            error: function("error")?,
            invoke_tool: has_calls.then(|| function("invokeTool")).transpose()?,
            tools: tools.into(),
        })
    }

    fn tell(&self, function: &Callback, value: isolane::Value) {
        function.notify(&[self.eid.clone(), value]);
    }
}

#[async_trait]
impl ExecutionHost for ForeignHost {
    fn set_state(&self, state: ExecutionState) {
        self.tell(&self.set_state, message(&state));
    }

    fn stdout(&self, bytes: &[u8]) {
        self.tell(&self.stdout, bytes_message(bytes));
    }

    fn stderr(&self, bytes: &[u8]) {
        self.tell(&self.stderr, bytes_message(bytes));
    }

    fn output(&self, fields: Map<String, Value>) -> Result<(), Error> {
        self.tell(&self.output, to_message(&Value::Object(fields)));
        Ok(())
    }

    fn error(&self, failure: ExecutionFailure) {
        let value = match &failure {
            ExecutionFailure::Text(text) => message(text),
            ExecutionFailure::Details(details) => message(details),
        };
        self.tell(&self.error, value);
    }

    async fn invoke_tool(&self, name: &str, args: Value) -> Result<Value, ToolError> {
        let Some(function) = &self.invoke_tool else {
            return Err(ToolError::new("TypeError", "the bindings have no invokeTool"));
        };
        let args = [self.eid.clone(), message(&name), to_message(&args)];
        let answer = function.call(&args).await.map_err(|thrown| tool_error(&thrown))?;
        let root = isolane::answer_of(name);
        let how = Reading { drops_undefined: true, ..Reading::strict(&root, MOST_BYTES) };
        let json = to_json(&answer, how);
        json.map(Option::unwrap_or_default)
            .map_err(|fault| ToolError::new(fault.name, fault.message))
    }

    fn tools(&self) -> Arc<[ToolInfo]> {
        Arc::clone(&self.tools)
    }
}

fn bytes_message(bytes: &[u8]) -> isolane::Value {
    let mut writer = isolane::value::Writer::new();
    let length = bytes.len() as u64;
    let blob = writer.blob(bytes.to_vec());
    writer.view(isolane::value::ViewKind::Uint8Array, blob, 0, length);
    writer.finish()
}
