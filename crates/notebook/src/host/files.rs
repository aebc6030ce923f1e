//! `read`, `write`, `append`, `tree`, `diff` and `output`: files and artifacts for cells.
//!
//! In: the arguments of a cell. Out: what the file system gives, or an error for the cell, and the fields of a status event.
//! The work is done on a thread that may block.

use std::sync::Arc;

use isolane::{
    ErrorKind, HostError, Spelling, Value,
    value::{Event, Reader, ViewKind, Writer},
};
use serde_json::{Map, Value as Json, json};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::{desk::Functions, seen::Seen, value};
use crate::{
    Misuse,
    artifacts::Artifacts,
    files::{Files, Lines},
    given::{Group, MOST, spelled},
    text::words,
};

/// The names of the helpers.
const HELPERS: [&str; 6] = ["read", "write", "append", "tree", "diff", "output"];

/// The deepest tree.
const MOST_DEPTH: u64 = 100;

/// The most artifacts of one `output`.
const MOST_ARTIFACTS: usize = 64;

/// Whether the helper of that name is one of these.
pub(super) fn has(helper: &str) -> bool {
    HELPERS.contains(&helper)
}

/// The request of a cell.
pub(super) enum Request {
    Read { path: String, lines: Lines, bytes: bool },
    Write { path: String, data: Vec<u8>, appends: bool },
    Tree { path: String, max_depth: u64, hidden: bool },
    Diff { paths: [String; 2] },
    Output { ids: Vec<String>, lines: Lines },
}

/// An answer, and the counts of its status event.
pub(super) type Done = Result<(Value, Map<String, Json>), HostError>;

/// A request with what it needs.
pub(super) enum Work {
    Files(Arc<Files>, Request),
    Artifacts(Arc<Artifacts>, Request),
}

impl Work {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// For the cell: this notebook does not have the helper, or the arguments are wrong.
    pub(super) fn new(
        helper: &str,
        args: &Value,
        spelling: Spelling,
        functions: &Functions,
    ) -> Result<Self, HostError> {
        let not_given = || HostError::new("Error", words::not_given(helper));
        let work = if helper == "output" {
            let artifacts = functions.artifacts.clone().ok_or_else(not_given)?;
            Self::Artifacts(artifacts, Request::read(helper, args, spelling)?)
        } else {
            let files = functions.files.clone().ok_or_else(not_given)?;
            if matches!(helper, "write" | "append") && !files.is_writable() {
                return Err(HostError::new("Error", words::read_only(helper)));
            }
            Self::Files(files, Request::read(helper, args, spelling)?)
        };
        Ok(work)
    }

    /// The status event: the helper and its paths.
    pub(super) fn event(&self) -> Json {
        let (Self::Files(_, request) | Self::Artifacts(_, request)) = self;
        match request {
            Request::Read { path, .. } => json!({ "op": "read", "path": shortened(path) }),
            Request::Write { path, appends, .. } => {
                json!({ "op": if *appends { "append" } else { "write" }, "path": shortened(path) })
            }
            Request::Tree { path, .. } => json!({ "op": "tree", "path": shortened(path) }),
            Request::Diff { paths } => {
                json!({ "op": "diff", "paths": paths.each_ref().map(|path| shortened(path)) })
            }
            Request::Output { ids, .. } => {
                let ids: Vec<&str> = ids.iter().map(|id| shortened(id)).collect();
                json!({ "op": "output", "ids": ids })
            }
        }
    }

    /// Does it, on a thread that may block, until the signal is cancelled.
    pub(super) async fn done(self, helper: &str, stop: CancellationToken) -> Done {
        let done = spawn_blocking(move || match self {
            Self::Files(files, request) => request.of_files(&files, &stop),
            Self::Artifacts(artifacts, request) => request.of_artifacts(&artifacts, &stop),
        });
        let done = done.await.unwrap_or_else(|_| Err(HostError::new("Error", "it failed")));
        done.map_err(|error| {
            HostError::new(error.name.clone(), format!("{helper}: {}", error.message))
        })
    }
}

impl Request {
    fn read(helper: &str, args: &Value, spelling: Spelling) -> Result<Self, HostError> {
        if let "write" | "append" = helper {
            let appends = helper == "append";
            let (path, data) = path_and_data(args)
                .map_err(|text| HostError::new("TypeError", format!("{helper}: {text}")))?;
            return Ok(Self::Write { path, data, appends });
        }
        let refused = |text: &str| HostError::new("TypeError", format!("{helper}: {text}"));
        let seen = Seen::new(args).ok_or_else(|| refused("the arguments are too large"))?;
        let keys: &[&str] = match helper {
            "read" => &["path", "offset", "limit", "bytes"],
            "tree" => &["path", "max_depth", "hidden"],
            "diff" => &["a", "b"],
            _ => &["ids", "offset", "limit"],
        };
        let read = || -> Result<Self, Misuse> {
            let group = Group::new("", &seen.json, keys, spelling)?;
            let path = |key: &str| {
                let path = group.text(key)?;
                path.ok_or_else(|| Misuse::new(key, " is missing"))
            };
            let lines = || -> Result<Lines, Misuse> {
                let offset = group.count("offset", 1, MOST)?.unwrap_or(1);
                Ok(Lines { offset, limit: group.count("limit", 0, MOST)? })
            };
            Ok(match helper {
                "read" => Self::Read {
                    path: path("path")?,
                    lines: lines()?,
                    bytes: group.flag("bytes")?.unwrap_or_default(),
                },
                "tree" => Self::Tree {
                    path: group.text("path")?.unwrap_or_else(|| ".".to_owned()),
                    max_depth: group.count("max_depth", 1, MOST_DEPTH)?.unwrap_or(3),
                    hidden: group.flag("hidden")?.unwrap_or_default(),
                },
                "diff" => Self::Diff { paths: [path("a")?, path("b")?] },
                _ => {
                    let ids = group.texts("ids")?.unwrap_or_default();
                    if ids.is_empty() || ids.len() > MOST_ARTIFACTS {
                        let rest =
                            format!(" must be from 1 to {MOST_ARTIFACTS}, got {}", ids.len());
                        return Err(Misuse::range(spelled("ids", spelling), &rest));
                    }
                    Self::Output { ids, lines: lines()? }
                }
            })
        };
        read().map_err(|misuse| {
            let name = if misuse.kind() == ErrorKind::Range { "RangeError" } else { "TypeError" };
            HostError::new(name, format!("{helper}: {misuse}"))
        })
    }

    fn of_files(self, files: &Files, stop: &CancellationToken) -> Done {
        let mut counts = Map::new();
        let value = match self {
            Self::Read { path, lines, bytes } => {
                let read = files.read(&path, lines, stop)?;
                counts.insert("bytes".to_owned(), read.len().into());
                content(read, !bytes)
            }
            Self::Write { path, data, appends } => {
                let path = files.write(&path, &data, appends, stop)?;
                counts.insert("path".to_owned(), shortened(&path).into());
                counts.insert("bytes".to_owned(), data.len().into());
                value::text(&path)
            }
            Self::Tree { path, max_depth, hidden } => {
                let (text, entries) = files.tree(&path, max_depth, hidden, stop)?;
                counts.insert("entries".to_owned(), entries.into());
                value::text(&text)
            }
            Self::Diff { paths: [first, second] } => {
                let text = files.diff(&first, &second, stop)?;
                counts.insert("bytes".to_owned(), text.len().into());
                value::text(&text)
            }
            Self::Output { .. } => Value::undefined(),
        };
        Ok((value, counts))
    }

    fn of_artifacts(self, artifacts: &Artifacts, stop: &CancellationToken) -> Done {
        let Self::Output { ids, lines } = self else { return Ok((Value::undefined(), Map::new())) };
        let (mut bytes, mut parts) = (0, Vec::new());
        for id in &ids {
            let (read, is_text) = artifacts.read(id, lines, stop)?;
            bytes += read.len();
            if bytes > MOST_OUTPUT_BYTES {
                let mib = MOST_OUTPUT_BYTES >> 20;
                let message = format!("the artifacts have more than {mib} MiB together");
                return Err(HostError::new("RangeError", message));
            }
            parts.push((read, is_text));
        }
        let counts = Map::from_iter([("bytes".to_owned(), bytes.into())]);
        let mut writer = Writer::new();
        let is_list = parts.len() > 1;
        if is_list {
            writer.array(u32::try_from(parts.len()).unwrap_or_default());
        }
        for (read, is_text) in parts {
            write_content(&mut writer, read, is_text);
        }
        Ok((writer.finish(), counts))
    }
}

/// The bytes that one `output` gives.
const MOST_OUTPUT_BYTES: usize = 64 << 20;

/// Text, or bytes, as a value.
fn content(bytes: Vec<u8>, is_text: bool) -> Value {
    let mut writer = Writer::new();
    write_content(&mut writer, bytes, is_text);
    writer.finish()
}

fn write_content(writer: &mut Writer, bytes: Vec<u8>, is_text: bool) {
    if is_text {
        writer.string(&String::from_utf8_lossy(&bytes));
        return;
    }
    let length = bytes.len() as u64;
    let blob = writer.blob(bytes);
    writer.view(ViewKind::Uint8Array, blob, 0, length);
}

/// Reads `{ path, data }`, of which `data` is text or bytes, without a copy of the value.
fn path_and_data(args: &Value) -> Result<(String, Vec<u8>), String> {
    let mut reader = args.reader();
    let unreadable = |_| "the arguments cannot be read".to_owned();
    if !matches!(reader.event(), Ok(Event::Object)) {
        return Err("args must be an object".to_owned());
    }
    let (mut path, mut data) = (None, None);
    while let Some(key) = reader.key().map_err(unreadable)? {
        match &*key.text.to_string_lossy() {
            "path" => match reader.event().map_err(unreadable)? {
                Event::String(text) => path = Some(text.to_string_lossy()),
                _ => return Err("path must be a string".to_owned()),
            },
            "data" => {
                let found = data_of(args, &mut reader);
                data = Some(found.ok_or("data must be a string or bytes")?);
            }
            other => {
                let other: String = other.chars().take(100).collect();
                return Err(format!("unknown option '{other}'"));
            }
        }
    }
    Ok((path.ok_or("path is missing")?, data.ok_or("data must be a string or bytes")?))
}

fn data_of(args: &Value, reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    match reader.event().ok()? {
        Event::String(text) => Some(text.to_string_lossy().into_bytes()),
        Event::Buffer(blob) => Some(args.blobs().get(blob as usize)?.clone()),
        Event::View { kind, blob, byte_offset, length } => {
            let start = usize::try_from(byte_offset).ok()?;
            let bytes = usize::try_from(length).ok()?.checked_mul(kind.element_bytes())?;
            let blob = args.blobs().get(blob as usize)?;
            Some(blob.get(start..start.checked_add(bytes)?)?.to_vec())
        }
        _ => None,
    }
}

/// A path as a status event has it.
fn shortened(path: &str) -> &str {
    const MOST_BYTES: usize = 1000;
    path.get(..path.floor_char_boundary(MOST_BYTES)).unwrap_or_default()
}
