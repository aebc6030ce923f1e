//! The answer of a tool, as its cell sees it.
//!
//! In: any value. Out: of a tool result, `{ content, details?, isError? }`, the text, with the images displayed, or an
//! error; any other value as it is.

use isolane::{HostError, Value, value::Event};
use serde_json::Value as Json;

use super::{HostAnswer, seen::Seen, value};
use crate::{Image, record::Record};

/// The keys of a tool result, in both spellings.
const KEYS: [&str; 4] = ["content", "details", "isError", "is_error"];

/// Reads the answer of a tool, and displays its images. The text says which images are left out.
pub(super) fn read(answer: Value, record: &Record) -> HostAnswer {
    let Some(result) = tool_result(&answer) else { return Ok(answer) };
    let mut lines: Vec<String> = Vec::new();
    let (mut images, mut left_out) = (0_u64, Vec::new());
    for block in blocks(&result).into_iter().flatten() {
        if is_block(block, "image") {
            match record.image(image(block)) {
                Ok(()) => images += 1,
                Err(text) => left_out.push(text),
            }
        } else {
            lines.extend(text(block, &["text"]));
        }
    }
    lines.extend(match images {
        0 => None,
        1 => Some("(1 image displayed)".to_owned()),
        _ => Some(format!("({images} images displayed)")),
    });
    lines.append(&mut left_out);
    let text = lines.join("\n");
    let is_error = KEYS[2..].iter().any(|key| result.get(key) == Some(&Json::Bool(true)));
    if is_error { Err(HostError::new("Error", text)) } else { Ok(value::text(&text)) }
}

/// The image of a block; what is not there is empty.
fn image(block: &Json) -> Image {
    let field = |keys: &[&str]| text(block, keys).unwrap_or_default();
    Image { data: field(&["data"]), mime_type: field(&["mimeType", "mime_type"]) }
}

/// The first of these fields that is text.
fn text(block: &Json, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| block.get(key)?.as_str()).map(str::to_owned)
}

/// The tool result that a value is; `None` if it is something else.
fn tool_result(answer: &Value) -> Option<Json> {
    let mut reader = answer.reader();
    let Ok(Event::Object) = reader.event() else { return None };
    // Most values are something else, and one look tells.
    let first = reader.key().ok()??.text.to_string_lossy();
    if !KEYS.contains(&first.as_str()) {
        return None;
    }
    let result = Seen::new(answer)?.json;
    let is_known = result.as_object()?.keys().all(|key| KEYS.contains(&key.as_str()));
    (is_known && blocks(&result).is_some()).then_some(result)
}

/// The blocks of a tool result; `None` if the value is something else.
fn blocks(result: &Json) -> Option<&Vec<Json>> {
    let blocks = result.get("content")?.as_array()?;
    let is_known = |block: &Json| is_block(block, "text") || is_block(block, "image");
    blocks.iter().all(is_known).then_some(blocks)
}

fn is_block(block: &Json, kind: &str) -> bool {
    block.get("type").and_then(Json::as_str) == Some(kind)
}
