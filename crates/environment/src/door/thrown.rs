//! Errors that cross between the languages and the service.
//!
//! In: values that a caller's function threw. Out: texts and errors of tools. And back: problems as values.

use isolane::{
    Completion, ErrorCode, Value, inspect,
    value::{Event, Malformed},
};
use serde_json::json;

use crate::{EnvironmentError, ProcessError, ToolError, json::to_message};

/// The longest text that is shown of a value that is no error.
const MOST_SHOWN: usize = 1000;

/// The names that say nothing.
const PLAIN: [&str; 3] = ["", "Error", "Exception"];

/// A thrown value as the error of a tool.
pub(super) fn tool_error(thrown: &Value) -> ToolError {
    read(thrown).unwrap_or_else(|_| ToolError::new("Error", shown(thrown)))
}

/// A thrown value as the error of an environment.
pub(super) fn environment_error(thrown: &Value) -> EnvironmentError {
    EnvironmentError::new(match read(thrown) {
        Ok(error) if PLAIN.contains(&error.name.as_str()) => error.message,
        Ok(error) => error.to_string(),
        Err(_) => shown(thrown),
    })
}

/// A value that is no exit state, as an error names it.
pub(super) fn no_exit_state(value: &Value) -> EnvironmentError {
    let shown: String = shown(value).chars().take(100).collect();
    let is_text = matches!(value.reader().event(), Ok(Event::String(_)));
    EnvironmentError::no_exit_state(&if is_text { format!("'{shown}'") } else { shown })
}

/// A problem as the value that its promise rejects with: `{ code, message }`.
pub(super) fn problem(error: &ProcessError) -> Value {
    to_message(&json!({ "code": error.code.as_str(), "message": error.message }))
}

/// An answer that is JSON.
pub(super) fn answer<T: serde::Serialize>(answer: Result<T, ProcessError>) -> Completion {
    answer.map(|value| message(&value)).map_err(|error| problem(&error))
}

/// A value of the service as a message.
pub(super) fn message<T: serde::Serialize + ?Sized>(value: &T) -> Value {
    // Records, lists and texts have a JSON form always.
    serde_json::to_value(value).map_or_else(|_| Value::undefined(), |json| to_message(&json))
}

fn shown(value: &Value) -> String {
    inspect(value, MOST_SHOWN)
}

fn read(thrown: &Value) -> Result<ToolError, Malformed> {
    let mut reader = thrown.reader();
    let Event::Error(_) = reader.event()? else { return Err(Malformed) };
    let name = reader.text()?.to_string_lossy();
    let message = reader.text()?.to_string_lossy();
    reader.event()?;
    let code = match reader.event()? {
        Event::Int(code) => Some(ErrorCode::Number(f64::from(code))),
        Event::Double(code) => Some(ErrorCode::Number(code)),
        Event::String(code) => Some(ErrorCode::Text(code.to_string_lossy())),
        _ => None,
    };
    Ok(ToolError { code, ..ToolError::new(name, message) })
}
