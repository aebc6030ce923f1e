//! The questions of a run of the loop to its face.
//!
//! In: questions of the run, which wait, and the answers of the face. Out: news for the face's one function: the kind of a
//! piece, its number and its body. They are questions, questions that nobody asks any more, and events.

use std::{
    collections::HashMap,
    error::Error as StdError,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use isolane::{Value, value::Writer};
use isolane_door::Callback;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

use super::data::text_message;
use crate::{CancellationToken, CodeExecutionResult, ExecutorError, InvocationContext};

/// The most events that wait for their reader. The run rests meanwhile.
const MOST_EVENTS: usize = 256;

/// The questions of a run to its face.
pub(super) struct Questions {
    /// The face's function. `None`: nobody is asked.
    news: Option<Callback>,
    asked: Mutex<Asked>,
    /// The events that may still wait for their reader.
    pub(super) room: Semaphore,
}

#[derive(Default)]
struct Asked {
    last: u32,
    open: HashMap<u32, Question>,
}

/// A question that has no answer yet.
struct Question {
    answer: oneshot::Sender<Answer>,
    /// The context of a call of an executor.
    context: Option<InvocationContext>,
}

/// An answer of the face.
pub(super) enum Answer {
    /// Parts as JSON.
    Parts(String),
    /// Parts that are asked for one by one.
    Stream,
    /// The stream is over.
    End,
    /// The face keeps the exception.
    Raised,
    /// The result of an executor.
    Executed(Result<CodeExecutionResult, ExecutorError>),
}

/// An exception that the face keeps, by the number of its question.
#[derive(Debug)]
pub(super) struct Raised(pub(super) u32);

impl fmt::Display for Raised {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the model threw an exception")
    }
}

impl StdError for Raised {}

impl Questions {
    pub(super) fn new(news: Option<Callback>) -> Self {
        Self { news, asked: Mutex::default(), room: Semaphore::new(MOST_EVENTS) }
    }

    /// Tells the face a piece of news.
    pub(super) fn tell(&self, kind: &str, number: u32, body: Value) {
        let Some(news) = &self.news else { return };
        let mut writer = Writer::new();
        writer.number(number.into());
        news.notify(&[text_message(kind), writer.finish(), body]);
    }

    /// Asks the face. `None`: nobody will answer.
    pub(super) async fn ask(
        self: &Arc<Self>,
        number: Option<u32>,
        context: Option<InvocationContext>,
        kind: &str,
        body: Value,
    ) -> (u32, Option<Answer>) {
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut asked = self.asked();
            let number = number.unwrap_or_else(|| {
                asked.last = asked.last.wrapping_add(1);
                asked.last
            });
            asked.open.insert(number, Question { answer, context });
            number
        };
        let _dropped = DropGuard { questions: Arc::clone(self), number };
        self.tell(kind, number, body);
        (number, answered.await.ok())
    }

    pub(super) fn answer(&self, number: u32, answer: Answer) {
        let question = self.asked().open.remove(&number);
        if let Some(question) = question {
            // The question may be dropped at this moment.
            drop(question.answer.send(answer));
        }
    }

    /// Waits until so many events more may wait for their reader, or the run is cancelled.
    pub(super) async fn wait_for_room(&self, count: u32, cancellation: &CancellationToken) {
        tokio::select! {
            // The room is never closed.
            permits = self.room.acquire_many(count) => drop(permits.map(SemaphorePermit::forget)),
            () = cancellation.cancelled() => {}
        }
    }

    /// Nobody waits for the answer to that question, or reads its stream, any more.
    pub(super) fn is_dropped(&self, number: u32) {
        self.tell("dropped", number, Value::undefined());
    }

    /// The context of a call that an executor was asked for.
    pub(super) fn context(&self, number: u32) -> Option<InvocationContext> {
        self.asked().open.get(&number).and_then(|question| question.context.clone())
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        // A panic under the lock leaves nothing half done.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Questions").finish_non_exhaustive()
    }
}

/// Tells the face that nobody waits for an answer any more.
struct DropGuard {
    questions: Arc<Questions>,
    number: u32,
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        let is_open = self.questions.asked().open.remove(&self.number).is_some();
        if is_open {
            self.questions.is_dropped(self.number);
        }
    }
}
