//! Cells that wait for the next request of the host, which answers their questions.
//!
//! In: a cell with questions. Out: a result that asks them, with a number; and the cell again, once a request has that number
//! and the answers. So the newest revision asks, in which servers send no requests. A cell that nobody goes on with ends
//! after ten minutes; at most 32 wait.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::model::{
    ElicitRequest, InputRequest, InputRequests, InputRequiredResult, InputResponses,
};
use serde_json::Value as Json;

use super::{
    approvals::{Question, elicitation},
    running::Running,
};

/// The most cells that wait. The oldest one ends if there are more.
const MOST: usize = 32;

/// The time that a host has for the next request.
const MOST_TIME: Duration = Duration::from_mins(10);

/// The cells that wait, by their numbers.
#[derive(Default)]
pub(super) struct Rounds(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    waiting: BTreeMap<u64, (Running, Vec<Question>)>,
    count: u64,
}

impl Rounds {
    /// Keeps a cell, and asks its questions.
    pub(super) fn ask(&self, running: Running, questions: Vec<Question>) -> InputRequiredResult {
        let requests: InputRequests = questions
            .iter()
            .enumerate()
            .map(|(index, question)| {
                let request = ElicitRequest::new(elicitation(question.message.clone()));
                (key(index), InputRequest::Elicitation(request))
            })
            .collect();
        let mut inside = self.lock();
        inside.count += 1;
        let number = inside.count;
        inside.waiting.insert(number, (running, questions));
        // Dropping a cell ends it.
        let oldest = (inside.waiting.len() > MOST).then(|| inside.waiting.pop_first());
        drop(inside);
        drop(oldest);
        let this = Self(Arc::clone(&self.0));
        tokio::spawn(async move {
            tokio::time::sleep(MOST_TIME).await;
            let late = this.lock().waiting.remove(&number);
            drop(late);
        });
        InputRequiredResult::new(Some(requests), Some(number.to_string()))
    }

    /// The cell of that number, whose questions are answered.
    ///
    /// # Errors
    /// The text for a host that asks for a cell which does not wait.
    pub(super) fn answer(
        &self,
        number: &str,
        answers: Option<&InputResponses>,
    ) -> Result<Running, String> {
        let waiting =
            number.parse().ok().and_then(|number: u64| self.lock().waiting.remove(&number));
        let (running, questions) =
            waiting.ok_or("this call does not wait for an answer any more; call again")?;
        for (index, question) in questions.into_iter().enumerate() {
            let answer = answers.and_then(|answers| answers.get(&key(index)));
            let action = answer.and_then(|answer| answer.get("action")).and_then(Json::as_str);
            // An execution that has ended needs no answer.
            let _ = question.answer.send(action == Some("accept"));
        }
        Ok(running)
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(index: usize) -> String {
    format!("approval{}", index + 1)
}
