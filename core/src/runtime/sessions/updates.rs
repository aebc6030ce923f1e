//! The updates that a session was handed since it was opened.

use crate::modules::session_request::UpdateRequest;

/// The updates of one session.
#[derive(Clone, Default)]
pub(crate) struct Updates {
    /// Updates that nobody has yet.
    pending: Vec<UpdateRequest>,
    /// Updates that an isolate has, and that a new one would need.
    applied: Vec<UpdateRequest>,
}

impl Updates {
    /// The updates of a copy, whose isolate has all but these.
    pub(crate) fn of_copy(&self, pending: Vec<UpdateRequest>) -> Self {
        Self { pending, applied: self.applied.clone() }
    }

    pub(crate) fn add(&mut self, update: UpdateRequest) {
        self.pending.push(update);
    }

    /// Updates that nobody has yet.
    pub(crate) fn pending(&self) -> &[UpdateRequest] {
        &self.pending
    }

    /// Updates that a new isolate needs.
    pub(crate) fn applied(&self) -> &[UpdateRequest] {
        &self.applied
    }

    /// Hands those over that nobody has yet.
    pub(crate) fn take(&mut self) -> Vec<UpdateRequest> {
        let pending = std::mem::take(&mut self.pending);
        for update in &pending {
            self.applied.retain(|earlier| !update.covers(earlier));
            self.applied.push(update.clone());
        }
        pending
    }
}
