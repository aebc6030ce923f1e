//! The queue of a run's events.
//!
//! In: events, and output of programs from any thread. Out: the events in order, to one reader. A program may print
//! faster than the reader reads: output that waits is joined, and beyond a bound it is left out.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
};

use super::event::{LoopEvent, OutputStream};

/// The bytes of output that wait for the reader at most, each event counted with some more.
const MOST_WAITING_BYTES: usize = 4 << 20;

/// The bytes that an event of output counts beyond its text.
const EVENT_BYTES: usize = 128;

/// The turn, the program and the stream of an output.
type Place = (u32, usize, OutputStream);

/// The events of one run. All clones are one queue.
#[derive(Clone, Debug)]
pub(super) struct Events(Arc<Mutex<Queue>>);

#[derive(Debug)]
struct Queue {
    /// Whether there is a reader.
    is_read: bool,
    waiting: VecDeque<LoopEvent>,
    output_bytes: usize,
    /// The bytes of output that were left out last, and where.
    left_out: Option<(Place, u64)>,
    waker: Option<Waker>,
}

impl Events {
    pub(super) fn new(is_read: bool) -> Self {
        let waiting = VecDeque::new();
        Self(Arc::new(Mutex::new(Queue {
            is_read,
            waiting,
            output_bytes: 0,
            left_out: None,
            waker: None,
        })))
    }

    /// Tells the reader of something.
    pub(super) fn push(&self, event: LoopEvent) {
        let mut queue = self.queue();
        if queue.is_read {
            queue.tell_left_out();
            queue.waiting.push_back(event);
            queue.wake();
        }
    }

    /// Whether there is a reader.
    pub(super) fn is_read(&self) -> bool {
        self.queue().is_read
    }

    /// The output of a program, to be told as it comes.
    pub(super) fn output(&self, turn: u32, index: usize) -> LiveOutput {
        let streams = [OutputStream::Stdout, OutputStream::Stderr].map(|stream| {
            let (events, partial) = (self.clone(), Mutex::default());
            Live { events, turn, index, stream, partial, is_over: AtomicBool::new(false) }
        });
        let [stdout, stderr] = streams.map(Arc::new);
        LiveOutput { stdout, stderr }
    }

    /// The next event, if there is one; else the reader is woken when there is.
    pub(super) fn poll_next(&self, waker: &Waker) -> Poll<LoopEvent> {
        let mut queue = self.queue();
        match queue.waiting.pop_front() {
            Some(event) => {
                if let LoopEvent::Output { text, .. } = &event {
                    queue.output_bytes =
                        queue.output_bytes.saturating_sub(text.len() + EVENT_BYTES);
                }
                Poll::Ready(event)
            }
            None => {
                queue.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn push_output(&mut self, place: Place, text: &str) {
        if self.output_bytes.saturating_add(text.len() + EVENT_BYTES) > MOST_WAITING_BYTES {
            // Both streams are counted as the one that was left out first.
            self.left_out.get_or_insert((place, 0)).1 += text.len() as u64;
            return;
        }
        self.tell_left_out();
        self.add_output(place, text);
        self.wake();
    }

    /// Says how much was left out, if anything was.
    fn tell_left_out(&mut self) {
        if let Some((place, bytes)) = self.left_out.take() {
            self.add_output(place, &format!("\n... {bytes} bytes left out ...\n"));
        }
    }

    fn add_output(&mut self, place: Place, more: &str) {
        if let Some(LoopEvent::Output { turn, index, stream, text }) = self.waiting.back_mut()
            && (*turn, *index, *stream) == place
        {
            text.push_str(more);
            self.output_bytes += more.len();
            return;
        }
        let ((turn, index, stream), text) = (place, more.to_owned());
        self.output_bytes += more.len() + EVENT_BYTES;
        self.waiting.push_back(LoopEvent::Output { turn, index, stream, text });
    }
}

/// The two streams of a program's output.
#[derive(Clone, Debug)]
pub(super) struct LiveOutput {
    pub(super) stdout: Arc<Live>,
    pub(super) stderr: Arc<Live>,
}

impl LiveOutput {
    /// The program is done: what is left of a character is told, and nothing that comes later.
    pub(super) fn end(&self) {
        self.stdout.end();
        self.stderr.end();
    }
}

/// One stream of a program's output.
#[derive(Debug)]
pub(super) struct Live {
    events: Events,
    turn: u32,
    index: usize,
    stream: OutputStream,
    /// The beginning of a character whose end has not come.
    partial: Mutex<Vec<u8>>,
    is_over: AtomicBool,
}

impl Live {
    /// Tells of bytes as text.
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut partial = self.partial();
        if self.is_over.load(Ordering::Acquire) || !self.events.queue().is_read {
            return;
        }
        let joined;
        let bytes = if partial.is_empty() {
            bytes
        } else {
            joined = [partial.as_slice(), bytes].concat();
            &joined
        };
        let (text, rest) = decode(bytes);
        *partial = rest.to_vec();
        self.tell(&text);
    }

    fn end(&self) {
        let partial = std::mem::take(&mut *self.partial());
        if !self.is_over.swap(true, Ordering::AcqRel) && !partial.is_empty() {
            self.tell("\u{fffd}");
        }
    }

    fn tell(&self, text: &str) {
        if !text.is_empty() {
            self.events.queue().push_output((self.turn, self.index, self.stream), text);
        }
    }

    fn partial(&self) -> MutexGuard<'_, Vec<u8>> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text of bytes, and the beginning of a character at their end.
fn decode(bytes: &[u8]) -> (String, &[u8]) {
    let mut text = String::new();
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        let invalid = chunk.invalid();
        if chunks.peek().is_none() && is_incomplete(invalid) {
            return (text, invalid);
        }
        if !invalid.is_empty() {
            text.push('\u{fffd}');
        }
    }
    (text, &[])
}

/// Whether more bytes may make a character of these.
fn is_incomplete(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(events: &Events) -> Vec<String> {
        let next = || match events.poll_next(Waker::noop()) {
            Poll::Ready(LoopEvent::Output { text, .. }) => Some(text),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn characters_are_told_whole() {
        let events = Events::new(true);
        let output = events.output(1, 0);
        for byte in "aä€😀b".bytes() {
            output.stdout.push(&[byte]);
        }
        output.stdout.push(b"\xff\xf0\x9f");
        output.end();
        output.stdout.push(b"late");
        assert_eq!(texts(&events).concat(), "aä€😀b\u{fffd}\u{fffd}");
    }

    #[test]
    fn output_that_waits_is_bounded() {
        let events = Events::new(true);
        let output = events.output(1, 0);
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..5 {
            output.stdout.push(&chunk);
        }
        let first = texts(&events);
        assert_eq!(first.concat().len(), 3 << 20);
        output.stdout.push(b"more");
        assert_eq!(texts(&events).concat(), "\n... 2097152 bytes left out ...\nmore");
    }

    #[test]
    fn streams_keep_their_order() {
        let events = Events::new(true);
        let output = events.output(1, 0);
        output.stdout.push(b"a");
        output.stdout.push(b"b");
        output.stderr.push(b"c");
        output.stdout.push(b"d");
        assert_eq!(texts(&events), ["ab", "c", "d"]);
    }
}
