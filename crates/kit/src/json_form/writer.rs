//! A writer of text whose bytes are taken from a room.
//!
//! In: pieces of text. Out: the text. Its buffer grows only after the room has granted the growth.

use super::JsonFault;
use crate::room::Room;

/// The first size of the buffer.
const FIRST_BYTES: usize = 64;

pub(super) struct Writer<'r> {
    text: String,
    /// Where the open containers begin.
    starts: Vec<usize>,
    room: &'r mut dyn Room,
}

impl<'r> Writer<'r> {
    pub(super) fn new(room: &'r mut dyn Room) -> Self {
        Self { text: String::new(), starts: Vec::new(), room }
    }

    pub(super) fn length(&self) -> usize {
        self.text.len()
    }

    #[inline]
    pub(super) fn push(&mut self, text: &str) -> Result<(), JsonFault> {
        self.reserve(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Writes the beginning of a container.
    pub(super) fn open(&mut self, bracket: &str) -> Result<(), JsonFault> {
        self.starts.push(self.text.len());
        self.push(bracket)
    }

    /// Writes the end of the innermost container; returns where it begins.
    pub(super) fn close(&mut self, bracket: &str) -> Result<usize, JsonFault> {
        self.push(bracket)?;
        self.starts.pop().ok_or(JsonFault::Malformed)
    }

    /// Writes a part of the text again.
    pub(super) fn repeat(&mut self, start: usize, end: usize) -> Result<(), JsonFault> {
        self.reserve(end - start)?;
        self.text.extend_from_within(start..end);
        self.look()
    }

    /// Makes room for so many more bytes.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), JsonFault> {
        let room = self.text.capacity() - self.text.len();
        if bytes <= room {
            return Ok(());
        }
        let least = bytes - room;
        let ample = least.max(self.text.capacity()).max(FIRST_BYTES);
        for growth in [ample, least] {
            if self.room.take(growth) {
                let capacity = self.text.capacity() + growth;
                self.text.reserve_exact(capacity - self.text.len());
                return Ok(());
            }
        }
        Err(JsonFault::NoRoom)
    }

    /// Takes bytes for tables beside the text.
    pub(super) fn take_beside(&mut self, bytes: usize) -> Result<(), JsonFault> {
        if self.room.take(bytes) { Ok(()) } else { Err(JsonFault::NoRoom) }
    }

    /// Looks whether the work is still wanted.
    pub(super) fn look(&self) -> Result<(), JsonFault> {
        if self.room.is_wanted() { Ok(()) } else { Err(JsonFault::NoRoom) }
    }

    pub(super) fn finish(self) -> Result<String, JsonFault> {
        self.look()?;
        Ok(self.text)
    }
}
