//! The bindings of executions that an environment of the caller's language runs.
//!
//! In: calls by the number that the environment got beside the input. Out: calls of the bindings. A number that is not
//! known is that of an execution that has settled: its calls are dropped.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use isolane::{Completion, Error, Value, wrong_type};
use isolane_door::Given;

use super::{
    Args,
    given::{lenient_json, strict_json},
    type_error,
};
use crate::{
    EnvironmentBindings, ErrorDetails, ExecutionFailure, ExecutionState, ToolError,
    json::to_message, locks::lock,
};

/// The bindings of all executions of one environment.
#[derive(Default)]
pub(super) struct AllBindings {
    known: Mutex<HashMap<u64, EnvironmentBindings>>,
    last: std::sync::atomic::AtomicU64,
}

/// Keeps the bindings of one execution known.
pub(super) struct Known {
    all: Arc<AllBindings>,
    pub(super) number: u64,
}

impl Drop for Known {
    fn drop(&mut self) {
        lock(&self.all.known).remove(&self.number);
    }
}

impl AllBindings {
    pub(super) fn add(self: &Arc<Self>, bindings: EnvironmentBindings) -> Known {
        let number = self.last.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        lock(&self.known).insert(number, bindings);
        Known { all: Arc::clone(self), number }
    }

    fn get(&self, number: u64) -> Option<EnvironmentBindings> {
        lock(&self.known).get(&number).cloned()
    }

    /// Calls a binding: `(number, eid, value)`. `None` if there is none of that name.
    pub(super) fn ask(&self, name: &str, args: Vec<Given>) -> Option<Result<Value, Error>> {
        let mut args = Args::new(args);
        let mut call = |act: fn(&EnvironmentBindings, u64, Given) -> Result<(), Error>| {
            let (number, eid) = (args.whole("the number")?, args.whole("eid")?);
            if let Some(bindings) = self.get(number) {
                act(&bindings, eid, args.next())?;
            }
            Ok(Value::undefined())
        };
        match name {
            "setState" => {
                Some(call(|bindings, eid, value| bindings.set_state(eid, state(&value)?)))
            }
            "stdout" => Some(call(|bindings, eid, value| match value {
                Given::Text(text) => bindings.stdout(eid, text),
                Given::Bytes(bytes) => bindings.stdout(eid, bytes),
                other => Err(wrong_type("stdout", "text or bytes", other.kind())),
            })),
            "stderr" => Some(call(|bindings, eid, value| match value {
                Given::Text(text) => bindings.stderr(eid, text),
                Given::Bytes(bytes) => bindings.stderr(eid, bytes),
                other => Err(wrong_type("stderr", "text or bytes", other.kind())),
            })),
            "output" => Some(call(|bindings, eid, value| match strict_json("output", &value)? {
                serde_json::Value::Object(fields) => bindings.output(eid, fields),
                _ => Err(wrong_type("output", "a plain object", value.kind())),
            })),
            "error" => Some(call(|bindings, eid, value| bindings.error(eid, failure(value)?))),
            _ => None,
        }
    }

    /// Calls a tool: `(number, eid, name, args)`.
    pub(super) fn invoke_tool(
        &self,
        args: Vec<Given>,
    ) -> Result<impl Future<Output = Completion> + Send + use<>, Error> {
        let mut args = Args::new(args);
        let (number, eid) = (args.whole("the number")?, args.whole("eid")?);
        let (bindings, name) = (self.get(number), args.text("name")?);
        let value = args.next();
        let json = if value.is_absent() {
            serde_json::Value::Object(serde_json::Map::new())
        } else {
            lenient_json("args", &value)?
        };
        if crate::json::is_too_deep(&json) {
            return Err(type_error(format!("args nests deeper than {}", crate::json::MOST_DEPTH)));
        }
        Ok(async move {
            let answer = match bindings {
                Some(bindings) => bindings.invoke_tool(eid, &name, json).await,
                None => Err(ToolError::new("Error", "the execution has ended")),
            };
            answer.map(|value| to_message(&value)).map_err(|error| error.to_value())
        })
    }
}

fn state(value: &Given) -> Result<ExecutionState, Error> {
    let state = match value {
        Given::Text(word) => ExecutionState::named(word),
        _ => None,
    };
    state.ok_or_else(|| {
        let shown = match value {
            Given::Text(word) => format!("'{}'", word.chars().take(100).collect::<String>()),
            other => other.kind().to_owned(),
        };
        wrong_type("the state", "'queued' or 'running'", &shown)
    })
}

fn failure(value: Given) -> Result<ExecutionFailure, Error> {
    match value {
        Given::Text(text) => Ok(ExecutionFailure::Text(text)),
        Given::Object(_) => {
            let wrong = || {
                type_error(
                    "error takes text or { name?, message, stack?, filename?, line?, column? }",
                )
            };
            let json = value.json().filter(|json| json["message"].is_string()).ok_or_else(wrong)?;
            let details: ErrorDetails = serde_json::from_value(json).map_err(|_| wrong())?;
            Ok(ExecutionFailure::Details(details))
        }
        other => Err(wrong_type("error", "text or an object", other.kind())),
    }
}
