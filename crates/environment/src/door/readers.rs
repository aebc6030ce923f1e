//! Readers of events that another language holds, by numbers.
//!
//! In: a reader, and calls for its next event. Out: events. A reader of one process that was cut off resumes by itself:
//! what it reads is stored anyway.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use isolane::{Completion, Value};
use serde_json::json;

use super::thrown::problem;
use crate::{
    AllEvents, Lagged, ProcessError, ProcessEvent, ProcessEvents, ProcessService, json::to_message,
    locks::lock,
};

/// A reader, and where to resume.
pub(super) enum Reader {
    One { pid: u64, last: u64, events: Option<ProcessEvents> },
    All { last: Option<u64>, events: AllEvents },
}

impl Reader {
    async fn next(
        &mut self,
        service: &ProcessService,
    ) -> Result<Option<ProcessEvent>, ProcessError> {
        loop {
            let next = match self {
                Self::One { events: None, .. } => return Ok(None),
                Self::One { events: Some(events), .. } => events.next().await,
                Self::All { events, .. } => events.next().await,
            };
            match (next, &mut *self) {
                (Ok(Some(event)), Self::One { last, .. }) => {
                    *last = event.id;
                    return Ok(Some(event));
                }
                (Ok(Some(event)), Self::All { last, .. }) => {
                    *last = Some(event.id);
                    return Ok(Some(event));
                }
                (Ok(None), _) => return Ok(None),
                (Err(Lagged), Self::One { pid, last, events }) => {
                    *events = service.events(*pid, *last).await?;
                }
                (Err(Lagged), Self::All { last, events }) => {
                    *events = service.all_events(Some(last.unwrap_or_default()));
                }
            }
        }
    }
}

/// All readers.
#[derive(Default)]
pub(super) struct Readers {
    known: Mutex<HashMap<u64, Arc<tokio::sync::Mutex<Reader>>>>,
    last: AtomicU64,
}

impl Readers {
    pub(super) fn add(&self, reader: Reader) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        lock(&self.known).insert(number, Arc::new(tokio::sync::Mutex::new(reader)));
        number
    }

    pub(super) fn remove(&self, number: u64) {
        lock(&self.known).remove(&number);
    }

    /// The next event of a reader, or `null` after the last one.
    pub(super) async fn next(&self, number: u64, service: ProcessService) -> Completion {
        let reader = lock(&self.known).get(&number).cloned();
        let Some(reader) = reader else { return Ok(to_message(&serde_json::Value::Null)) };
        let next = reader.lock().await.next(&service).await;
        match next {
            Ok(Some(event)) => Ok(shown(&event)),
            Ok(None) => {
                self.remove(number);
                Ok(to_message(&serde_json::Value::Null))
            }
            Err(error) => Err(problem(&error)),
        }
    }
}

/// `{ id, event, data }`.
fn shown(event: &ProcessEvent) -> Value {
    // The data of an event is JSON.
    let data: serde_json::Value = serde_json::from_str(&event.data).unwrap_or_default();
    to_message(&json!({ "id": event.id, "event": event.kind.as_str(), "data": data }))
}
