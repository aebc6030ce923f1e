//! Tools as imports of code.
//!
//! In: calls of the code: one object. Out: calls of a [`Caller`], and their answers as promises. JSON goes both ways.

use std::{collections::BTreeMap, sync::Arc};

use isolane::{
    Completion, HostError, HostFunction, Inputs, NativeAnswer, NativeCall, NativeFunction,
    NativeMode, NativeRun, Value,
};
use tokio::sync::Semaphore;

use super::{ToolCalls, ToolError, ToolInfo};
use crate::{
    EnvironmentBindings,
    json::{JsonFault, Reading, to_json, to_message},
};

/// Calls whose arguments are read at once. Those of others stay where they count against the memory of the execution.
const CALLS_AT_ONCE: usize = 16;

/// The most bytes of arguments, as JSON.
const MOST_BYTES: usize = 4 << 20;

/// Calls tools for code.
pub(crate) trait Caller: Clone + Send + Sync + 'static {
    /// Calls a tool by its full name.
    fn call(
        &self,
        run: &NativeRun,
        full_name: String,
        args: serde_json::Value,
    ) -> impl Future<Output = Result<serde_json::Value, ToolError>> + Send + 'static;
}

/// Finds the calls of the execution that a run is, or that its present cell is.
#[derive(Clone)]
pub(crate) struct Finder(pub(crate) Arc<Find>);

pub(crate) type Find = dyn Fn(&NativeRun) -> Option<Arc<ToolCalls>> + Send + Sync;

impl Caller for Finder {
    fn call(
        &self,
        run: &NativeRun,
        full_name: String,
        args: serde_json::Value,
    ) -> impl Future<Output = Result<serde_json::Value, ToolError>> + Send + 'static {
        let calls = (self.0)(run);
        async move {
            match calls {
                Some(calls) => calls.invoke(&full_name, args).await,
                None => Err(ToolError::new("Error", "the execution has ended")),
            }
        }
    }
}

/// An execution of an environment.
impl Caller for Arc<EnvironmentBindings> {
    fn call(
        &self,
        _run: &NativeRun,
        full_name: String,
        args: serde_json::Value,
    ) -> impl Future<Output = Result<serde_json::Value, ToolError>> + Send + 'static {
        let bindings = Self::clone(self);
        async move { bindings.invoke_tool(bindings.eid(), &full_name, args).await }
    }
}

/// Adds the tools to what code may import.
pub(crate) fn insert(
    imports: &mut BTreeMap<String, Inputs>,
    tools: &[ToolInfo],
    caller: &impl Caller,
) {
    let places = Arc::new(Semaphore::new(CALLS_AT_ONCE));
    for tool in tools {
        let function = ToolFunction {
            full_name: tool.full_name(),
            shown_name: tool.shown_name(),
            caller: caller.clone(),
            places: Arc::clone(&places),
        };
        let exports = imports.entry(tool.service.clone()).or_default();
        exports.insert(tool.identifier.clone(), HostFunction::native(Arc::new(function)));
    }
}

struct ToolFunction<C> {
    full_name: String,
    shown_name: String,
    caller: C,
    places: Arc<Semaphore>,
}

impl<C: Caller> NativeFunction for ToolFunction<C> {
    fn name(&self) -> &str {
        &self.shown_name
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let (full_name, shown_name) = (self.full_name.clone(), self.shown_name.clone());
        let (caller, places) = (self.caller.clone(), Arc::clone(&self.places));
        NativeAnswer::later(async move {
            // The semaphore is never closed.
            let _place = places.acquire().await;
            let args = arguments(&shown_name, &call.args)?;
            let answering = caller.call(&call.run, full_name, args);
            drop(call);
            answer(answering.await)
        })
    }
}

/// The arguments of a call: one object, or none.
fn arguments(name: &str, args: &Value) -> Result<serde_json::Value, Value> {
    let root = "args";
    let how =
        Reading { is_argument: true, drops_undefined: true, ..Reading::strict(root, MOST_BYTES) };
    let named =
        |fault: JsonFault| JsonFault { message: format!("{name}: {}", fault.message), ..fault };
    match to_json(args, how).map_err(|fault| of_fault(&named(fault)))? {
        None => Ok(serde_json::Value::Object(serde_json::Map::new())),
        Some(object @ serde_json::Value::Object(_)) => Ok(object),
        Some(_) => Err(type_error(format!("{name} takes one object"))),
    }
}

fn answer(answer: Result<serde_json::Value, ToolError>) -> Completion {
    answer.map(|value| to_message(&value)).map_err(|error| error.to_value())
}

fn of_fault(fault: &JsonFault) -> Value {
    HostError::new(fault.name, fault.message.clone()).to_value()
}

fn type_error(message: String) -> Value {
    HostError::new("TypeError", message).to_value()
}
