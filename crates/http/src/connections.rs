//! The connections of a server.
//!
//! In: new connections and their requests. Out: which one ends when there are too many: the one that has been idle
//! longest. So clients that connect and say nothing harm nobody.

use std::{
    collections::{BTreeMap, HashMap},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio_util::sync::CancellationToken;

/// All connections of a server.
#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the latest connection, or of the latest time that one became idle.
    last: u64,
    open: HashMap<u64, Entry>,
    /// The idle ones, by when they became idle.
    idle: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Entry {
    /// Cancelled to end the connection.
    end: CancellationToken,
    /// When it became idle; `None` while it answers.
    idle_since: Option<u64>,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default() })
    }

    /// A new connection; `None` if there are too many that are not idle.
    pub(crate) fn open(self: &Arc<Self>) -> Option<Connection> {
        let mut state = self.state();
        if state.open.len() >= self.most && !state.end_idlest() {
            return None;
        }
        state.last += 1;
        let id = state.last;
        let end = CancellationToken::new();
        state.idle.insert(id, id);
        state.open.insert(id, Entry { end: end.clone(), idle_since: Some(id) });
        let sending = Sending { id, all: Arc::clone(self), is_produced: Arc::default() };
        Some(Connection { end, sending })
    }

    /// Ends the connection that has been idle longest, if there is one.
    pub(crate) fn end_idlest(&self) {
        self.state().end_idlest();
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.state().open.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end_idlest(&mut self) -> bool {
        let Some((_, id)) = self.idle.pop_first() else { return false };
        if let Some(entry) = self.open.remove(&id) {
            entry.end.cancel();
        }
        true
    }

    fn set_idle(&mut self, id: u64, is_idle: bool) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        if let Some(since) = entry.idle_since.take() {
            self.idle.remove(&since);
        }
        if is_idle {
            self.last += 1;
            entry.idle_since = Some(self.last);
            self.idle.insert(self.last, id);
        }
    }
}

/// One connection, as long as it lives.
#[derive(Debug)]
pub(crate) struct Connection {
    end: CancellationToken,
    sending: Sending,
}

impl Connection {
    /// Resolves when the connection must make room for another one.
    pub(crate) async fn ended(&self) {
        self.end.cancelled().await;
    }

    /// Whether no request is being answered.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.sending.all.state();
        state.open.get(&self.sending.id).is_none_or(|entry| entry.idle_since.is_some())
    }

    /// For the socket, which knows what has been sent.
    pub(crate) fn sending(&self) -> Sending {
        self.sending.clone()
    }

    /// A request has come. The connection is not idle until its response has been produced and sent.
    pub(crate) fn request(&self) -> Answering {
        self.sending.is_produced.store(false, Ordering::Relaxed);
        self.sending.all.state().set_idle(self.sending.id, false);
        Answering(self.sending.clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = self.sending.all.state();
        state.set_idle(self.sending.id, false);
        state.open.remove(&self.sending.id);
    }
}

/// How far the latest response of a connection is.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    id: u64,
    all: Arc<Connections>,
    /// Whether all of the response has been produced, which is not to say sent.
    is_produced: Arc<AtomicBool>,
}

impl Sending {
    /// All that was produced so far has been sent.
    pub(crate) fn sent(&self) {
        if self.is_produced.swap(false, Ordering::Relaxed) {
            self.all.state().set_idle(self.id, true);
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Answering(Sending);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.is_produced.store(true, Ordering::Relaxed);
    }
}

/// The body of a response, whose request is answered when the body has been produced.
#[derive(Debug)]
pub(crate) struct AnsweringBody {
    pub(crate) body: Body,
    pub(crate) _answering: Answering,
}

impl http_body::Body for AnsweringBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_has_been_idle_longest_makes_room() {
        let all = Connections::new(3);
        let [first, second, third] = [(); 3].map(|()| all.open().expect("room"));
        // The first one is idle again since just now, and the second one answers.
        drop(first.request());
        first.sending().sent();
        let answering = second.request();
        let ended = || [&first, &second, &third].map(|connection| connection.end.is_cancelled());
        let fourth = all.open().expect("the third one makes room");
        assert_eq!(ended(), [false, false, true]);
        let fifth = all.open().expect("the first one makes room");
        assert_eq!(ended(), [true, false, true]);
        let others = [fourth.request(), fifth.request()];
        assert!(all.open().is_none(), "none is idle");
        second.sending().sent();
        drop(answering);
        assert!(all.open().is_none(), "its response has not been sent");
        second.sending().sent();
        assert!(all.open().is_some());
        assert_eq!(ended(), [true, true, true]);
        drop((others, first, second, third, fourth, fifth));
        assert!(all.state().open.is_empty() && all.state().idle.is_empty());
    }
}
