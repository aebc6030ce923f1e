//! Answers of tools as values of the code.
//!
//! In: the result of a call. Out: its structured content, if it has some; else its text, as it is; else its parts, as the
//! protocol has them: `{ type: 'image', data, mimeType }`. An error of the tool is thrown with its text.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value as Json;

use super::failure::Failure;

/// The value of a result.
///
/// # Errors
/// The text of a tool that failed.
pub(super) fn value(result: CallToolResult) -> Result<Json, Failure> {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    if is_error == Some(true) {
        let text = texts(&content).join("\n");
        return Err(match (text.is_empty(), structured_content) {
            (true, Some(value)) => Failure::of_tool(value.to_string()),
            (true, None) => Failure::new("the tool failed".to_owned()),
            (false, _) => Failure::of_tool(text),
        });
    }
    if let Some(value) = structured_content {
        return Ok(value);
    }
    if content.is_empty() {
        return Ok(Json::Null);
    }
    let texts = texts(&content);
    if texts.len() == content.len() {
        return Ok(Json::String(texts.join("\n")));
    }
    serde_json::to_value(&content)
        .map_err(|error| Failure::new(format!("the answer cannot be read: {error}")))
}

fn texts(content: &[ContentBlock]) -> Vec<&str> {
    content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(result: Json) -> Result<Json, String> {
        let result = serde_json::from_value(result).expect("a result");
        value(result).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn an_answer_is_structured_content_or_text_or_parts() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let structured = json!({ "content": [text("x")], "structuredContent": { "a": 1 } });
        assert_eq!(of(structured), Ok(json!({ "a": 1 })));
        let null = json!({ "content": [text("null")], "structuredContent": null });
        assert_eq!(of(null), Ok(Json::Null));
        let texts = json!({ "content": [text("{\"a\":1}"), text("b")] });
        assert_eq!(of(texts), Ok(json!("{\"a\":1}\nb")));
        assert_eq!(of(json!({ "content": [] })), Ok(Json::Null));
        let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
        let mixed = json!([text("a"), image]);
        assert_eq!(of(json!({ "content": mixed })), Ok(mixed.clone()));
        let failed = of(json!({ "content": [text("no such repo")], "isError": true }));
        assert!(failed.expect_err("an error").contains("\"no such repo\", is_of_tool: true"));
    }
}
