//! Answers of tools.
//!
//! In: a result, names, a refusal. Out: a text for the model, the structured content, and whether it is an error.
//! Whatever the code does, an answer stays small: a text loses its middle, and values that are too large are left out.

use isolane::{ExecutionResult, Name, SessionState, Status, Value, console_line};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value as Json, json};

use super::{bounded::Bounded, catalogue::Found};
use crate::{result_json, tagged::tagged};

/// The bytes of all values of a log that are no strings, as text.
const MOST_SHOWN_BYTES: usize = 16 << 10;

/// The bytes of the values of an answer, as JSON.
const MOST_BYTES: usize = 256 << 10;

/// The result of a cell. `is_cell`: its session stays.
pub(super) fn of_result(result: &ExecutionResult, is_cell: bool) -> CallToolResult {
    let structured = structured(result, is_cell);
    answer(text(result, is_cell), Some(structured), result.status != Status::Success)
}

/// The names of a session.
pub(super) fn of_names(names: &[Name]) -> CallToolResult {
    let line = |name: &Name| {
        let size = name.size.map(|size| format!(" ({size})")).unwrap_or_default();
        format!("{} {}: {}{size}\n", name.kind.as_str(), name.name, name.kind_of)
    };
    let mut text = Bounded::default();
    if names.is_empty() {
        text.push("nothing is declared yet");
    }
    for name in names {
        text.push(&line(name));
    }
    let form = |name: &Name| {
        let mut form =
            json!({ "name": name.name, "kind": name.kind.as_str(), "type": name.kind_of });
        if let (Some(size), Json::Object(fields)) = (name.size, &mut form) {
            fields.insert("size".to_owned(), size.into());
        }
        form
    };
    let mut room = Room::new();
    let names = names.iter().filter_map(|name| room.keep("names", form(name)));
    let mut fields = Map::from_iter([("names".to_owned(), Json::Array(names.collect()))]);
    room.tell(&mut fields);
    answer(text.finish(), Some(Json::Object(fields)), false)
}

/// Tools of other servers that were found.
pub(super) fn of_tools(found: &Found) -> CallToolResult {
    let Found { types, names, count } = found;
    let mut text = Bounded::default();
    match (names.len(), *count) {
        (0, _) => text.push("no tool fits; try fewer words, or none"),
        (shown, count) if shown < count => {
            text.push(&format!("// {shown} of {count} tools that fit\n"));
        }
        _ => {}
    }
    text.push(types);
    let structured = json!({ "types": bounded(types), "tools": names, "count": count });
    answer(text.finish(), Some(structured), false)
}

/// A session that was reset.
pub(super) fn of_reset(name: &str) -> CallToolResult {
    answer(format!("the session '{name}' was reset"), Some(json!({ "session": "reset" })), false)
}

/// A call that did not begin, with the reason for the model.
pub(super) fn refused(reason: impl Into<String>) -> CallToolResult {
    answer(bounded(&reason.into()), None, true)
}

fn answer(text: String, structured: Option<Json>, is_error: bool) -> CallToolResult {
    let mut answer = CallToolResult::success(vec![ContentBlock::text(text)]);
    answer.structured_content = structured;
    answer.is_error = Some(is_error);
    answer
}

fn text(result: &ExecutionResult, is_cell: bool) -> String {
    let mut text = Bounded::default();
    for log in &result.logs {
        text.push(&console_line::<MOST_SHOWN_BYTES>(&log.args));
        text.push("\n");
    }
    if let Some(error) = &result.error {
        // A stack begins with the name and the message.
        let head = || format!("{}: {}", error.name, error.message);
        text.push(&error.stack.clone().unwrap_or_else(head));
        let place = (&error.stack, &error.filename, error.line, error.column);
        if let (None, Some(file), Some(line), Some(column)) = place {
            text.push(&format!(" ({file}:{line}:{column})"));
        }
    }
    let cell = result.cell.as_deref();
    if let Some(shown) = cell.and_then(|cell| cell.text.as_deref()) {
        text.push(shown);
    } else if result.error.is_none() && result.logs.is_empty() {
        text.push("undefined");
    }
    match cell.map(|cell| cell.session).filter(|_| is_cell) {
        Some(SessionState::RolledBack) => text.push("\nThe session is as it was before this cell."),
        Some(SessionState::Reset) => text.push("\nThe session was reset: its names are gone."),
        _ => {}
    }
    text.finish()
}

fn structured(result: &ExecutionResult, is_cell: bool) -> Json {
    let mut room = Room::new();
    let mut fields = Map::new();
    fields.insert("status".to_owned(), result.status.as_str().into());
    if let Some(value) = &result.result
        && result_json::is_given(value)
        && let Some(value) = room.json("result", value)
    {
        fields.insert("result".to_owned(), value);
    }
    let cell = result.cell.as_deref();
    if let Some(cell) = cell {
        let texts = [("text", &cell.text), ("uncloned", &cell.uncloned)];
        for (name, text) in texts.iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
            fields.insert((*name).to_owned(), bounded(text).into());
        }
    }
    if let Some(error) = &result.error {
        let mut form = result_json::error(error);
        for text in form.as_object_mut().into_iter().flat_map(Map::values_mut) {
            if let Json::String(text) = text {
                *text = bounded(text);
            }
        }
        fields.insert("error".to_owned(), form);
    }
    let reports = result.reports.iter().filter_map(|report| room.json("reports", report));
    fields.insert("reports".to_owned(), Json::Array(reports.collect()));
    let logs = result.logs.iter().filter_map(|log| {
        let args = room.json("logs", &log.args)?;
        Some(
            json!({ "level": log.level.as_str(), "args": args, "timestamp": whole(log.timestamp) }),
        )
    });
    fields.insert("logs".to_owned(), Json::Array(logs.collect()));
    room.tell(&mut fields);
    fields.insert("durationMs".to_owned(), result.duration_ms.into());
    if let Some(bytes) = result.memory_used_bytes {
        fields.insert("memoryUsedBytes".to_owned(), bytes.into());
    }
    if let Some(cell) = cell.filter(|_| is_cell) {
        fields.insert("session".to_owned(), cell.session.as_str().into());
    }
    Json::Object(fields)
}

/// A text that loses its middle if it is too long.
fn bounded(text: &str) -> String {
    let mut bounded = Bounded::default();
    bounded.push(text);
    bounded.finish()
}

/// The room for the values of an answer.
struct Room {
    bytes: usize,
    /// By field, how many values are left out.
    left_out: Map<String, Json>,
}

impl Room {
    /// The cost of each value beside its own bytes.
    const LEAST: usize = 64;

    fn new() -> Self {
        Self { bytes: MOST_BYTES, left_out: Map::new() }
    }

    /// The value as tagged JSON; `None` if there is no room for it, or if it is nested too deeply for JSON's readers.
    fn json(&mut self, field: &str, value: &Value) -> Option<Json> {
        let blobs: usize = value.blobs().iter().map(Vec::len).sum();
        // A value that is too large as a message is not written as JSON first.
        if value.nodes().len().saturating_add(blobs) > self.bytes {
            self.leave_out(field);
            return None;
        }
        let text = tagged(value);
        let json = if self.take(text.len()) { serde_json::from_str(&text).ok() } else { None };
        if json.is_none() {
            self.leave_out(field);
        }
        json
    }

    /// The JSON, if there is room for it.
    fn keep(&mut self, field: &str, json: Json) -> Option<Json> {
        if self.take(json.to_string().len()) {
            return Some(json);
        }
        self.leave_out(field);
        None
    }

    fn take(&mut self, bytes: usize) -> bool {
        let rest = self.bytes.checked_sub(bytes.saturating_add(Self::LEAST));
        self.bytes = rest.unwrap_or(self.bytes);
        rest.is_some()
    }

    fn leave_out(&mut self, field: &str) {
        let count = self.left_out.get(field).and_then(Json::as_u64).unwrap_or(0);
        self.left_out.insert(field.to_owned(), (count + 1).into());
    }

    /// Adds the field that counts the values left out, if there are any.
    fn tell(self, fields: &mut Map<String, Json>) {
        if !self.left_out.is_empty() {
            fields.insert("leftOut".to_owned(), Json::Object(self.left_out));
        }
    }
}

/// A number without a fraction as JSON writes it.
fn whole(number: f64) -> Json {
    if number.fract() != 0.0 || !(-9e15..9e15).contains(&number) {
        return number.into();
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole, in range")]
    let whole = number as i64;
    whole.into()
}
