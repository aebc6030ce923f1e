//! A message that is read in several goes.
//!
//! In: a message, and a budget each time. Out: its value, once all of it has been read; meanwhile it keeps
//! the message and what was made of it.
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

/// Bytes from which on giving a message back to the system takes long enough to be done elsewhere.
const SLOW_TO_FREE: usize = 16 << 20;

pub(crate) struct Suspended {
    /// Borrows from `message`, and goes before it. There until this is dropped.
    decoder: Option<Decoder<'static>>,
    message: Option<Arc<Value>>,
}

impl Suspended {
    pub(crate) fn new(message: Arc<Value>) -> Self {
        let decoder = Decoder::new(&message);
        // SAFETY: the decoder borrows the nodes and blobs of the message, which is behind an `Arc` that
        // this holds for longer than the decoder, and through which nothing is changed. What the decoder
        // returns are objects of Python, which borrow nothing, and it never leaves this.
        let decoder = unsafe { std::mem::transmute::<Decoder<'_>, Decoder<'static>>(decoder) };
        Self { decoder: Some(decoder), message: Some(message) }
    }

    /// Reads on; the value, once it is whole.
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

    /// Frees what was read so far; says whether nothing is left.
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
            // Where there can be no thread it is dropped here.
            drop(std::thread::Builder::new().spawn(move || drop(message)));
        }
    }
}

/// Keeps Python's collector from running, which before 3.12 does so again and again while many objects are
/// made, and then looks at all that there are: that takes longer than a turn of a loop may.
struct Pause<'py> {
    _py: Python<'py>,
    was_enabled: bool,
}

impl<'py> Pause<'py> {
    fn new(py: Python<'py>) -> Self {
        // SAFETY: this thread holds the interpreter's lock, as `py` says.
        let was_enabled = unsafe { ffi::PyGC_Disable() } != 0;
        Self { _py: py, was_enabled }
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        if self.was_enabled {
            // SAFETY: as above.
            unsafe { ffi::PyGC_Enable() };
        }
    }
}
