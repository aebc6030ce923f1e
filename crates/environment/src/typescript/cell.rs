//! The cell of an execution.
//!
//! In: code, and the bindings. Out: the result of the cell, and then what the bindings are told of it. The status of the
//! cell decides about the exit state, never a text of its code.

use std::sync::Arc;

use isolane::{
    CellOptions, Error, ExecutionError, ExecutionResult, Runtime, Session, SessionInterceptor,
    SessionOptions, Status, ValueFrom,
};
use serde_json::Map;

use super::{
    TypeScriptEnvironmentOptions,
    console::{Console, Consoles},
    globals,
};
use crate::{
    EnvironmentBindings, ErrorDetails, ExecutionExitState, ExecutionFailure,
    json::{JsonFault, Reading, to_json},
    tools::imports,
};

/// The most bytes of a value that is read at all; the host of the execution has a bound of its own.
const MOST_RESULT_BYTES: usize = 64 << 20;

/// The values for the isolate of one execution, beside the options.
#[derive(Default)]
pub(super) struct Handed {
    bindings: Option<Arc<EnvironmentBindings>>,
}

/// Opens the session of one execution.
pub(super) fn open(
    options: &TypeScriptEnvironmentOptions,
    runtime: &Runtime,
    handed: Handed,
) -> Result<Session, Error> {
    let mut session = SessionOptions {
        imports: options.imports.clone(),
        modules: options.modules.clone(),
        globals: options.globals.clone(),
        memory_limit_bytes: options.memory_limit_bytes,
        // There is no second cell for which a state would be kept.
        checkpoint_bytes: Some(0),
        ..SessionOptions::default()
    };
    let mut interceptor = None;
    if let Some(bindings) = handed.bindings {
        globals::insert(&mut session.globals, &bindings);
        imports::insert(&mut session.imports, &bindings.tools(), &bindings);
        let consoles = Consoles(Arc::new(Console::new(bindings)));
        interceptor = Some(Arc::new(consoles) as Arc<dyn SessionInterceptor>);
    }
    let spelling = options.spelling;
    runtime.session_with(session, |mut request| {
        request.interceptor = interceptor;
        // The bindings have them.
        request.keeps_logs = false;
        request.spelling = spelling;
        Ok(request)
    })
}

/// Runs the code. Dropping the future ends the code.
pub(super) async fn run(
    options: &TypeScriptEnvironmentOptions,
    runtime: &Runtime,
    code: String,
    timeout_ms: u64,
    bindings: &EnvironmentBindings,
) -> Result<ExecutionResult, Error> {
    let handed = Handed { bindings: Some(Arc::new(bindings.clone())) };
    let session = open(options, runtime, handed)?;
    let cell = CellOptions {
        filename: Some(format!("process-{}.ts", bindings.eid())),
        timeout_ms: Some(timeout_ms),
        ..CellOptions::default()
    };
    session.run(code, cell).await
}

/// Tells the bindings of a result.
pub(super) fn tell(
    result: ExecutionResult,
    timeout_ms: u64,
    bindings: &EnvironmentBindings,
) -> ExecutionExitState {
    let eid = bindings.eid();
    let fail = |failure: ExecutionFailure| {
        // The number is the right one.
        let _ = bindings.error(eid, failure);
        ExecutionExitState::Failed
    };
    if result.status == Status::Success {
        return match merge_result(&result, bindings) {
            Ok(()) => ExecutionExitState::Success,
            Err(JsonFault { name, message }) => {
                let name = Some(name.to_owned());
                fail(ExecutionFailure::Details(ErrorDetails {
                    name,
                    message,
                    ..ErrorDetails::default()
                }))
            }
        };
    }
    let error = result.error.unwrap_or_default();
    // Nothing but the library gives a terminated cell this name.
    if result.status == Status::Terminated && error.name == "Timeout" {
        fail(ExecutionFailure::Text(format!("the execution took longer than {timeout_ms} ms")));
        return ExecutionExitState::Timeout;
    }
    fail(ExecutionFailure::Details(details(error)))
}

/// Merges the value of `return` or `export default` into the output.
fn merge_result(result: &ExecutionResult, bindings: &EnvironmentBindings) -> Result<(), JsonFault> {
    let cell = result.cell.as_deref();
    let from = cell.and_then(|cell| cell.value_from);
    if !matches!(from, Some(ValueFrom::Return | ValueFrom::Default)) {
        return Ok(());
    }
    if let Some(message) = cell.and_then(|cell| cell.uncloned.clone()) {
        return Err(JsonFault { name: "TypeError", message });
    }
    let Some(value) = &result.result else { return Ok(()) };
    let Some(json) = to_json(value, Reading::strict("result", MOST_RESULT_BYTES))? else {
        return Ok(());
    };
    let fields = Map::from_iter([("result".to_owned(), json)]);
    bindings
        .output(bindings.eid(), fields)
        .map_err(|error| JsonFault { name: "RangeError", message: error.message().to_owned() })
}

fn details(error: ExecutionError) -> ErrorDetails {
    let ExecutionError { name, message, stack, filename, line, column, .. } = error;
    ErrorDetails { name: Some(name), message, stack, filename, line, column }
}
