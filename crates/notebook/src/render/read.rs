//! A result, read from JSON.
//!
//! In: what `execute` gave a user, in the keys of Node or of Python, perhaps written to a file in between. Out: a
//! [`CallResult`], or misuse with its path. Keys that are not known are those of a later version, and are passed over.

use isolane::Spelling;
use serde_json::{Map, Value as Json};

use crate::{
    Artifact, CallResult, CellError, CellResult, CellStatus, Image, Language, Misuse, Output,
    Truncation, Window,
    given::{MOST, spelled, whole_number, wrong_type},
};

impl CallResult {
    /// Reads `{ content, details, isError }`, or an update. Keys may have camel case or snake case; misuse names them in
    /// that of the caller. Only `details.cells` must be there.
    ///
    /// # Errors
    /// Misuse, whose path is the first place that no result has.
    pub fn from_json(given: &Json, spelling: Spelling) -> Result<Self, Misuse> {
        read(given, "result", "", spelling)
    }
}

/// Reads a result whose keys have that place in front; `name` is the result itself.
pub(crate) fn read(
    given: &Json,
    name: &str,
    place: &str,
    spelling: Spelling,
) -> Result<CallResult, Misuse> {
    let Json::Object(fields) = given else { return Err(wrong_type(name, "an object", given)) };
    let result = Fields { place: place.to_owned(), all: fields, spelling };
    let details = result.needed("details", Fields::object)?;
    let cells = details.needed("cells", |details, key| {
        details.list(key, |place, index, given| details.cell(place, index, given))
    })?;
    let meta = details.object("meta")?;
    let truncation = meta.map_or(Ok(None), |meta| meta.object("truncation"))?;
    let content = result.list("content", |place, _, given| result.within(place, given))?;
    let content = content.unwrap_or_default();
    let (mut text, mut images) = (String::new(), Vec::new());
    for block in &content {
        match block.needed("type", Fields::text)?.as_str() {
            "text" => text = block.needed("text", Fields::text)?,
            "image" => images.push(block.image()?),
            _ => return Err(block.wrong("type", "'text' or 'image'")),
        }
    }
    let is_error = match result.switch("is_error")? {
        Some(is_error) => is_error,
        None => details.switch("is_error")?.unwrap_or(false),
    };
    Ok(CallResult {
        text,
        images,
        cells,
        notice: details.text("notice")?,
        artifact: truncation.as_ref().map(Fields::artifact).transpose()?.flatten(),
        truncation: truncation.map(|cut| cut.truncation()).transpose()?,
        is_error,
    })
}

/// The fields of an object, and its place.
struct Fields<'j> {
    /// `details.cells[0].`, or nothing at the top.
    place: String,
    all: &'j Map<String, Json>,
    spelling: Spelling,
}

impl<'j> Fields<'j> {
    fn path(&self, key: &str) -> String {
        format!("{}{}", self.place, spelled(key, self.spelling))
    }

    fn value(&self, key: &str) -> Option<&'j Json> {
        let found = self.all.get(key).or_else(|| self.all.get(&spelled(key, Spelling::Camel)));
        found.filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, expected: &str) -> Misuse {
        wrong_type(&self.path(key), expected, self.value(key).unwrap_or(&Json::Null))
    }

    /// A field that must be there.
    fn needed<T>(
        &self,
        key: &str,
        read: impl Fn(&Self, &str) -> Result<Option<T>, Misuse>,
    ) -> Result<T, Misuse> {
        read(self, key)?.ok_or_else(|| Misuse::new(self.path(key), " is missing"))
    }

    fn text(&self, key: &str) -> Result<Option<String>, Misuse> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.wrong(key, "a string"))?;
        Ok(Some(text.to_owned()))
    }

    fn switch(&self, key: &str) -> Result<Option<bool>, Misuse> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(key, "true or false"))
    }

    fn number(&self, key: &str) -> Result<Option<f64>, Misuse> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| self.wrong(key, "a number"))
    }

    fn count(&self, key: &str, most: u64) -> Result<Option<u64>, Misuse> {
        let Some(value) = self.value(key) else { return Ok(None) };
        whole_number(&self.path(key), value, 0, most).map(Some)
    }

    fn position(&self, key: &str) -> Result<Option<u32>, Misuse> {
        let count = self.count(key, u32::MAX.into())?;
        Ok(count.and_then(|count| u32::try_from(count).ok()))
    }

    /// One of these words.
    fn word<T: Copy>(&self, key: &str, words: &[(&'static str, T)]) -> Result<Option<T>, Misuse> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let found = words.iter().find(|(word, _)| value.as_str() == Some(word));
        found.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("'{word}'")).collect();
            self.wrong(key, &words.join(" or "))
        })
    }

    fn object(&self, key: &str) -> Result<Option<Self>, Misuse> {
        let Some(value) = self.value(key) else { return Ok(None) };
        self.within(self.path(key), value).map(Some)
    }

    /// The object at a place within this one.
    fn within(&self, path: String, value: &'j Json) -> Result<Self, Misuse> {
        let Json::Object(fields) = value else {
            return Err(wrong_type(&path, "an object", value));
        };
        Ok(Self { place: path + ".", all: fields, spelling: self.spelling })
    }

    fn list<T>(
        &self,
        key: &str,
        read: impl Fn(String, usize, &'j Json) -> Result<T, Misuse>,
    ) -> Result<Option<Vec<T>>, Misuse> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let Json::Array(items) = value else { return Err(self.wrong(key, "a list")) };
        let item = |(index, item)| read(format!("{}[{index}]", self.path(key)), index, item);
        items.iter().enumerate().map(item).collect::<Result<_, _>>().map(Some)
    }

    fn cell(&self, path: String, index: usize, given: &'j Json) -> Result<CellResult, Misuse> {
        const STATES: [(&str, &str); 3] =
            [("kept", "kept"), ("rolledBack", "rolledBack"), ("reset", "reset")];
        let cell = self.within(path, given)?;
        let outputs =
            cell.list("outputs", |place, _, given| cell.within(place, given)?.output())?;
        let events = cell.list("status_events", |_, _, given| Ok(given.clone()))?;
        Ok(CellResult {
            index,
            title: cell.text("title")?,
            language: cell.needed("language", |cell, key| {
                cell.word(key, &[("py", Language::Py), ("js", Language::Js)])
            })?,
            code: cell.needed("code", Fields::text)?,
            name: cell.text("name")?,
            status: cell.needed("status", |cell, key| {
                let all = [
                    CellStatus::Pending,
                    CellStatus::Running,
                    CellStatus::Complete,
                    CellStatus::Error,
                ];
                cell.word(key, &all.map(|status| (status.as_str(), status)))
            })?,
            output: cell.text("output")?.unwrap_or_default(),
            outputs: outputs.unwrap_or_default(),
            duration_ms: cell.number("duration_ms")?.unwrap_or_default(),
            work_ms: cell.number("work_ms")?.unwrap_or_default(),
            exit_code: cell.count("exit_code", 1)?.map(|code| u8::from(code == 1)),
            status_events: events.unwrap_or_default(),
            markdown: cell.switch("markdown")?.unwrap_or(false),
            error: cell.object("error")?.map(|error| error.error()).transpose()?,
            state: cell.word("state", &STATES)?,
        })
    }

    fn output(&self) -> Result<Output, Misuse> {
        let text = || self.needed("text", Fields::text);
        Ok(match self.needed("type", Fields::text)?.as_str() {
            "stream" => Output::Stream {
                name: self.needed("name", |output, key| {
                    output.word(key, &[("stdout", "stdout"), ("stderr", "stderr")])
                })?,
                text: text()?,
            },
            "text" => Output::Text(text()?),
            "markdown" => Output::Markdown(text()?),
            "json" => Output::Json(self.value("value").cloned().unwrap_or_default()),
            "image" => Output::Image(self.image()?),
            "error" => Output::Error {
                name: self.needed("name", Fields::text)?,
                message: self.needed("message", Fields::text)?,
            },
            _ => {
                let kinds = "'stream', 'text', 'markdown', 'json', 'image' or 'error'";
                return Err(self.wrong("type", kinds));
            }
        })
    }

    fn image(&self) -> Result<Image, Misuse> {
        let (data, mime_type) =
            (self.needed("data", Fields::text)?, self.needed("mime_type", Fields::text)?);
        Ok(Image { data, mime_type })
    }

    fn error(&self) -> Result<CellError, Misuse> {
        Ok(CellError {
            name: self.needed("name", Fields::text)?,
            message: self.needed("message", Fields::text)?,
            stack: self.text("stack")?,
            filename: self.text("filename")?,
            line: self.position("line")?,
            column: self.position("column")?,
        })
    }

    /// The file that has all of a text that was cut, if there is one.
    fn artifact(&self) -> Result<Option<Artifact>, Misuse> {
        let Some(artifact) = self.object("artifact")? else { return Ok(None) };
        let text = |key: &str| artifact.needed(key, Fields::text);
        let count = |key: &str| artifact.needed(key, |fields, key| fields.count(key, MOST));
        Ok(Some(Artifact {
            uri: text("uri")?,
            path: text("path")?.into(),
            bytes: count("bytes")?,
            dropped_bytes: count("dropped_bytes")?,
        }))
    }

    fn truncation(&self) -> Result<Truncation, Misuse> {
        let count = |key: &str| self.needed(key, |cut, key| cut.count(key, MOST));
        let windows = [Window::Tail, Window::Head, Window::Ends];
        Ok(Truncation {
            window: self
                .word("window", &windows.map(|window| (window.as_str(), window)))?
                .unwrap_or_default(),
            total_bytes: count("total_bytes")?,
            total_lines: count("total_lines")?,
            shown_bytes: count("shown_bytes")?,
            shown_lines: count("shown_lines")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cell(more: &Json) -> Json {
        let mut cell = json!({ "language": "js", "code": "1", "status": "complete" });
        for (key, value) in more.as_object().into_iter().flatten() {
            cell[key] = value.clone();
        }
        json!({ "details": { "cells": [cell] } })
    }

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let given = cell(&json!({
            "title": "one", "name": "<cell 1>", "status": "error", "exitCode": 1, "durationMs": 1.5,
            "outputs": [
                { "type": "stream", "name": "stderr", "text": "a" },
                { "type": "text", "text": "b" },
                { "type": "markdown", "text": "c" },
                { "type": "json", "value": null },
                { "type": "image", "data": "AQID", "mimeType": "image/png" },
                { "type": "error", "name": "E", "message": "m" },
            ],
            "error": { "name": "E", "message": "m", "line": 2, "column": 3 },
            "statusEvents": [{ "op": "tool" }], "state": "kept",
        }));
        for spelling in [Spelling::Camel, Spelling::Snake] {
            let read = CallResult::from_json(&given, spelling).expect("a result");
            assert_eq!(read.cells[0].outputs.len(), 6);
            let written = read.to_json(spelling, false);
            let again = CallResult::from_json(&written, spelling).expect("a result");
            assert_eq!(again, read);
        }
    }

    #[test]
    fn misuse_has_the_path_of_the_first_place_that_is_no_result() {
        let table = [
            (json!("x"), "result must be an object, got 'x'"),
            (json!({}), "details is missing"),
            (json!({ "details": { "cells": {} } }), "details.cells must be a list, got an object"),
            (json!({ "details": { "cells": [1] } }), "details.cells[0] must be an object, got 1"),
            (
                cell(&json!({ "language": "rb" })),
                "details.cells[0].language must be 'py' or 'js', got 'rb'",
            ),
            (cell(&json!({ "code": null })), "details.cells[0].code is missing"),
            (
                cell(&json!({ "durationMs": "1" })),
                "details.cells[0].durationMs must be a number, got '1'",
            ),
            (
                cell(&json!({ "exitCode": 2 })),
                "details.cells[0].exitCode must be a whole number from 0 to 1, got 2",
            ),
            (
                cell(&json!({ "outputs": [{ "type": "html" }] })),
                "details.cells[0].outputs[0].type must be 'stream', 'text', 'markdown', 'json', 'image' or 'error', got 'html'",
            ),
            (
                cell(&json!({ "outputs": [{ "type": "image", "data": "AQID" }] })),
                "details.cells[0].outputs[0].mimeType is missing",
            ),
        ];
        for (given, message) in table {
            let misuse = CallResult::from_json(&given, Spelling::Camel).expect_err(message);
            assert_eq!(misuse.message(), message);
            assert!(message.starts_with(misuse.path()));
        }
        let update = json!({ "details": { "cells": [], "is_error": true } });
        assert!(CallResult::from_json(&update, Spelling::Snake).expect("an update").is_error);
    }
}
