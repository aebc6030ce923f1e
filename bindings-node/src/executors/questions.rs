//! The questions of a run of the loop to JavaScript.
//!
//! In: questions of the run, which wait, and answers of JavaScript. Out: news of the questions, and of those that nobody
//! asks any more; and the end of the run.

use std::{
    collections::HashMap,
    error::Error as StdError,
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use isolane::{Error, Value};
use isolane_executors::{
    CancellationToken, CodeExecutionResult, ExecutorError, InvocationContext, LoopResult,
    ModelError,
};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

use super::{
    data::{json_message, pair},
    inbox::{Inbox, News},
};
use crate::{error::Misuse, wire::news_kind};

/// The most events that wait for their reader. The run rests meanwhile.
const MOST_EVENTS: usize = 256;

/// The questions of a run to JavaScript.
pub(crate) struct Questions {
    pub(super) inbox: Arc<Inbox>,
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

pub(super) enum Answer {
    /// Parts as JSON.
    Parts(String),
    Stream,
    End,
    /// JavaScript keeps the exception.
    Raised,
    Executed(Result<CodeExecutionResult, ExecutorError>),
}

/// An exception that JavaScript keeps, by the number of its question.
#[derive(Debug)]
pub(super) struct Raised(pub(super) u32);

impl fmt::Display for Raised {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the model threw an exception")
    }
}

impl StdError for Raised {}

impl Questions {
    pub(super) fn new(inbox: Arc<Inbox>) -> Self {
        Self { inbox, asked: Mutex::default(), room: Semaphore::new(MOST_EVENTS) }
    }

    /// Asks JavaScript. `None`: nobody will answer.
    pub(super) async fn ask(
        self: &Arc<Self>,
        number: Option<u32>,
        context: Option<InvocationContext>,
        kind: u8,
        message: Value,
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
        self.inbox.push(News::new(kind, number, message));
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

    pub(super) fn is_dropped(&self, number: u32) {
        self.inbox.push(News::new(news_kind::DROPPED, number, Value::undefined()));
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

/// Tells JavaScript that nobody waits for an answer any more.
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

impl Questions {
    pub(super) fn end(&self, ended: Result<LoopResult, ModelError>) {
        let message = ended.and_then(|mut result| {
            let files = mem::take(&mut result.files);
            Ok(json_message(&serde_json::to_value(&result)?, files))
        });
        match message {
            Ok(message) => self.inbox.push_last(news_kind::ENDED, 0, message),
            Err(error) => self.fail(error),
        }
    }

    pub(super) fn fail(&self, error: ModelError) {
        if let Some(Raised(number)) = error.downcast_ref() {
            self.inbox.push_last(news_kind::RAISED, *number, Value::undefined());
            return;
        }
        let (kind, message) = match error.downcast::<Error>() {
            Ok(error) => {
                let Misuse { kind, message, .. } = (*error).into();
                (kind, message)
            }
            Err(error) => ("internal".to_owned(), error.to_string()),
        };
        self.inbox.push_last(news_kind::FAILED, 0, pair(&kind, &message));
    }
}
