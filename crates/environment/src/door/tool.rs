//! Tools whose handlers are functions of the caller's language.
//!
//! In: calls of code. Out: calls of the handler with the arguments, the number of the execution and a number of the call;
//! by this number another function is told that the execution has ended.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use isolane::{Callback, Error, unknown_name, wrong_type};
use isolane_door::Given;
use serde_json::Value;

use super::{
    Args,
    thrown::{message, tool_error},
    type_error,
};
use crate::{
    ToolContext, ToolDescription, ToolError, ToolHandler,
    json::{Reading, to_json, to_message},
};

/// The most bytes of an answer that is read at all.
const MOST_BYTES: usize = 8 << 20;

/// A tool of the caller's language.
pub(super) struct ForeignTool {
    pub(super) service: String,
    pub(super) name: String,
    pub(super) description: ToolDescription,
    pub(super) handler: Handler,
}

/// Its handler.
pub(super) struct Handler {
    call: Callback,
    abort: Callback,
    /// The beginning of the path in an error about an answer.
    root: String,
    calls: AtomicU64,
}

impl ForeignTool {
    /// Reads `(service, name, description, handler, abort)`.
    pub(super) fn read(args: Vec<Given>) -> Result<Self, Error> {
        let mut args = Args::new(args);
        let (service, name) = (args.text("service")?, args.text("name")?);
        let description = description(&args.next())?;
        let mut function = |name: &str| match args.next() {
            Given::Function(callback) => Ok(callback),
            other => Err(wrong_type(name, "a function", other.kind())),
        };
        let (call, abort) = (function("the handler")?, function("abort")?);
        let root = isolane::answer_of(&format!("{service}.{name}"));
        let handler = Handler { call, abort, root, calls: AtomicU64::new(0) };
        Ok(Self { service, name, description, handler })
    }
}

/// Reads the description of a tool.
fn description(given: &Given) -> Result<ToolDescription, Error> {
    let Given::Object(entries) = given else {
        return Err(wrong_type("the tool", "an object", given.kind()));
    };
    let names = ["description", "inputSchema", "outputSchema"].map(str::to_owned);
    if let Some((key, _)) = entries.iter().find(|(key, _)| !names.contains(key)) {
        return Err(unknown_name("", key, &names));
    }
    let Given::Text(description) = given.get("description") else {
        return Err(wrong_type("description", "a string", given.get("description").kind()));
    };
    let schema = |name: &str| {
        let given = given.get(name);
        if given.is_absent() {
            return Ok(None);
        }
        given.json().map(Some).ok_or_else(|| type_error(format!("{name} must be JSON")))
    };
    Ok(ToolDescription {
        description: description.clone(),
        input_schema: schema("inputSchema")?,
        output_schema: schema("outputSchema")?,
    })
}

#[async_trait]
impl ToolHandler for Handler {
    async fn call(&self, args: Value, context: ToolContext) -> Result<Value, ToolError> {
        let number = message(&self.calls.fetch_add(1, Ordering::Relaxed));
        let args = [to_message(&args), message(&context.eid), number.clone()];
        let answer = tokio::select! {
            answer = self.call.call(&args) => answer,
            () = context.signal.cancelled() => {
                self.abort.notify(&[number]);
                return Err(ToolError::new("Error", "the execution has ended"));
            }
        };
        let value = answer.map_err(|thrown| tool_error(&thrown))?;
        let how = Reading { drops_undefined: true, ..Reading::strict(&self.root, MOST_BYTES) };
        let json = to_json(&value, how);
        json.map(Option::unwrap_or_default)
            .map_err(|fault| ToolError::new(fault.name, fault.message))
    }
}
