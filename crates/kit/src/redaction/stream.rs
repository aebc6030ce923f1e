//! A stream of bytes in which values are replaced.
//!
//! In: chunks, which may cut a value anywhere. Out: the bytes in which no value can be found any more. The rest is held
//! back: as many bytes as the longest form of a value takes, and a run of base64 from its start.

use std::{fmt, sync::Arc};

use zeroize::Zeroizing;

use super::{Redactor, finder::Finder};

/// The input is read in parts of this size, so that the places of values take little room.
pub(super) const PART_BYTES: usize = 64 << 10;

/// A stream whose values are replaced.
pub struct Redaction {
    redactor: Arc<Redactor>,
    stream: Stream,
}

impl Redaction {
    /// A stream from its start.
    #[must_use]
    pub fn new(redactor: Arc<Redactor>) -> Self {
        let stream = Stream::new(&redactor);
        Self { redactor, stream }
    }

    /// Reads the next bytes, and appends to `out` those that are ready.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        for part in chunk.chunks(PART_BYTES) {
            self.stream.push(&self.redactor, part, out);
        }
    }

    /// Appends the rest to `out`: the stream is over.
    pub fn finish(self, out: &mut Vec<u8>) {
        self.stream.finish(&self.redactor, out);
    }

    /// The bytes that are held back.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.stream.held.capacity()
    }
}

/// The state of a stream, beside its redactor.
pub(super) struct Stream {
    finder: Finder,
    /// The input from `held_from` on.
    held: Zeroizing<Vec<u8>>,
    held_from: usize,
    /// The input before this place was given back.
    given: usize,
}

impl Stream {
    pub(super) fn new(redactor: &Redactor) -> Self {
        let finder = Finder::new(redactor, usize::MAX);
        Self { finder, held: Zeroizing::default(), held_from: 0, given: 0 }
    }

    pub(super) fn push(&mut self, redactor: &Redactor, part: &[u8], out: &mut Vec<u8>) {
        if redactor.automaton.is_none() {
            out.extend_from_slice(part);
            return;
        }
        self.held.extend_from_slice(part);
        self.finder.read(redactor, part);
        self.give(redactor, self.finder.earliest(), out);
        // Bytes move only when there are fewer of them than of those that are dropped.
        let done = self.given - self.held_from;
        if done > self.held.len() / 2 {
            self.held.drain(..done);
            self.held_from = self.given;
        }
    }

    pub(super) fn finish(mut self, redactor: &Redactor, out: &mut Vec<u8>) {
        self.finder.finish(redactor);
        let end = self.held_from + self.held.len();
        self.give(redactor, end, out);
    }

    /// Appends the input up to that place, but for a value that may not be over there.
    fn give(&mut self, redactor: &Redactor, until: usize, out: &mut Vec<u8>) {
        while let Some(found) = self.finder.found.first().filter(|found| found.end <= until) {
            self.copy(found.start, out);
            out.extend_from_slice(redactor.replacement(&found).as_bytes());
            self.given = found.end;
            self.finder.found.drop_first();
        }
        let until = self.finder.found.first().map_or(until, |found| found.start.min(until));
        self.copy(until, out);
    }

    fn copy(&mut self, until: usize, out: &mut Vec<u8>) {
        if until > self.given {
            let (from, until_held) = (self.given - self.held_from, until - self.held_from);
            out.extend_from_slice(&self.held[from..until_held]);
            self.given = until;
        }
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Redaction").field("given", &self.stream.given).finish_non_exhaustive()
    }
}
