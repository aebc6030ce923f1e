//! The stored events of a process.
//!
//! In: what happens to it. Out: events with ids, in order. Text is not stored again: an event has its place in a stream.
//! Writes that no reader has seen yet become one event, so that many small ones cost no more than a few large ones.

use std::{collections::VecDeque, sync::Arc};

use serde_json::{Map, Value, json};

use super::stream::Stream;
use crate::{EventKind, ProcessEvent, ProcessState};

/// Writes become one event up to that size.
const MOST_EVENT_BYTES: usize = 64 << 10;

/// Bytes that an event counts beyond its text.
const EVENT_BYTES: usize = 64;

/// A stored event.
#[derive(Debug)]
struct Entry {
    id: u64,
    content: Content,
    /// The bytes of all events up to this one since the process began.
    end: u64,
    /// Its own bytes.
    bytes: u64,
}

#[derive(Debug)]
enum Content {
    State(ProcessState),
    /// A part of the standard output or the standard error.
    Text {
        is_error: bool,
        from: usize,
        to: usize,
    },
    /// JSON.
    Output(Arc<str>),
    Exit(Arc<str>),
}

/// The events of one process.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    entries: VecDeque<Entry>,
    last_id: u64,
    /// The bytes of all events since the process began.
    total: u64,
    /// The latest id that a reader has seen.
    seen: u64,
    /// The bytes of the patches that are stored.
    patch_bytes: usize,
}

impl EventLog {
    pub(crate) fn state(&mut self, state: ProcessState) {
        self.push(Content::State(state), 0);
    }

    /// Text was added to a stream, up to its end.
    pub(crate) fn text(&mut self, is_error: bool, stream: &Stream, added: usize) {
        let to = stream.text().len();
        let seen = self.seen;
        if let Some(last) = self.entries.back_mut()
            && let Content::Text { is_error: is_last_error, from, to: last_to } = &mut last.content
            && *is_last_error == is_error
            && last.id > seen
            && to - *from <= MOST_EVENT_BYTES
        {
            *last_to = to;
            last.bytes += added as u64;
            last.end += added as u64;
            self.total += added as u64;
            return;
        }
        self.push(Content::Text { is_error, from: to - added, to }, added);
    }

    /// Fields were merged into the output, which is `merged` now.
    pub(crate) fn output(&mut self, patch: String, merged: &Map<String, Value>, most_bytes: usize) {
        let bytes = patch.len();
        self.patch_bytes += bytes + EVENT_BYTES;
        self.push(Content::Output(patch.into()), bytes);
        if self.patch_bytes > 2 * most_bytes.max(1 << 20) {
            self.replace_patches(merged);
        }
    }

    /// Replaces all patches by one, the output as it is.
    fn replace_patches(&mut self, merged: &Map<String, Value>) {
        let last = self.last_id;
        self.entries
            .retain(|entry| entry.id == last || !matches!(entry.content, Content::Output(_)));
        if let Some(entry) = self.entries.back_mut() {
            let text = json_text(merged);
            self.patch_bytes = text.len() + EVENT_BYTES;
            entry.content = Content::Output(text.into());
        }
    }

    /// The execution has ended.
    pub(crate) fn exit(&mut self, record: String) {
        let bytes = record.len();
        self.push(Content::Exit(record.into()), bytes);
    }

    fn push(&mut self, content: Content, bytes: usize) {
        let bytes = (bytes + EVENT_BYTES) as u64;
        self.last_id += 1;
        self.total += bytes;
        self.entries.push_back(Entry { id: self.last_id, content, end: self.total, bytes });
    }

    /// Forgets all events of an execution; the ids go on.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.patch_bytes = 0;
    }

    pub(crate) fn last_id(&self) -> u64 {
        self.last_id
    }

    /// The bytes of all events since the process began.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The bytes of all events but the last one.
    pub(crate) fn total_before_last(&self) -> u64 {
        self.total - self.entries.back().map_or(0, |entry| entry.bytes)
    }

    /// The first event after that id, and the bytes of all events up to it.
    pub(crate) fn after(
        &mut self,
        id: u64,
        stdout: &Stream,
        stderr: &Stream,
    ) -> Option<(ProcessEvent, u64)> {
        let at = self.entries.partition_point(|entry| entry.id <= id);
        let entry = self.entries.get(at)?;
        let (kind, data) = match &entry.content {
            Content::State(state) => {
                (EventKind::State, json!({ "state": state }).to_string().into())
            }
            Content::Text { is_error, from, to } => {
                let stream = if *is_error { stderr } else { stdout };
                let text = stream.text().get(*from..*to).unwrap_or_default();
                let kind = if *is_error { EventKind::Stderr } else { EventKind::Stdout };
                (kind, json!({ "text": text }).to_string().into())
            }
            Content::Output(patch) => (EventKind::Output, Arc::clone(patch)),
            Content::Exit(record) => (EventKind::Exit, Arc::clone(record)),
        };
        self.seen = self.seen.max(entry.id);
        Some((ProcessEvent { id: entry.id, kind, data }, entry.end))
    }
}

/// Fields as JSON. Texts and numbers have a JSON form always.
pub(crate) fn json_text(fields: &Map<String, Value>) -> String {
    serde_json::to_string(fields).unwrap_or_else(|_| "{}".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_that_nobody_has_seen_are_one_event() {
        let (mut log, mut out, err) = (EventLog::default(), Stream::default(), Stream::default());
        for (text, ids) in [("a", 1), ("b", 2), ("cd", 2)] {
            let added = out.push(text.as_bytes(), 1000).len();
            log.text(false, &out, added);
            // A reader sees the first event, and no other.
            assert!(log.after(0, &out, &err).is_some());
            assert_eq!(log.last_id(), ids);
        }
        let (event, _) = log.after(1, &out, &err).expect("the second event");
        assert_eq!((event.id, &*event.data), (2, r#"{"text":"bcd"}"#));
        assert!(log.after(2, &out, &err).is_none());
    }

    #[test]
    fn patches_of_a_bounded_size_are_stored() {
        let (mut log, none) = (EventLog::default(), Stream::default());
        let mut merged = Map::new();
        merged.insert("a".to_owned(), json!(1));
        log.state(ProcessState::Running);
        for _ in 0..100_000 {
            log.output(r#"{"a":1}"#.to_owned(), &merged, 0);
        }
        assert!(log.entries.len() < 40_000, "{}", log.entries.len());
        let (event, _) = log.after(1, &none, &none).expect("a patch");
        assert_eq!(&*event.data, r#"{"a":1}"#);
        assert_eq!(log.last_id(), 100_001);
    }
}
