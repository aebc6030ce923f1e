//! Live output of a call, for the receivers of a face.
//!
//! In: bytes of both streams, from any thread. Out: calls of the receivers, one after another. Output that they do not
//! take in time is left out beyond a bound, with a line that says so.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use isolane::{Caller, Value};
use isolane_door::{Callback, Given};
use tokio::sync::Notify;

use super::data::bytes_message;
use crate::InvocationContext;

/// The most bytes that wait for their receivers.
const MOST_WAITING_BYTES: usize = 4 << 20;

/// The receivers of a call, and the output that waits for them.
pub(super) struct Live {
    /// Those of the standard output and the standard error.
    receivers: [Option<Callback>; 2],
    queue: Arc<Queue>,
    caller: Caller,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    has_news: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(usize, Vec<u8>)>,
    bytes: usize,
    /// The bytes of each stream that were left out behind the last of those that wait.
    left_out: [usize; 2],
    is_closed: bool,
}

impl Live {
    /// The receivers `stdout` and `stderr` of a context, and the context that hands its output over to them.
    pub(super) fn of(
        given: &Given,
        mut context: InvocationContext,
        caller: &Caller,
    ) -> (InvocationContext, Option<Self>) {
        let receivers = ["stdout", "stderr"].map(|name| match given.get(name) {
            Given::Function(callback) => Some(callback.clone()),
            _ => None,
        });
        let queue = Arc::new(Queue::default());
        let sink = |stream: usize| {
            let queue = Arc::clone(&queue);
            move |bytes: &[u8]| queue.push(stream, bytes)
        };
        if receivers[0].is_some() {
            context = context.with_stdout(sink(0));
        }
        if receivers[1].is_some() {
            context = context.with_stderr(sink(1));
        }
        let is_wanted = receivers.iter().any(Option::is_some);
        (context, is_wanted.then(|| Self { receivers, queue, caller: caller.clone() }))
    }

    /// Hands output over as it comes, until there is no more. Ends early when a receiver throws, with what it threw.
    pub(super) async fn deliver(&self) -> Result<(), Value> {
        loop {
            // Before it looks: what comes meanwhile is told.
            let news = self.queue.has_news.notified();
            let is_closed = self.queue.state().is_closed;
            while let Some((stream, bytes)) = self.queue.next() {
                let Some(receiver) = &self.receivers[stream] else { continue };
                tokio::select! {
                    received = receiver.call(&[bytes_message(bytes)]) => received.map(drop)?,
                    // Nobody answers any more.
                    _ = self.caller.terminated() => {}
                }
            }
            if is_closed {
                return Ok(());
            }
            news.await;
        }
    }

    /// No more output comes.
    pub(super) fn close(&self) {
        self.queue.state().is_closed = true;
        self.queue.has_news.notify_one();
    }
}

impl Queue {
    fn push(&self, stream: usize, bytes: &[u8]) {
        self.state().add(stream, bytes);
        self.has_news.notify_one();
    }

    fn next(&self) -> Option<(usize, Vec<u8>)> {
        let mut state = self.state();
        let (stream, bytes) = state.waiting.pop_front()?;
        state.bytes -= bytes.len();
        if state.waiting.is_empty() {
            state.tell_left_out();
        }
        Some((stream, bytes))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, stream: usize, bytes: &[u8]) {
        let room = MOST_WAITING_BYTES.saturating_sub(self.bytes);
        let is_full = self.left_out.iter().any(|bytes| *bytes > 0);
        let kept = if is_full { 0 } else { bytes.len().min(room) };
        let (kept, rest) = bytes.split_at(kept);
        self.left_out[stream] += rest.len();
        if kept.is_empty() {
            return;
        }
        self.bytes += kept.len();
        match self.waiting.back_mut() {
            Some((last, text)) if *last == stream => text.extend_from_slice(kept),
            _ => self.waiting.push_back((stream, kept.to_vec())),
        }
    }

    /// Says in each stream how much of it was left out, if anything was.
    fn tell_left_out(&mut self) {
        for (stream, left_out) in self.left_out.iter_mut().enumerate() {
            let left_out = mem::take(left_out);
            if left_out == 0 {
                continue;
            }
            let line = format!("\n... {left_out} bytes left out ...\n").into_bytes();
            self.bytes += line.len();
            self.waiting.push_back((stream, line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_stream_are_joined_and_streams_keep_their_order() {
        let queue = Queue::default();
        for (stream, text) in [(0, "a"), (0, "b"), (1, "c"), (0, "d")] {
            queue.push(stream, text.as_bytes());
        }
        let all: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(all, [(0, b"ab".to_vec()), (1, b"c".to_vec()), (0, b"d".to_vec())]);
    }

    #[test]
    fn more_than_may_wait_is_left_out_and_told_in_its_stream() {
        let queue = Queue::default();
        let half = vec![b'x'; MOST_WAITING_BYTES / 2];
        for stream in [0, 1, 1] {
            queue.push(stream, &half);
        }
        queue.push(0, b"late");
        let all: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(all.len(), 4);
        assert_eq!(all[2], (0, b"\n... 4 bytes left out ...\n".to_vec()));
        let told = format!("\n... {} bytes left out ...\n", half.len());
        assert_eq!(all[3], (1, told.into_bytes()));
        queue.push(0, b"again");
        assert_eq!(queue.next(), Some((0, b"again".to_vec())));
    }
}
