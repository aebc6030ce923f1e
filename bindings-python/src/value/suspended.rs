//! A message that is read in several slices.
//!
//! In: a message, and a budget for each slice. Out: its value after the last slice. In between this keeps the message
//! and the objects that were read.
#![expect(
    unsafe_code,
    reason = "keeps a reader with the bytes that it reads, and stops a collector"
)]

use std::sync::Arc;

use isolane::Value;
use pyo3::{ffi, prelude::*};

use super::{
    budget::Budget,
    decode::{Decoder, Owners},
};

/// A message of more bytes is freed on a thread of its own, because freeing it takes long.
const SLOW_TO_FREE: usize = 16 << 20;

pub(crate) struct Suspended {
    /// Borrows from `message` and is dropped before it. `Some` until this is dropped.
    decoder: Option<Decoder<'static>>,
    message: Option<Arc<Value>>,
}

impl Suspended {
    pub(crate) fn new(message: Arc<Value>) -> Self {
        let decoder = Decoder::new(&message);
        // SAFETY: the decoder borrows the nodes and blobs of the message. This holds the message in an `Arc`
        // for longer than the decoder, and nothing changes it. The decoder returns Python objects, which borrow
        // nothing, and never leaves this.
        let decoder = unsafe { std::mem::transmute::<Decoder<'_>, Decoder<'static>>(decoder) };
        Self { decoder: Some(decoder), message: Some(message) }
    }

    /// Reads one slice; returns the value after the last one.
    pub(crate) fn go_on<'py>(
        &mut self,
        owners: &Owners<'py>,
        budget: &mut Budget,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let _pause = Pause::new(owners.py());
        match &mut self.decoder {
            Some(decoder) => decoder.go_on(owners, budget),
            None => Ok(None),
        }
    }

    /// Frees the objects that were read so far, as far as the budget lasts; returns whether none is left.
    pub(crate) fn discard(&mut self, py: Python<'_>, budget: &mut Budget) -> bool {
        let _pause = Pause::new(py);
        self.decoder.as_mut().is_none_or(|decoder| decoder.discard(py, budget))
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        drop(self.decoder.take());
        let message = self.message.take();
        if message.as_ref().is_some_and(|message| message.held_bytes() > SLOW_TO_FREE) {
            // If no thread can be started, this thread drops it.
            drop(std::thread::Builder::new().spawn(move || drop(message)));
        }
    }
}

/// Keeps Python's garbage collector from running. Before 3.12 it runs repeatedly while many objects are made, and
/// visits all of them, which takes longer than the time for reading in a turn of a loop.
struct Pause<'py> {
    _py: Python<'py>,
    was_enabled: bool,
}

impl<'py> Pause<'py> {
    fn new(py: Python<'py>) -> Self {
        // SAFETY: `py` proves that this thread holds the interpreter's lock.
        let was_enabled = unsafe { ffi::PyGC_Disable() } != 0;
        Self { _py: py, was_enabled }
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        if self.was_enabled {
            // SAFETY: `_py` proves that this thread holds the interpreter's lock.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}
