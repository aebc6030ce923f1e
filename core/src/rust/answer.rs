//! Answers that arrive later: of a session, and of futures that this library runs.
//!
//! In: an answer, from any thread. Out: a future of it, and a way to block for it.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::{
    Error, ErrorKind,
    binding::executor,
    os::sync::{Condvar, Mutex},
};

/// An answer, such as one of a [`Session`](crate::Session): a future, for any executor. The question is asked whether or
/// not anybody awaits it.
#[must_use = "await it, or wait for it: it may be an error"]
pub struct Answer<T>(Arc<Slot<T>>);

struct Slot<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

enum State<T> {
    Open(Option<Waker>),
    Here(Result<T, Error>),
    Taken,
}

/// The sender of an answer. Dropped without one, it sends an error.
pub(super) struct Asked<T>(Arc<Slot<T>>);

/// An answer, and its sender.
pub(super) fn answer<T>() -> (Asked<T>, Answer<T>) {
    let slot = Slot { state: Mutex::new(State::Open(None)), arrived: Condvar::new() };
    let slot = Arc::new(slot);
    (Asked(Arc::clone(&slot)), Answer(slot))
}

/// Runs a future on this library's thread for futures, in tokio: for capabilities that need tokio, and callers that have
/// none. It goes on when the answer is dropped.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Answer<T> {
    let (asked, answer) = answer();
    match executor::own() {
        Some(executor) => {
            // The task is not aborted by anybody.
            drop(executor.spawn(async move { asked.send(Ok(future.await)) }));
        }
        None => {
            let message = "the system has no thread for futures";
            asked.send(Err(Error::new(ErrorKind::Internal, message)));
        }
    }
    answer
}

/// The tokio runtime of this library's thread for futures, for capabilities that start many tasks of their own. Its tasks
/// must not block.
///
/// # Errors
/// The system has no thread for it.
pub fn futures_runtime() -> Result<tokio::runtime::Handle, Error> {
    let message = "the system has no thread for futures";
    executor::own().ok_or_else(|| Error::new(ErrorKind::Internal, message))
}

impl<T> Asked<T> {
    pub(super) fn send(self, answer: Result<T, Error>) {
        self.0.put(answer);
    }
}

impl<T> Drop for Asked<T> {
    fn drop(&mut self) {
        let message = "nobody answered";
        self.0.put(Err(Error::new(ErrorKind::Internal, message)));
    }
}

impl<T> Slot<T> {
    /// The first answer counts.
    fn put(&self, answer: Result<T, Error>) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Open(_)) {
            return;
        }
        let former = std::mem::replace(&mut *state, State::Here(answer));
        drop(state);
        self.arrived.notify_all();
        if let State::Open(Some(waker)) = former {
            waker.wake();
        }
    }
}

impl<T> Answer<T> {
    /// Blocks this thread until the answer is there: for callers without an executor.
    ///
    /// # Errors
    /// As the method of the session says.
    pub fn wait(self) -> Result<T, Error> {
        let mut state = self.0.state.lock();
        loop {
            match std::mem::replace(&mut *state, State::Taken) {
                State::Here(answer) => return answer,
                State::Taken => return Err(taken()),
                open @ State::Open(_) => {
                    *state = open;
                    state = self.0.arrived.wait(state);
                }
            }
        }
    }
}

fn taken() -> Error {
    Error::new(ErrorKind::Internal, "this answer was already taken")
}

impl<T> Future for Answer<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.state.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Here(answer) => Poll::Ready(answer),
            State::Taken => Poll::Ready(Err(taken())),
            State::Open(_) => {
                *state = State::Open(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Answer").finish_non_exhaustive()
    }
}
