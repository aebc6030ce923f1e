//! The answer of a tool, as its cell sees it.
//!
//! In: any value. Out: of a tool result, `{ content, details?, isError? }`, the text, with the images displayed, or an
//! error; any other value as it is.

use isolane::HostError;
use serde_json::Value as Json;

use super::HostAnswer;
use crate::{Image, record::Record};

/// Reads the answer of a tool, and displays its images.
pub(super) fn read(answer: Option<Json>, record: &Record) -> HostAnswer {
    let Some(blocks) = answer.as_ref().and_then(blocks) else { return Ok(answer) };
    let mut texts: Vec<&str> = Vec::new();
    let mut images = 0_u64;
    for block in blocks {
        let text =
            |keys: &[&str]| keys.iter().find_map(|key| block.get(key)).and_then(Json::as_str);
        if let Some(text) = text(&["text"]) {
            texts.push(text);
        } else if let (Some(data), Some(mime_type)) =
            (text(&["data"]), text(&["mimeType", "mime_type"]))
        {
            images += 1;
            record.image(Image { data: data.to_owned(), mime_type: mime_type.to_owned() });
        }
    }
    let shown = match images {
        0 => None,
        1 => Some("(1 image displayed)".to_owned()),
        _ => Some(format!("({images} images displayed)")),
    };
    let mut lines: Vec<String> = texts.into_iter().map(str::to_owned).collect();
    lines.extend(shown);
    let text = lines.join("\n");
    let is_error = ["isError", "is_error"].iter().any(|key| {
        answer.as_ref().and_then(|answer| answer.get(key)).and_then(Json::as_bool) == Some(true)
    });
    if is_error { Err(HostError::new("Error", text)) } else { Ok(Some(text.into())) }
}

/// The blocks of a tool result; `None` if the value is something else.
fn blocks(answer: &Json) -> Option<&Vec<Json>> {
    let fields = answer.as_object()?;
    let keys = ["content", "details", "isError", "is_error"];
    if fields.keys().any(|key| !keys.contains(&key.as_str())) {
        return None;
    }
    let blocks = fields.get("content")?.as_array()?;
    let is_block =
        |block: &Json| matches!(block.get("type").and_then(Json::as_str), Some("text" | "image"));
    blocks.iter().all(is_block).then_some(blocks)
}
