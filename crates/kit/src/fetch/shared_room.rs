//! The room of one request, which its parts share.
//!
//! In: bytes that a part is about to hold. Out: whether the run has room for them. After a refusal there is none.

use std::sync::{Arc, Mutex, PoisonError};

use super::failure;
use crate::{error::KitError, room::Room};

/// A room. All clones are one.
#[derive(Clone)]
pub(super) struct SharedRoom(Arc<Mutex<State>>);

struct State {
    room: Box<dyn Room + Send>,
    is_full: bool,
}

impl SharedRoom {
    pub(super) fn new(room: impl Room + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(State { room: Box::new(room), is_full: false })))
    }

    /// Takes so many more bytes. After `false` the work must stop.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_full {
            state.is_full = !state.room.take(bytes);
        }
        !state.is_full
    }

    /// Takes so many more bytes, or fails.
    pub(super) fn need(&self, bytes: usize) -> Result<(), KitError> {
        if self.take(bytes) { Ok(()) } else { Err(failure::no_room()) }
    }

    /// Whether bytes were refused.
    pub(super) fn is_full(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_full
    }
}
