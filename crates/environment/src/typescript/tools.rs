//! The tools of an execution, as imports of its code.
//!
//! In: calls of the code: one object. Out: calls of the bindings, and their answers as promises. JSON goes both ways.

use std::{collections::BTreeMap, sync::Arc};

use isolane::{
    Completion, HostFunction, Inputs, NativeAnswer, NativeCall, NativeFunction, NativeMode, Value,
};
use tokio::sync::Semaphore;

use super::{
    Reporter,
    globals::{of_fault, type_error},
};
use crate::{
    ToolError, ToolInfo,
    json::{JsonFault, Reading, to_json, to_message},
};

/// Calls whose arguments are read at once. Those of others stay where they count against the memory of the execution.
const CALLS_AT_ONCE: usize = 16;

/// The most bytes of arguments, as JSON.
const MOST_BYTES: usize = 4 << 20;

/// Adds the tools to what code may import.
pub(super) fn insert(imports: &mut BTreeMap<String, Inputs>, bindings: &Reporter) {
    let places = Arc::new(Semaphore::new(CALLS_AT_ONCE));
    for tool in bindings.tools().iter() {
        let function = ToolFunction {
            full_name: tool.full_name(),
            shown_name: tool.shown_name(),
            bindings: Arc::clone(bindings),
            places: Arc::clone(&places),
        };
        let exports = imports.entry(tool.service.clone()).or_default();
        insert_export(exports, tool, HostFunction::native(Arc::new(function)));
    }
}

fn insert_export(exports: &mut Inputs, tool: &ToolInfo, function: HostFunction) {
    exports.insert(tool.identifier.clone(), function);
}

struct ToolFunction {
    full_name: String,
    shown_name: String,
    bindings: Reporter,
    places: Arc<Semaphore>,
}

impl NativeFunction for ToolFunction {
    fn name(&self) -> &str {
        &self.shown_name
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let (full_name, shown_name) = (self.full_name.clone(), self.shown_name.clone());
        let (bindings, places) = (Arc::clone(&self.bindings), Arc::clone(&self.places));
        NativeAnswer::later(async move {
            // The semaphore is never closed.
            let _place = places.acquire().await;
            let args = arguments(&shown_name, &call.args)?;
            drop(call);
            answer(bindings.invoke_tool(bindings.eid(), &full_name, args).await)
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
