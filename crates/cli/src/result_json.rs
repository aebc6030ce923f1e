//! A result as one line of JSON.
//!
//! In: a result. Out: the fields that Node has, values tagged where JSON has none.

use isolane::{ExecutionError, ExecutionResult, Value, value::Event};
use serde::Serialize;

use crate::tagged::tagged;

/// The result in one line, without the line break.
pub(crate) fn line(result: &ExecutionResult) -> String {
    let mut fields = vec![field("status", &quoted(result.status.as_str()))];
    if let Some(value) = result.result.as_ref().filter(|value| is_given(value)) {
        fields.push(field("result", &tagged(value)));
    }
    if let Some(error) = &result.error {
        fields.push(field("error", &error_json(error)));
    }
    fields.push(field("reports", &list(result.reports.iter().map(tagged))));
    let logs = result.logs.iter().map(|log| {
        let (level, args) = (quoted(log.level.as_str()), tagged(&log.args));
        format!("{{\"level\":{level},\"args\":{args},\"timestamp\":{}}}", log.timestamp)
    });
    fields.push(field("logs", &list(logs)));
    fields.push(field("durationMs", &result.duration_ms.to_string()));
    if let Some(bytes) = result.memory_used_bytes {
        fields.push(field("memoryUsedBytes", &bytes.to_string()));
    }
    format!("{{{}}}", fields.join(","))
}

/// Whether it is a value, and not `undefined`.
pub(crate) fn is_given(value: &Value) -> bool {
    !matches!(value.reader().event(), Ok(Event::Undefined))
}

/// The error of a result.
pub(crate) fn error(error: &ExecutionError) -> serde_json::Value {
    serde_json::to_value(ErrorForm::new(error)).expect("texts and numbers")
}

fn field(name: &str, json: &str) -> String {
    format!("\"{name}\":{json}")
}

fn list(elements: impl Iterator<Item = String>) -> String {
    format!("[{}]", elements.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// An error by the names that it has in Node.
#[derive(Serialize)]
struct ErrorForm<'e> {
    name: &'e str,
    message: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    specifier: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
}

impl<'e> ErrorForm<'e> {
    fn new(error: &'e ExecutionError) -> Self {
        Self {
            name: &error.name,
            message: &error.message,
            stack: error.stack.as_deref(),
            specifier: error.specifier.as_deref(),
            filename: error.filename.as_deref(),
            line: error.line,
            column: error.column,
        }
    }
}

fn error_json(error: &ExecutionError) -> String {
    serde_json::to_string(&ErrorForm::new(error)).expect("texts and numbers")
}
