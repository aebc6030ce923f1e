//! The decoder: reads a message of the core as a Python object.
//!
//! In: nodes, the blobs beside them, and the owner of the numbers in them. Out: a fresh value that shares nothing with
//! the sandbox. `limits.rs` has refused the values that Python cannot represent, at the crossing. Nothing recurses, and
//! reading may pause after any node.
//!
//! `frames` fills containers. `composite` makes values of several nodes, `buffers` those of blobs, and `scalars` makes
//! all others.

mod buffers;
mod composite;
mod frames;
mod scalars;

use isolane::{
    Value,
    value::{Event, Malformed, Reader, Str},
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyList, PySet, PyString},
};

use self::{
    buffers::Buffers,
    composite::{composite, composite_of},
    frames::{AfterHoles, Frame, Next, empty, next, put},
    scalars::{bigint, datetime, number, string},
};
pub(super) use self::{
    buffers::{Part, format},
    scalars::malformed,
};
use super::{
    budget::Budget,
    long::{LONG, Long, LongBytes, LongText},
};

/// Turns numbers back into the functions and promises that crossed under them.
pub(crate) struct Owners<'py>(Bound<'py, PyAny>);

impl<'py> Owners<'py> {
    pub(crate) fn new(owner: &Bound<'py, PyAny>) -> Self {
        Self(owner.clone())
    }

    pub(crate) fn py(&self) -> Python<'py> {
        self.0.py()
    }
}

/// References to objects that are released in one step.
const RELEASED_PER_STEP: usize = 8;

/// The steps for a node that calls Python code.
const STEPS_PER_CALL: u32 = 16;

/// Reads a whole message.
pub(crate) fn read<'py>(
    py: Python<'py>,
    message: &Value,
    owners: &Owners<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let read = Decoder::new(message).go_on(owners, &mut Budget::endless())?;
    Ok(read.unwrap_or_else(|| py.None().into_bound(py)))
}

/// The reading of one message.
pub(super) struct Decoder<'a> {
    buffers: Buffers<'a>,
    reader: Reader<'a>,
    /// Whether the message may contain a text that takes longer than a step.
    is_long: bool,
    objects: Vec<Py<PyAny>>,
    keys: Vec<Py<PyString>>,
    frames: Vec<Frame>,
    long: Option<Long<'a>>,
    root: Option<Py<PyAny>>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(message: &'a Value) -> Self {
        Self {
            buffers: Buffers::new(message.blobs()),
            reader: message.reader(),
            is_long: message.nodes().len() > LONG,
            objects: Vec::new(),
            keys: Vec::new(),
            frames: Vec::new(),
            long: None,
            root: None,
        }
    }

    /// Reads until the budget is spent; returns the value when it is complete.
    pub(super) fn go_on<'py>(
        &mut self,
        owners: &Owners<'py>,
        budget: &mut Budget,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = owners.py();
        if self.long.is_some() {
            self.go_on_long(py, budget)?;
        } else if self.root.is_none() && self.frames.is_empty() {
            self.node(owners, budget)?;
        }
        while let Some(frame) = self.frames.last_mut() {
            if budget.is_spent() {
                return Ok(None);
            }
            budget.spend(1);
            match next(&mut self.reader, &mut self.keys, py, frame)? {
                Next::Member => self.node(owners, budget)?,
                Next::Holes => {}
                Next::Done => {
                    let frame = self.frames.pop();
                    if let Some(Frame::Composite { of, parts }) = frame {
                        let value = composite(of, parts, owners)?;
                        self.objects.push(value.clone().unbind());
                        self.place(py, value)?;
                        budget.spend(STEPS_PER_CALL);
                    }
                }
            }
        }
        if self.long.is_some() || !self.release(budget) {
            return Ok(None);
        }
        Ok(self.root.take().map(|root| root.into_bound(py)))
    }

    /// Releases the list of all objects, which the value itself holds; returns whether none is left.
    fn release(&mut self, budget: &mut Budget) -> bool {
        while !self.objects.is_empty() && !budget.is_spent() {
            self.objects.truncate(self.objects.len().saturating_sub(RELEASED_PER_STEP));
            budget.spend(1);
        }
        self.objects.is_empty()
    }

    /// Frees the objects that were read so far, which no other code has seen; returns whether none is left. Freeing
    /// a large value at once may take longer than reading it.
    pub(super) fn discard(&mut self, py: Python<'_>, budget: &mut Budget) -> bool {
        self.long = None;
        self.frames.clear();
        // A nested object was made after its container, so it is emptied before it.
        while let Some(last) = self.objects.last() {
            if budget.is_spent() {
                return false;
            }
            budget.spend(1);
            if empty(last.bind(py)) {
                self.objects.pop();
            }
        }
        self.root = None;
        true
    }

    /// Continues with the value that takes more than one step.
    fn go_on_long(&mut self, py: Python<'_>, budget: &mut Budget) -> PyResult<()> {
        let Some(long) = &mut self.long else { return Ok(()) };
        let Some(value) = long.go_on(py, budget)? else { return Ok(()) };
        let value = match self.long.take() {
            Some(Long::Bytes(bytes)) => {
                let value = self.buffers.value(value, bytes.part)?;
                self.objects.push(value.clone().unbind());
                value
            }
            _ => value,
        };
        self.place(py, value)
    }

    /// Puts a value into the innermost container, or makes it the root.
    fn place(&mut self, py: Python<'_>, value: Bound<'_, PyAny>) -> PyResult<()> {
        match self.frames.last_mut() {
            Some(frame) => put(py, frame, &self.keys, value),
            None => {
                self.root = Some(value.unbind());
                Ok(())
            }
        }
    }

    /// Reads the next value without its nested values.
    fn node(&mut self, owners: &Owners<'_>, budget: &mut Budget) -> PyResult<()> {
        let py = owners.py();
        if self.is_long
            && let Some(text) = self.reader.long_text(LONG).map_err(malformed)?
        {
            self.long = Some(Long::Text(LongText::new(text)));
            return self.go_on_long(py, budget);
        }
        let event = self.reader.event().map_err(malformed)?;
        let (value, frame) = match event {
            Event::Object => {
                let dict = PyDict::new(py);
                (dict.clone().into_any(), Frame::Object { dict: dict.unbind(), key: 0 })
            }
            Event::Array(left) => {
                let list = PyList::empty(py);
                (list.clone().into_any(), Frame::Array { list: list.unbind(), left })
            }
            Event::SparseArray(length) => {
                let list = PyList::empty(py);
                let then = AfterHoles::Index;
                let value = list.clone().into_any();
                (value, Frame::Sparse { list: list.unbind(), length, index: 0, then })
            }
            Event::Map(entries) => {
                let dict = PyDict::new(py);
                let left = 2 * u64::from(entries);
                (dict.clone().into_any(), Frame::Map { dict: dict.unbind(), key: None, left })
            }
            Event::Set(left) => {
                let set = PySet::empty(py)?;
                (set.clone().into_any(), Frame::Set { set: set.unbind(), left })
            }
            leaf => return self.leaf(leaf, owners, budget),
        };
        self.objects.push(value.clone().unbind());
        self.place(py, value)?;
        self.frames.push(frame);
        Ok(())
    }

    /// Reads a value without nested values and places it.
    fn leaf(&mut self, event: Event<'a>, owners: &Owners<'_>, budget: &mut Budget) -> PyResult<()> {
        let py = owners.py();
        if let Event::Buffer(_) | Event::View { .. } = event {
            let part = self.buffers.part(event)?;
            let value = match self.buffers.shared(py, part) {
                Some(bytes) => self.buffers.value(bytes, part)?,
                None => {
                    let bytes = self.buffers.blob(part)?;
                    if bytes.len() > LONG {
                        self.long = Some(Long::Bytes(LongBytes::new(py, bytes, part)?));
                        return self.go_on_long(py, budget);
                    }
                    budget.spend_bytes(bytes.len());
                    self.buffers.value(PyBytes::new(py, bytes).into_any(), part)?
                }
            };
            self.objects.push(value.clone().unbind());
            return self.place(py, value);
        }
        if self.is_long
            && let Some(of) = composite_of(event)
        {
            self.frames.push(Frame::Composite { of, parts: Vec::new() });
            return Ok(());
        }
        let value = self.short(event, owners, budget)?;
        if event.is_object() {
            self.objects.push(value.clone().unbind());
        }
        self.place(py, value)
    }

    /// Reads a value that takes one step.
    fn short<'py>(
        &mut self,
        event: Event<'a>,
        owners: &Owners<'py>,
        budget: &mut Budget,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = owners.py();
        Ok(match event {
            Event::Undefined | Event::Null | Event::Hole => py.None().into_bound(py),
            Event::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
            Event::Int(value) => value.into_pyobject(py)?.into_any(),
            Event::Double(value) => number(py, value)?,
            Event::BigInt { negative, magnitude } => {
                budget.spend_bytes(magnitude.len());
                bigint(py, negative, magnitude)?
            }
            Event::String(text) => {
                budget.spend_bytes(match text {
                    Str::Utf8(text) => text.len(),
                    Str::Utf16(units) => units.len(),
                });
                string(py, text)?.into_any()
            }
            Event::Ref(index) => self
                .objects
                .get(index as usize)
                .map(|object| object.bind(py).clone())
                .ok_or_else(|| malformed(Malformed))?,
            Event::Date(epoch_ms) => {
                budget.spend(STEPS_PER_CALL);
                datetime(py, epoch_ms)?
            }
            Event::Error(_) | Event::HostFunction(_) | Event::SandboxFunction(_) => {
                budget.spend(STEPS_PER_CALL);
                let of = composite_of(event).ok_or_else(|| malformed(Malformed))?;
                let parts = (0..of.parts()).map(|_| self.part(py));
                composite(of, parts.collect::<PyResult<Vec<_>>>()?, owners)?
            }
            Event::HostPromise(number) => owners.0.call_method1("own_promise", (number,))?,
            Event::SandboxPromise(number) => {
                budget.spend(STEPS_PER_CALL);
                owners.0.call_method1("sandbox_promise", (number,))?
            }
            // Patterns of the two languages differ, so no RegExp crosses. The callers read the others.
            Event::RegExp
            | Event::Buffer(_)
            | Event::View { .. }
            | Event::Object
            | Event::Array(_)
            | Event::SparseArray(_)
            | Event::Map(_)
            | Event::Set(_) => return Err(malformed(Malformed)),
        })
    }

    /// Reads a part of a value of several nodes: a text, a number or nothing.
    fn part(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let part = match self.reader.event().map_err(malformed)? {
            Event::Undefined => py.None().into_bound(py),
            Event::String(text) => string(py, text)?.into_any(),
            Event::Int(value) => value.into_pyobject(py)?.into_any(),
            Event::Double(value) => number(py, value)?,
            _ => return Err(malformed(Malformed)),
        };
        Ok(part.unbind())
    }
}
