//! The result of a call: its text and images for the model, and its details for the host.
//!
//! In: what cells did. Out: [`CallResult`], and the same as JSON with the keys of a language.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use isolane::Spelling;
use serde_json::{Map, Value as Json, json};

use crate::{Artifact, CellInput, Language, Window, given::spelled};

/// The status of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CellStatus {
    /// It has not begun, or never did.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// It ended well.
    Complete,
    /// It failed, or was ended from outside.
    Error,
}

impl CellStatus {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Error => "error",
        }
    }
}

/// The bytes of a media type behind `image/`.
const MOST_TYPE_BYTES: usize = 64;

/// An image: Base64, and its media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The bytes in Base64.
    pub data: String,
    /// `image/png`.
    pub mime_type: String,
}

impl Image {
    /// # Errors
    /// The reason why it is no image that a model could be sent.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b".+-".contains(&byte);
        let kind = self.mime_type.strip_prefix("image/").unwrap_or_default();
        if kind.is_empty() || kind.len() > MOST_TYPE_BYTES || !kind.bytes().all(is_letter) {
            let shown: String = self.mime_type.chars().take(100).collect();
            return Err(format!("'{shown}' is no type of image"));
        }
        let bytes = STANDARD.decode(&self.data).unwrap_or_default();
        if bytes.is_empty() {
            return Err("its data is no Base64".to_owned());
        }
        if self.begins_as_said(&bytes) == Some(false) {
            return Err(format!("its data is no {}", self.mime_type));
        }
        Ok(())
    }

    /// Whether its bytes begin as those of its type do; `None` for a type that models and browsers do not take alike.
    pub(crate) fn begins_as_said(&self, bytes: &[u8]) -> Option<bool> {
        Some(match self.mime_type.as_str() {
            "image/png" => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
            "image/jpeg" => bytes.starts_with(b"\xff\xd8\xff"),
            "image/gif" => bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a"),
            "image/webp" => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
            _ => return None,
        })
    }

    /// Whether a model takes images of its type: drawings and old types are for people.
    pub(crate) fn is_for_models(&self) -> bool {
        self.begins_as_said(&[]).is_some()
    }

    /// The extension of a file with it; `None` if it is of no type of image.
    pub(crate) fn extension(&self) -> Option<&'static str> {
        Some(match self.mime_type.strip_prefix("image/")? {
            "png" => "png",
            "jpeg" => "jpg",
            "gif" => "gif",
            "webp" => "webp",
            "svg+xml" => "svg",
            _ => "bin",
        })
    }
}

/// A part of a cell's output.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Text of a stream.
    Stream {
        /// `stdout` or `stderr`.
        name: &'static str,
        /// The text, without escape sequences and control characters.
        text: String,
    },
    /// A displayed text.
    Text(String),
    /// A displayed text in markdown.
    Markdown(String),
    /// A displayed value.
    Json(Json),
    /// A displayed image.
    Image(Image),
    /// The error that ended the cell.
    Error {
        /// Its name.
        name: String,
        /// Its message.
        message: String,
    },
}

/// The error of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellError {
    /// The error's name.
    pub name: String,
    /// Its message.
    pub message: String,
    /// `Name: message` and the frames, or Python's traceback.
    pub stack: Option<String>,
    /// The file of the position.
    pub filename: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
}

/// A cell of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CellResult {
    /// Its place, from 0.
    pub index: usize,
    /// Its label.
    pub title: Option<String>,
    /// Its language.
    pub language: Language,
    /// Its source.
    pub code: String,
    /// Its name in stacks, `<cell 7>`: the count of its kernel. Absent while it is pending.
    pub name: Option<String>,
    /// Its status.
    pub status: CellStatus,
    /// The shown text of its streams, displays and value.
    pub output: String,
    /// The parts of its output, in order.
    pub outputs: Vec<Output>,
    /// Wall time, in milliseconds.
    pub duration_ms: f64,
    /// Time on its clock, in milliseconds.
    pub work_ms: f64,
    /// 0 or 1; absent if it was ended from outside, and while it has not ended.
    pub exit_code: Option<u8>,
    /// The effects of its calls of host functions: `{ op: 'tool', name, ok, ms }`.
    pub status_events: Vec<Json>,
    /// Whether a part of its output is markdown.
    pub markdown: bool,
    /// Why it failed.
    pub error: Option<CellError>,
    /// Its effect on the state: `kept`, `rolledBack`, `reset`. Absent while it has not ended.
    pub state: Option<&'static str>,
}

impl CellResult {
    /// A cell that has not run.
    #[must_use]
    pub fn pending(index: usize, cell: CellInput) -> Self {
        Self {
            index,
            title: cell.title,
            language: cell.language,
            code: cell.code,
            name: None,
            status: CellStatus::Pending,
            output: String::new(),
            outputs: Vec::new(),
            duration_ms: 0.0,
            work_ms: 0.0,
            exit_code: None,
            status_events: Vec::new(),
            markdown: false,
            error: None,
            state: None,
        }
    }
}

/// A text that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// The shown part.
    pub window: Window,
    /// The bytes of all output.
    pub total_bytes: u64,
    /// Its lines.
    pub total_lines: u64,
    /// The bytes that are shown.
    pub shown_bytes: u64,
    /// The lines that are shown.
    pub shown_lines: u64,
}

/// The result of a call, or an update of one that runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallResult {
    /// The text block.
    pub text: String,
    /// The images, which follow the text.
    pub images: Vec<Image>,
    /// The cells, in order.
    pub cells: Vec<CellResult>,
    /// About kernels that were restarted, and an `on_update` that threw.
    pub notice: Option<String>,
    /// About a text that was cut.
    pub truncation: Option<Truncation>,
    /// The file with the whole of a text that was cut.
    pub artifact: Option<Artifact>,
    /// Whether a cell failed or was ended from outside.
    pub is_error: bool,
}

impl CallResult {
    /// `{ content, details, isError }`, with the keys of a language. An update has no `isError` of its own, but in its
    /// details, with its images.
    #[must_use]
    pub fn to_json(&self, spelling: Spelling, is_update: bool) -> Json {
        let keys = Keys(spelling);
        let mut content = vec![json!({ "type": "text", "text": self.text })];
        content.extend(self.images.iter().map(|image| keys.image(image)));
        let mut languages: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !languages.contains(&cell.language.as_str()) {
                languages.push(cell.language.as_str());
            }
        }
        let values = self.cells.iter().flat_map(|cell| &cell.outputs);
        let json_outputs: Vec<&Json> = values
            .filter_map(|output| if let Output::Json(value) = output { Some(value) } else { None })
            .collect();
        let mut details = Map::new();
        let cells: Vec<Json> = self.cells.iter().map(|cell| keys.cell(cell)).collect();
        keys.put(&mut details, "cells", Some(cells));
        keys.put(&mut details, "language", languages.first().copied());
        keys.put(&mut details, "languages", Some(languages));
        keys.put(&mut details, "json_outputs", Some(json!(json_outputs)));
        let events = self.cells.iter().flat_map(|cell| &cell.status_events);
        keys.put(&mut details, "status_events", Some(events.cloned().collect::<Vec<_>>()));
        keys.put(&mut details, "notice", self.notice.clone());
        let mut meta = Map::new();
        keys.put(
            &mut meta,
            "truncation",
            self.truncation.map(|cut| keys.truncation(cut, self.artifact.as_ref())),
        );
        keys.put(&mut details, "meta", Some(meta));
        if is_update {
            keys.put(&mut details, "is_error", Some(self.is_error));
            let images: Vec<Json> = self.images.iter().map(|image| keys.image(image)).collect();
            keys.put(&mut details, "images", Some(images));
        }
        let mut result = Map::new();
        keys.put(&mut result, "content", Some(content));
        keys.put(&mut result, "details", Some(details));
        if !is_update {
            keys.put(&mut result, "is_error", Some(self.is_error));
        }
        Json::Object(result)
    }
}

/// Writes keys as a language spells them.
struct Keys(Spelling);

impl Keys {
    /// Puts a value that is there.
    fn put(&self, into: &mut Map<String, Json>, key: &str, value: Option<impl Into<Json>>) {
        if let Some(value) = value {
            into.insert(spelled(key, self.0), value.into());
        }
    }

    fn image(&self, image: &Image) -> Json {
        let mut fields = Map::new();
        self.put(&mut fields, "type", Some("image"));
        self.put(&mut fields, "data", Some(image.data.as_str()));
        self.put(&mut fields, "mime_type", Some(image.mime_type.as_str()));
        Json::Object(fields)
    }

    fn truncation(&self, cut: Truncation, artifact: Option<&Artifact>) -> Json {
        let mut fields = Map::new();
        self.put(&mut fields, "window", Some(cut.window.as_str()));
        self.put(&mut fields, "total_bytes", Some(cut.total_bytes));
        self.put(&mut fields, "total_lines", Some(cut.total_lines));
        self.put(&mut fields, "shown_bytes", Some(cut.shown_bytes));
        self.put(&mut fields, "shown_lines", Some(cut.shown_lines));
        self.put(&mut fields, "artifact", artifact.map(|artifact| self.artifact(artifact)));
        Json::Object(fields)
    }

    fn artifact(&self, artifact: &Artifact) -> Json {
        let mut fields = Map::new();
        self.put(&mut fields, "uri", Some(artifact.uri.as_str()));
        self.put(&mut fields, "path", Some(artifact.path.to_string_lossy().into_owned()));
        self.put(&mut fields, "bytes", Some(artifact.bytes));
        self.put(&mut fields, "dropped_bytes", Some(artifact.dropped_bytes));
        Json::Object(fields)
    }

    fn output(&self, output: &Output) -> Json {
        match output {
            Output::Stream { name, text } => {
                json!({ "type": "stream", "name": name, "text": text })
            }
            Output::Text(text) => json!({ "type": "text", "text": text }),
            Output::Markdown(text) => json!({ "type": "markdown", "text": text }),
            Output::Json(value) => json!({ "type": "json", "value": value }),
            Output::Image(image) => self.image(image),
            Output::Error { name, message } => {
                json!({ "type": "error", "name": name, "message": message })
            }
        }
    }

    fn error(&self, error: &CellError) -> Json {
        let mut fields = Map::new();
        self.put(&mut fields, "name", Some(error.name.as_str()));
        self.put(&mut fields, "message", Some(error.message.as_str()));
        self.put(&mut fields, "stack", error.stack.as_deref());
        self.put(&mut fields, "filename", error.filename.as_deref());
        self.put(&mut fields, "line", error.line);
        self.put(&mut fields, "column", error.column);
        Json::Object(fields)
    }

    fn cell(&self, cell: &CellResult) -> Json {
        let mut fields = Map::new();
        let outputs: Vec<Json> = cell.outputs.iter().map(|output| self.output(output)).collect();
        self.put(&mut fields, "index", Some(cell.index));
        self.put(&mut fields, "title", cell.title.as_deref());
        self.put(&mut fields, "language", Some(cell.language.as_str()));
        self.put(&mut fields, "code", Some(cell.code.as_str()));
        self.put(&mut fields, "name", cell.name.as_deref());
        self.put(&mut fields, "status", Some(cell.status.as_str()));
        self.put(&mut fields, "output", Some(cell.output.as_str()));
        self.put(&mut fields, "outputs", Some(outputs));
        self.put(&mut fields, "duration_ms", Some(cell.duration_ms));
        self.put(&mut fields, "work_ms", Some(cell.work_ms));
        self.put(&mut fields, "exit_code", cell.exit_code);
        self.put(&mut fields, "status_events", Some(cell.status_events.clone()));
        self.put(&mut fields, "markdown", Some(cell.markdown));
        self.put(&mut fields, "error", cell.error.as_ref().map(|error| self.error(error)));
        self.put(&mut fields, "state", cell.state);
        Json::Object(fields)
    }
}
