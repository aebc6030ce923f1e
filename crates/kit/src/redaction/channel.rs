//! A channel: the input as one kind of escapes reads it, with the automaton's state.
//!
//! In: the bytes of the input. Out: the values in what they stand for, with their places in the input.

use aho_corasick::{
    Anchored,
    automaton::{Automaton, StateID},
};

use super::{
    Redactor,
    decoder::{self, Escapes, Step},
    finder::{Found, Places},
};

/// A run of base64's characters that is not over.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: usize,
    /// The last value that was found in it.
    found: Option<Found>,
    /// Whether it ends with `=`.
    is_padded: bool,
}

impl Run {
    /// The run behind a byte at that place.
    #[inline]
    fn next(run: Option<Self>, byte: u8, place: usize) -> Option<Self> {
        match (run, byte) {
            (Some(run), b'=') => Some(Self { is_padded: true, ..run }),
            (Some(run), byte) if !run.is_padded && is_base64(byte) => Some(run),
            (_, byte) if is_base64(byte) => {
                Some(Self { start: place, found: None, is_padded: false })
            }
            _ => None,
        }
    }
}

/// The state of the automaton in a text.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    state: StateID,
    run: Option<Run>,
}

impl Reading {
    pub(super) fn new(state: StateID) -> Self {
        Self { state, run: None }
    }

    /// Where the run of base64 begins that may go on.
    pub(super) fn run_start(&self) -> usize {
        self.run.map_or(usize::MAX, |run| run.start)
    }

    /// Whether it is in a run of base64 that has a value.
    pub(super) fn is_in_found_run(&self) -> bool {
        self.run.is_some_and(|run| run.found.is_some())
    }

    /// Passes over bytes of the input, from that place on, in which no value begins, and none that began before goes on.
    /// It is in no run with a value. `start` is the state of the automaton at the start of a text.
    pub(super) fn skip(&mut self, start: StateID, bytes: &[u8], place: usize) {
        if bytes.is_empty() {
            return;
        }
        self.state = start;
        // Only what follows the last other byte can be a part of a run.
        let is_other = |byte: &u8| *byte != b'=' && !is_base64(*byte);
        let from = bytes.iter().rposition(is_other).map_or(0, |last| last + 1);
        let run = self.run.filter(|_| from == 0);
        let (mut begun, mut is_padded) =
            (run.map(|run| run.start), run.is_some_and(|run| run.is_padded));
        for (byte, place) in bytes[from..].iter().zip(place + from..) {
            if *byte == b'=' {
                is_padded = begun.is_some();
            } else if begun.is_none() || is_padded {
                (begun, is_padded) = (Some(place), false);
            }
        }
        self.run = begun.map(|start| Run { start, found: None, is_padded });
    }

    /// Reads a byte that stands from `start` to `end` in the input. `start_of` tells where the last bytes began,
    /// counted from this one, which is the first.
    #[inline]
    pub(super) fn read(
        &mut self,
        redactor: &Redactor,
        automaton: &impl Automaton,
        byte: u8,
        (start, end): (usize, usize),
        start_of: impl Fn(usize) -> usize,
        places: &mut Places,
    ) {
        self.state = automaton.next_state(Anchored::No, self.state, byte);
        self.follow_run(byte, start, end, places);
        if automaton.is_match(self.state) {
            // The first one is the longest.
            let pattern = automaton.match_pattern(self.state, 0);
            let Some(pattern) = redactor.patterns.get(pattern.as_usize()) else { return };
            let mut found = Found {
                start: start_of(pattern.length),
                end,
                value: pattern.value,
                value_bytes: pattern.value_bytes,
            };
            if let Some(run) = self.run.as_mut().filter(|_| pattern.is_base64) {
                found.start = found.start.min(run.start);
                run.found = Some(found);
            }
            places.add(found);
        }
    }

    #[inline]
    fn follow_run(&mut self, byte: u8, start: usize, end: usize, places: &mut Places) {
        self.run = Run::next(self.run, byte, start);
        if let Some(Run { found: Some(found), .. }) = self.run {
            places.add(Found { end, ..found });
        }
    }
}

#[inline]
fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// A reading of what the input's escapes stand for.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    escapes: Escapes,
    reading: Reading,
    /// The bytes that may be the beginning of an escape.
    pending: [u8; decoder::LONGEST],
    pending_bytes: usize,
    /// How many bytes were decoded. It is the place in the input where the channel was opened, and counts on.
    decoded: usize,
    opened: usize,
    /// Where each of the last decoded bytes begins in the input. Its length is a power of two.
    starts: Vec<usize>,
    /// The bytes of the longest pattern.
    window: usize,
    /// How many bytes stood for themselves since the last escape.
    literal_bytes: usize,
}

impl Channel {
    /// Opens a channel at that place of the input: nothing before it matters that is an escape.
    pub(super) fn open(escapes: Escapes, raw: &Reading, at: usize, window: usize) -> Self {
        Self {
            escapes,
            reading: raw.clone(),
            pending: [0; decoder::LONGEST],
            pending_bytes: 0,
            decoded: at,
            opened: at,
            starts: vec![0; window.next_power_of_two()],
            window,
            // Until it meets an escape, it reads the same as the input.
            literal_bytes: window,
        }
    }

    pub(super) fn escapes(&self) -> Escapes {
        self.escapes
    }

    /// Whether the channel reads the same as the input itself: there was no escape in as many bytes as a pattern has.
    pub(super) fn is_idle(&self) -> bool {
        let is_found = self.reading.run.is_some_and(|run| run.found.is_some());
        self.pending_bytes == 0 && self.literal_bytes >= self.window && !is_found
    }

    /// No value that is not found yet begins before this place.
    pub(super) fn earliest(&self) -> usize {
        self.start_of(self.window).min(self.reading.run_start())
    }

    /// Reads the byte of the input before that place.
    pub(super) fn read(
        &mut self,
        redactor: &Redactor,
        automaton: &impl Automaton,
        byte: u8,
        end: usize,
        places: &mut Places,
    ) {
        if self.pending_bytes == 0 && !self.escapes.may_begin(byte) {
            self.literal_bytes += 1;
            return self.pass(redactor, automaton, byte, (end - 1, end), places);
        }
        self.pending[self.pending_bytes] = byte;
        self.pending_bytes += 1;
        while self.pending_bytes > 0 {
            match self.escapes.decode(&self.pending[..self.pending_bytes]) {
                Step::More => return,
                Step::Literal => self.pass_literal(redactor, automaton, end, places),
                Step::Decoded { read, bytes, length } => {
                    let start = end - self.pending_bytes;
                    for byte in &bytes[..length] {
                        self.pass(redactor, automaton, *byte, (start, start + read), places);
                    }
                    self.drop_pending(read);
                    self.literal_bytes = 0;
                }
            }
        }
    }

    /// The input ends here: an escape that was begun is none.
    pub(super) fn finish(
        &mut self,
        redactor: &Redactor,
        automaton: &impl Automaton,
        end: usize,
        places: &mut Places,
    ) {
        while self.pending_bytes > 0 {
            self.pass_literal(redactor, automaton, end, places);
        }
    }

    fn pass_literal(
        &mut self,
        redactor: &Redactor,
        automaton: &impl Automaton,
        end: usize,
        places: &mut Places,
    ) {
        let start = end - self.pending_bytes;
        self.pass(redactor, automaton, self.pending[0], (start, start + 1), places);
        self.drop_pending(1);
        self.literal_bytes += 1;
    }

    fn drop_pending(&mut self, bytes: usize) {
        self.pending.copy_within(bytes..self.pending_bytes, 0);
        self.pending_bytes -= bytes;
    }

    fn pass(
        &mut self,
        redactor: &Redactor,
        automaton: &impl Automaton,
        byte: u8,
        place: (usize, usize),
        places: &mut Places,
    ) {
        let index = self.decoded & (self.starts.len() - 1);
        self.starts[index] = place.0;
        self.decoded += 1;
        let (starts, decoded, opened) = (&self.starts, self.decoded, self.opened);
        let start_of = |count| start_of(starts, decoded, opened, count);
        self.reading.read(redactor, automaton, byte, place, start_of, places);
    }

    fn start_of(&self, count: usize) -> usize {
        start_of(&self.starts, self.decoded, self.opened, count)
    }
}

/// Where the `count`-th of the last decoded bytes begins in the input.
fn start_of(starts: &[usize], decoded: usize, opened: usize, count: usize) -> usize {
    let index = decoded.saturating_sub(count);
    if index < opened { index } else { starts[index & (starts.len() - 1)] }
}
