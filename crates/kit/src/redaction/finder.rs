//! A search for values in an input that may come in chunks.
//!
//! In: chunks. Out: the places of the values so far, and the place before which none can be found any more.
//!
//! Most inputs have few escapes. So the finder reads the input as it is, and opens a channel for a kind of escapes where
//! it meets one. The channel is closed when it has read no escape for as long as a pattern is: from there on it reads
//! the same.

use std::collections::VecDeque;

use aho_corasick::{
    Anchored,
    automaton::{Automaton, StateID},
};

use super::{
    Redactor,
    channel::{Channel, Reading},
    decoder::Escapes,
    prefilter::HEAD_BYTES,
};

/// A value that was found, from one place of the input to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) value: usize,
    pub(super) value_bytes: usize,
}

/// The values that were found, in their order. Those that overlap are one.
#[derive(Debug, Default)]
pub(super) struct Places(VecDeque<Found>);

impl Places {
    /// Adds a value, which ends behind all others or where they end.
    pub(super) fn add(&mut self, mut found: Found) {
        while let Some(last) = self.0.back().filter(|last| last.end > found.start) {
            found.start = found.start.min(last.start);
            found.end = found.end.max(last.end);
            if last.value_bytes > found.value_bytes {
                (found.value, found.value_bytes) = (last.value, last.value_bytes);
            }
            self.0.pop_back();
        }
        self.0.push_back(found);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first value.
    pub(super) fn first(&self) -> Option<Found> {
        self.0.front().copied()
    }

    /// Removes the first value.
    pub(super) fn drop_first(&mut self) {
        self.0.pop_front();
    }
}

/// The state of a search.
#[derive(Debug)]
pub(super) struct Finder {
    /// The input as it is.
    raw: Reading,
    /// The bytes of the longest pattern that the input has room for.
    window: usize,
    /// The channels that are open.
    channels: Vec<Channel>,
    /// The bytes that were read.
    pub(super) position: usize,
    pub(super) found: Places,
}

impl Finder {
    /// A search in an input of at most so many bytes.
    pub(super) fn new(redactor: &Redactor, most_bytes: usize) -> Self {
        let start = |automaton: &_| Automaton::start_state(automaton, Anchored::No).ok();
        let state = redactor.automaton.as_ref().and_then(start).unwrap_or(StateID::ZERO);
        Self {
            raw: Reading::new(state),
            window: redactor.longest.min(most_bytes),
            channels: Vec::new(),
            position: 0,
            found: Places::default(),
        }
    }

    /// Reads the next bytes.
    pub(super) fn read(&mut self, redactor: &Redactor, bytes: &[u8]) {
        let Some(automaton) = &redactor.automaton else {
            self.position += bytes.len();
            return;
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.channels.is_empty() {
                let escape = first_escape(rest, redactor.has_spaces).unwrap_or(rest.len());
                let (plain, after) = rest.split_at(escape);
                self.read_plain(redactor, automaton, plain);
                rest = after;
            }
            let [byte, after @ ..] = rest else { return };
            rest = after;
            self.open_channels(redactor, *byte);
            self.read_raw(redactor, automaton, *byte);
            for channel in &mut self.channels {
                channel.read(redactor, automaton, *byte, self.position, &mut self.found);
            }
            self.channels.retain(|channel| !channel.is_idle());
        }
    }

    /// Reads bytes none of which begins an escape, while no channel is open. The automaton passes over those in which no
    /// value begins.
    fn read_plain(&mut self, redactor: &Redactor, automaton: &impl Automaton, plain: &[u8]) {
        let reach = redactor.longest;
        let start = Automaton::start_state(automaton, Anchored::No).ok();
        let (Some(prefilter), Some(start)) = (&redactor.prefilter, start) else {
            return self.read_all(redactor, automaton, plain);
        };
        // A value may have begun before.
        let (mut at, mut until) = (0, reach.min(plain.len()));
        loop {
            self.read_all(redactor, automaton, &plain[at..until]);
            at = until;
            while at < plain.len() && self.raw.is_in_found_run() {
                self.read_raw(redactor, automaton, plain[at]);
                at += 1;
            }
            if plain.len() - at <= reach {
                return self.read_all(redactor, automaton, &plain[at..]);
            }
            // One that began so far back would be over.
            let found = prefilter.find(plain, at.saturating_sub(reach - 1));
            let next = found.unwrap_or(plain.len().saturating_sub(HEAD_BYTES - 1)).max(at);
            self.raw.skip(start, &plain[at..next], self.position);
            self.position += next - at;
            at = next;
            until = if found.is_some() { plain.len().min(next + reach) } else { plain.len() };
        }
    }

    fn read_all(&mut self, redactor: &Redactor, automaton: &impl Automaton, bytes: &[u8]) {
        for byte in bytes {
            self.read_raw(redactor, automaton, *byte);
        }
    }

    /// The input is over.
    pub(super) fn finish(&mut self, redactor: &Redactor) {
        let Some(automaton) = &redactor.automaton else { return };
        for channel in &mut self.channels {
            channel.finish(redactor, automaton, self.position, &mut self.found);
        }
    }

    /// No value that is not found yet begins before this place.
    pub(super) fn earliest(&self) -> usize {
        let raw = self.position.saturating_sub(self.window).min(self.raw.run_start());
        self.channels.iter().map(Channel::earliest).fold(raw, usize::min)
    }

    #[inline]
    fn read_raw(&mut self, redactor: &Redactor, automaton: &impl Automaton, byte: u8) {
        let start = self.position;
        self.position += 1;
        let end = self.position;
        let start_of = |count| end.saturating_sub(count);
        self.raw.read(redactor, automaton, byte, (start, end), start_of, &mut self.found);
    }

    fn open_channels(&mut self, redactor: &Redactor, byte: u8) {
        for escapes in [Escapes::Percent, Escapes::Form, Escapes::Json] {
            let is_open = self.channels.iter().any(|channel| channel.escapes() == escapes);
            let is_needed = escapes != Escapes::Form || redactor.has_spaces;
            if !is_open && is_needed && escapes.may_begin(byte) {
                let channel = Channel::open(escapes, &self.raw, self.position, self.window);
                self.channels.push(channel);
            }
        }
    }
}

/// The first byte with which an escape may begin.
fn first_escape(bytes: &[u8], has_spaces: bool) -> Option<usize> {
    if has_spaces {
        memchr::memchr3(b'%', b'\\', b'+', bytes)
    } else {
        memchr::memchr2(b'%', b'\\', bytes)
    }
}
