//! The answers of the page, as messages.
//!
//! In: an answer of the browser, whose texts the page chooses. Out: a message without values of secrets, which was
//! charged to the run before it was made; or an error.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use isolane::{Value, value::Writer};

use super::{Answer, MOST_MESSAGE_BYTES, request::Method, script};
use crate::{
    error::KitError,
    json_form::{ParseFault, parse_json},
    message_copy::redacted,
    redaction::Redactor,
    room::{Room, RunRoom},
};

pub(super) fn no_room() -> KitError {
    KitError::new("RangeError", "the answer is too large for the run")
}

fn too_large(most_bytes: u64) -> KitError {
    KitError::new("BrowserLimit", format!("the answer is larger than {most_bytes} bytes"))
}

/// The answer as a message, without values of secrets.
pub(super) fn written(
    method: Method,
    answer: Answer,
    redactor: &Arc<Redactor>,
    most_bytes: u64,
    room: &mut RunRoom,
) -> Result<Value, KitError> {
    let bytes = match &answer {
        Answer::Nothing | Answer::TooLarge => 0,
        Answer::Arrived { url, title, .. } => url.len() + title.len(),
        Answer::Text(text) => text.len(),
        Answer::Bytes(bytes) => bytes.len(),
    };
    // The text of an evaluation has more than the answer.
    let is_answer = method != Method::Evaluate;
    if matches!(answer, Answer::TooLarge) || (is_answer && bytes as u64 > most_bytes) {
        return Err(too_large(most_bytes));
    }
    // The answer, its redaction, and the message while it grows.
    if !room.take(4 * bytes + 1_024) {
        return Err(no_room());
    }
    let mut writer = Writer::new();
    match answer {
        Answer::Text(text) if method == Method::Evaluate => {
            return evaluated(&text, redactor, most_bytes, room);
        }
        Answer::Text(text) => writer.string(&redactor.text(&text)),
        Answer::Arrived { url, title, status } => {
            writer.object();
            writer.key("url");
            writer.string(&redactor.text(&url));
            writer.key("title");
            writer.string(&redactor.text(&title));
            writer.key("status");
            writer.int(i32::from(status));
            writer.end_object();
        }
        Answer::Bytes(png) => {
            let size = |at: usize| {
                let bytes = png.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
                bytes.map_or(0, u32::from_be_bytes)
            };
            writer.object();
            writer.key("image");
            writer.string(&STANDARD.encode(&png));
            // A PNG has them in its first chunk.
            writer.key("width");
            writer.number(f64::from(size(16)));
            writer.key("height");
            writer.number(f64::from(size(20)));
            writer.end_object();
        }
        Answer::Nothing | Answer::TooLarge => return Ok(Value::undefined()),
    }
    Ok(writer.finish())
}

/// The value of an evaluation, from its outcome.
fn evaluated(
    text: &str,
    redactor: &Arc<Redactor>,
    most_bytes: u64,
    room: &mut RunRoom,
) -> Result<Value, KitError> {
    let gave_none = || KitError::new("BrowserError", "the page gave no answer");
    let parsed = |json: &str, room: &mut RunRoom| {
        parse_json(json, room).map_err(|fault| match fault {
            ParseFault::NoRoom => no_room(),
            ParseFault::Malformed(_) => gave_none(),
        })
    };
    match script::Outcome::read(text).ok_or_else(gave_none)? {
        script::Outcome::Json(json) if json.len() as u64 <= most_bytes => {
            let value = parsed(json, room)?;
            // The copy, and what the replacements add.
            if !redactor.is_empty() && !room.take(4 * json.len()) {
                return Err(no_room());
            }
            Ok(redacted(&value, redactor).unwrap_or(value))
        }
        script::Outcome::Json(_) | script::Outcome::TooLarge => Err(too_large(most_bytes)),
        script::Outcome::Thrown(json) => {
            let thrown = parsed(json, room)?.deserialize::<script::Thrown>();
            let script::Thrown { name, message } = thrown.map_err(|_| gave_none())?;
            let line = message.lines().next().unwrap_or_default();
            let line = &line[..line.floor_char_boundary(MOST_MESSAGE_BYTES)];
            let line = redactor.text(line);
            if name == "SerializationError" {
                return Err(KitError::new("SerializationError", line));
            }
            let name = &name[..name.floor_char_boundary(MOST_MESSAGE_BYTES)];
            let name = redactor.text(name);
            let shown = if name.is_empty() { line.into_owned() } else { format!("{name}: {line}") };
            Err(KitError::new("BrowserError", shown))
        }
    }
}
