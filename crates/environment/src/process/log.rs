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
    /// The last event that the database has, and whether the database has events that are here no more.
    saved: Saved,
}

/// How far the database is behind a log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Saved {
    /// The id of the last event that the database has.
    last_id: u64,
    /// The events of an earlier execution are there still.
    has_cleared: bool,
    /// Patches are there that became one here.
    has_replaced: bool,
}

/// The events that a database has not, and those that it must forget.
#[derive(Debug, Default)]
pub(crate) struct UnsavedEvents {
    /// All events up to that id are forgotten.
    pub(crate) cleared_to: Option<u64>,
    /// Patches before that id are forgotten.
    pub(crate) patches_from: Option<u64>,
    /// The id, the kind, and the text of a stream, a patch, a state's word or a record.
    pub(crate) events: Vec<(u64, EventKind, String)>,
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
        self.saved.has_replaced = true;
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
        self.saved = Saved { last_id: self.last_id, has_cleared: true, has_replaced: false };
    }

    /// The log of a process of an earlier service, whose events up to that id are in the database.
    pub(crate) fn resumed(last_id: u64) -> Self {
        let saved = Saved { last_id, ..Saved::default() };
        Self { last_id, seen: last_id, saved, ..Self::default() }
    }

    /// Takes the events that the database has not. An event that it has never changes again. [`unsave`](Self::unsave)
    /// takes that back.
    pub(crate) fn save(&mut self, stdout: &Stream, stderr: &Stream) -> (UnsavedEvents, Saved) {
        let before = self.saved;
        let is_patch = |entry: &&Entry| matches!(entry.content, Content::Output(_));
        let first_patch = self.entries.iter().find(is_patch).map(|entry| entry.id);
        let from = self.entries.partition_point(|entry| entry.id <= before.last_id);
        let events = self.entries.range(from..).map(|entry| {
            let (kind, text) = match &entry.content {
                Content::State(state) => (EventKind::State, state.as_str()),
                Content::Text { is_error, from, to } => {
                    let stream = if *is_error { stderr } else { stdout };
                    let kind = if *is_error { EventKind::Stderr } else { EventKind::Stdout };
                    (kind, stream.text().get(*from..*to).unwrap_or_default())
                }
                Content::Output(patch) => (EventKind::Output, &**patch),
                Content::Exit(record) => (EventKind::Exit, &**record),
            };
            (entry.id, kind, text.to_owned())
        });
        let unsaved = UnsavedEvents {
            events: events.collect(),
            cleared_to: before.has_cleared.then_some(before.last_id),
            patches_from: first_patch.filter(|_| before.has_replaced),
        };
        self.saved = Saved { last_id: self.last_id, ..Saved::default() };
        self.seen = self.last_id;
        (unsaved, before)
    }

    /// The database did not take the events after that mark.
    pub(crate) fn unsave(&mut self, before: Saved) {
        if self.saved.has_cleared {
            return;
        }
        self.saved =
            Saved { has_replaced: before.has_replaced || self.saved.has_replaced, ..before };
    }

    /// Whether the database has all events.
    pub(crate) fn is_saved(&self) -> bool {
        let Saved { last_id, has_cleared, has_replaced } = self.saved;
        last_id == self.last_id && !has_cleared && !has_replaced
    }

    /// The bytes of all events that are here.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
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
