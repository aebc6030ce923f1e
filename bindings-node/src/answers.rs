//! Answers to requests of JavaScript that arrive later.
//!
//! In: answers of the core, on any thread. Out: frames of the same, after the events that were queued before them. The
//! number of a request is JavaScript's.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use isolane::{Completion, Error, HostEvent, Name, NativeFunctions, SessionHandle};

use crate::{error::Misuse, host::NodeMailbox, value::Frame, wire::name_flag};

/// An answer to a request to a session or a system.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A reset is done, or was refused.
    Done(Result<(), Error>),
    Names(Result<Vec<Name>, Error>),
    /// The session has ended.
    Gone,
    /// The outcome of a call of a system.
    Called(Completion),
    /// The copy with that number, and the functions that are answered in Rust.
    Forked(u32, NativeFunctions, Result<SessionHandle, Error>),
}

/// The answers that JavaScript has not received, by the numbers of their requests.
#[derive(Clone)]
pub(crate) struct Answers {
    mailbox: Arc<NodeMailbox>,
    waiting: Arc<Mutex<HashMap<u32, Answer>>>,
}

impl Answers {
    pub(crate) fn new(mailbox: Arc<NodeMailbox>) -> Self {
        Self { mailbox, waiting: Arc::default() }
    }

    /// Queues an answer, on any thread.
    pub(crate) fn push(&self, request: u32, answer: Answer) {
        self.waiting().insert(request, answer);
        self.push_empty(request);
    }

    /// Queues an answer that says only that something is done.
    pub(crate) fn push_empty(&self, request: u32) {
        self.mailbox.push(request.into(), HostEvent::Closed);
    }

    /// Takes out an answer; `None` for one that only says that something is done.
    pub(crate) fn take(&self, request: u32) -> Option<Answer> {
        self.waiting().remove(&request)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u32, Answer>> {
        // A panic under the lock leaves nothing half done.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the value of an answer, or its error.
pub(crate) fn write_answer<T>(
    frame: &mut Frame,
    answer: Result<T, Error>,
    write: impl FnOnce(&mut Frame, T),
) {
    match answer {
        Ok(value) => {
            frame.u8(1);
            write(frame, value);
        }
        Err(error) => write_refusal(frame, &error.into()),
    }
}

/// Writes that a request was refused.
pub(crate) fn write_refusal(frame: &mut Frame, refusal: &Misuse) {
    frame.u8(0);
    frame.text(&refusal.kind);
    frame.text(&refusal.message);
}

/// Writes the names of a session.
pub(crate) fn write_names(frame: &mut Frame, names: Vec<Name>) {
    frame.count(names.len());
    for Name { name, kind, kind_of, size } in names {
        frame.u8(if size.is_some() { name_flag::SIZE } else { 0 });
        frame.text(&name);
        frame.text(kind.as_str());
        frame.text(&kind_of);
        if let Some(size) = size {
            #[expect(clippy::cast_precision_loss, reason = "a length has at most 53 bits")]
            frame.f64(size as f64);
        }
    }
}
