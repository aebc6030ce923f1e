//! The values of a state in memory that were read last.
//!
//! In: keys with their JSON texts, as they are read, and keys that are written. Out: the text of a key, without SQLite. Only
//! a store in memory has such values, because no other connection writes to it. A change here goes through the store's
//! connection, so that no reader puts back what a writer has changed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use super::locked;

/// The most bytes of all keys and texts that are kept.
const MOST_BYTES: usize = 64 << 10;

/// The longest text that is kept, bytes.
const LONGEST_BYTES: usize = 1 << 10;

/// Bytes that an entry takes beside its key and its text.
const ENTRY_BYTES: usize = 64;

#[derive(Default)]
pub(super) struct ReadValues(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    texts: HashMap<Box<str>, Arc<str>>,
    bytes: usize,
}

impl ReadValues {
    pub(super) fn get(&self, key: &str) -> Option<Arc<str>> {
        locked(&self.0).texts.get(key).cloned()
    }

    /// Keeps a text that was read and is JSON.
    pub(super) fn keep(&self, key: &str, text: &str) {
        if key.len() + text.len() > LONGEST_BYTES {
            return;
        }
        let mut kept = locked(&self.0);
        if kept.texts.contains_key(key) {
            return;
        }
        if kept.bytes > MOST_BYTES {
            *kept = Kept::default();
        }
        kept.bytes += key.len() + text.len() + ENTRY_BYTES;
        kept.texts.insert(key.into(), text.into());
    }

    /// A key is about to be written.
    pub(super) fn forget(&self, key: &str) {
        let mut kept = locked(&self.0);
        if let Some(text) = kept.texts.remove(key) {
            kept.bytes -= key.len() + text.len() + ENTRY_BYTES;
        }
    }
}
