//! News of a call or a run of the loop, for the thread of JavaScript that started it.
//!
//! In: news, from any thread. Out: the same in order, one by one. JavaScript is told once for all that have come since it
//! last took all of them. Output that it does not take in time is left out beyond a bound, with a line that says so.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use isolane::{HostEvent, Value};

use super::data::bytes_message;
use crate::{host::NodeMailbox, wire::news_kind};

/// The most bytes of live output that wait for JavaScript.
const MOST_WAITING_BYTES: usize = 4 << 20;

pub(crate) struct Inbox {
    state: Mutex<State>,
    mailbox: Arc<NodeMailbox>,
    number: u32,
}

struct State {
    waiting: VecDeque<News>,
    /// The bytes of output among them.
    output_bytes: usize,
    /// The bytes of each stream, by its kind, that were left out behind the last of them.
    left_out: [(u8, usize); 2],
    /// Whether JavaScript was told of news that it has not taken.
    is_announced: bool,
    /// Whether the last news is here.
    is_closed: bool,
}

/// A piece of news: its kind, as `wire::news_kind` has it, and the number of a question.
pub(crate) struct News {
    pub(crate) kind: u8,
    pub(crate) number: u32,
    body: Body,
    pub(crate) is_last: bool,
}

enum Body {
    Bytes(Vec<u8>),
    Message(Value),
}

impl News {
    pub(super) fn new(kind: u8, number: u32, message: Value) -> Self {
        Self { kind, number, body: Body::Message(message), is_last: false }
    }

    pub(crate) fn message(self) -> Value {
        match self.body {
            Body::Bytes(bytes) => bytes_message(bytes),
            Body::Message(message) => message,
        }
    }
}

impl Inbox {
    /// News for the work of that number.
    pub(super) fn new(mailbox: Arc<NodeMailbox>, number: u32) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            output_bytes: 0,
            left_out: [(news_kind::STDOUT, 0), (news_kind::STDERR, 0)],
            is_announced: false,
            is_closed: false,
        };
        Self { state: Mutex::new(state), mailbox, number }
    }

    pub(super) fn push(&self, news: News) {
        self.add(|state| {
            state.tell_left_out();
            state.waiting.push_back(news);
        });
    }

    /// Adds the last news. Later ones are dropped.
    pub(super) fn push_last(&self, kind: u8, number: u32, message: Value) {
        self.add(|state| {
            state.tell_left_out();
            let body = Body::Message(message);
            state.waiting.push_back(News { kind, number, body, is_last: true });
            state.is_closed = true;
        });
    }

    /// Adds bytes of a stream.
    pub(super) fn push_output(&self, is_stdout: bool, bytes: &[u8]) {
        let kind = if is_stdout { news_kind::STDOUT } else { news_kind::STDERR };
        self.add(|state| state.add_output(kind, bytes));
    }

    /// The next news. If there are none, JavaScript is told of later ones.
    pub(crate) fn next(&self) -> Option<News> {
        let mut state = self.state();
        if state.waiting.is_empty() {
            state.is_announced = false;
        }
        let news = state.waiting.pop_front()?;
        if let Body::Bytes(bytes) = &news.body {
            state.output_bytes -= bytes.len();
        }
        if state.waiting.is_empty() {
            state.tell_left_out();
        }
        Some(news)
    }

    fn add(&self, add: impl FnOnce(&mut State)) {
        let mut state = self.state();
        if state.is_closed {
            return;
        }
        add(&mut state);
        let is_announced = mem::replace(&mut state.is_announced, true);
        drop(state);
        if !is_announced {
            self.mailbox.push(self.number.into(), HostEvent::Closed);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add_output(&mut self, kind: u8, bytes: &[u8]) {
        let room = MOST_WAITING_BYTES.saturating_sub(self.output_bytes);
        let is_full = self.left_out.iter().any(|(_, bytes)| *bytes > 0);
        let kept = if is_full { 0 } else { bytes.len().min(room) };
        let (kept, rest) = bytes.split_at(kept);
        for (stream, left_out) in &mut self.left_out {
            if *stream == kind {
                *left_out += rest.len();
            }
        }
        if kept.is_empty() {
            return;
        }
        self.output_bytes += kept.len();
        match self.waiting.back_mut() {
            Some(News { kind: last, body: Body::Bytes(text), .. }) if *last == kind => {
                text.extend_from_slice(kept);
            }
            _ => {
                let body = Body::Bytes(kept.to_vec());
                self.waiting.push_back(News { kind, number: 0, body, is_last: false });
            }
        }
    }

    /// Says in each stream how much of it was left out, if anything was.
    fn tell_left_out(&mut self) {
        for (kind, left_out) in &mut self.left_out {
            let left_out = mem::take(left_out);
            if left_out == 0 {
                continue;
            }
            let line = format!("\n... {left_out} bytes left out ...\n");
            self.output_bytes += line.len();
            let body = Body::Bytes(line.into_bytes());
            self.waiting.push_back(News { kind: *kind, number: 0, body, is_last: false });
        }
    }
}
