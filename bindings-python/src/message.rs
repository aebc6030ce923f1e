//! Messages of a run, for Python to read: at once, or in several turns of a loop if they are large.
//!
//! In: messages. Out: values, in the order of the messages. In between, the state of the reading.

use std::{collections::VecDeque, sync::Arc};

use isolane::Value;
use pyo3::prelude::*;

use crate::{
    lock::Lock,
    value::{self, Budget, Owners, Suspended},
};

/// Reading a message of more bytes may take longer than a turn of a loop.
pub(crate) const LARGE_BYTES: usize = 64 << 10;

/// About the bytes of a message that one step reads.
const BYTES_PER_STEP: usize = 64;

/// A message that can be read once.
#[pyclass(name = "Message", module = "isolane._isolane", frozen)]
pub(crate) struct PyMessage(Lock<Content>);

enum Content {
    Unread(Value),
    Begun(Box<Suspended>),
    Read(PyResult<Py<PyAny>>),
    Taken,
}

impl PyMessage {
    pub(crate) fn new(value: Value) -> Self {
        Self(Lock::new(Content::Unread(value)))
    }

    /// Takes the content out, because reading it may run code that uses this message again.
    fn take(&self) -> Content {
        std::mem::replace(&mut *self.0.lock(), Content::Taken)
    }
}

#[pymethods]
impl PyMessage {
    /// Reads one slice; returns whether the message has been read to its end or cannot be read.
    fn ready(&self, owner: &Bound<'_, PyAny>) -> bool {
        let mut begun = match self.take() {
            Content::Unread(value) => Box::new(Suspended::new(Arc::new(value))),
            Content::Begun(begun) => begun,
            done => {
                *self.0.lock() = done;
                return true;
            }
        };
        let read = begun.go_on(&Owners::new(owner), &mut Budget::of_a_turn()).transpose();
        let content = match read {
            None => Content::Begun(begun),
            Some(read) => Content::Read(read.map(Bound::unbind)),
        };
        let is_ready = matches!(content, Content::Read(_));
        *self.0.lock() = content;
        is_ready
    }

    /// Frees one slice of a message that nothing will read; returns whether nothing is left.
    fn discard(&self, py: Python<'_>) -> bool {
        let Content::Begun(mut begun) = self.take() else { return true };
        let is_done = begun.discard(py, &mut Budget::of_a_turn());
        if !is_done {
            *self.0.lock() = Content::Begun(begun);
        }
        is_done
    }

    /// The value, with functions and promises from `owner`.
    fn read<'py>(&self, py: Python<'py>, owner: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let owners = Owners::new(owner);
        match self.take() {
            Content::Unread(value) => value::read(py, &value, &owners),
            Content::Begun(mut begun) => {
                let read = begun.go_on(&owners, &mut Budget::endless())?;
                Ok(read.unwrap_or_else(|| py.None().into_bound(py)))
            }
            Content::Read(read) => read.map(|read| read.into_bound(py)),
            Content::Taken => Ok(py.None().into_bound(py)),
        }
    }
}

/// Messages that are read one after another.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Arc<Value>>,
    begun: Option<Box<Suspended>>,
}

impl Queue {
    pub(crate) fn new(waiting: impl IntoIterator<Item = Arc<Value>>) -> Self {
        Self { waiting: waiting.into_iter().collect(), begun: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.begun.is_none() && self.waiting.is_empty()
    }

    /// Frees the objects that were read of the first message, as far as the budget lasts; returns whether none is
    /// left. The other messages have no objects.
    pub(crate) fn discard(&mut self, py: Python<'_>, budget: &mut Budget) -> bool {
        let is_done = self.begun.as_mut().is_none_or(|begun| begun.discard(py, budget));
        if is_done {
            self.begun = None;
        }
        is_done
    }

    /// The next value; `None` if the budget is spent before its end, or if the queue is empty.
    pub(crate) fn next<'py>(
        &mut self,
        owners: &Owners<'py>,
        budget: &mut Budget,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if budget.is_spent() {
            return Ok(None);
        }
        let mut begun = match self.begun.take() {
            Some(begun) => begun,
            None => match self.waiting.pop_front() {
                None => return Ok(None),
                Some(small) if small.held_bytes() <= LARGE_BYTES => {
                    let bytes = small.held_bytes();
                    budget.spend(u32::try_from(bytes / BYTES_PER_STEP).unwrap_or(u32::MAX));
                    return value::read(owners.py(), &small, owners).map(Some);
                }
                Some(large) => Box::new(Suspended::new(large)),
            },
        };
        let read = begun.go_on(owners, budget)?;
        if read.is_none() {
            self.begun = Some(begun);
        }
        Ok(read)
    }
}
