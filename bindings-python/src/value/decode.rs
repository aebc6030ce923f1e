//! The decoder: reads a message of the core as a Python object.
//!
//! In: nodes, the blobs beside them, and the owner of the numbers in them. Out: a fresh value that shares nothing with
//! the sandbox. `limits.rs` has refused the values that Python cannot represent, at the crossing. Nothing recurses, and
//! reading may pause after any node.

use isolane::{
    Value,
    value::{ErrorClass, Event, Malformed, Reader, Str, ViewKind},
};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PySet, PySlice, PyString},
};

use super::{
    budget::Budget,
    classes::{DATETIME, MEMORYVIEW, SANDBOX_ERROR},
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

/// The part of a buffer that a value shows. `format` is that of its memoryview, and `None` for `bytes`.
#[derive(Clone, Copy)]
pub(super) struct Part {
    blob: u32,
    start: usize,
    end: usize,
    format: Option<&'static str>,
}

/// A container that is being read.
enum Frame {
    Object { dict: Py<PyDict>, key: u32 },
    Array { list: Py<PyList>, left: u32 },
    Sparse { list: Py<PyList>, length: u32, index: u32, then: AfterHoles },
    Map { dict: Py<PyDict>, key: Option<Py<PyAny>>, left: u64 },
    Set { set: Py<PySet>, left: u32 },
    Whole { of: Whole, parts: Vec<Py<PyAny>> },
}

/// The next item of a sparse array after its holes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterHoles {
    Index,
    Element,
    End,
}

/// A value that is made of several nodes when all of them have been read.
#[derive(Clone, Copy)]
enum Whole {
    Error(ErrorClass),
    HostFunction(u32),
    SandboxFunction(u32),
}

/// The next step in a frame.
enum Next {
    Member,
    /// Some holes were made; the frame continues.
    Holes,
    Done,
}

/// Holes that are made in one step.
const HOLES_PER_STEP: usize = 64;

/// References to objects that are released in one step.
const RELEASED_PER_STEP: usize = 8;

/// Elements of a list that are freed in one step.
const FREED_PER_STEP: usize = 16;

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
    blobs: &'a [Vec<u8>],
    /// The `bytes` of whole buffers. All values with the same buffer share them, because they are immutable.
    shared: Vec<Option<Py<PyAny>>>,
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
            blobs: message.blobs(),
            shared: Vec::new(),
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
                    if let Some(Frame::Whole { of, parts }) = frame {
                        let value = whole(of, parts, owners)?;
                        self.objects.push(value.clone().unbind());
                        self.place(py, value)?;
                        budget.spend(STEPS_PER_CALL);
                    }
                }
            }
        }
        if self.long.is_some() || !self.let_go(budget) {
            return Ok(None);
        }
        Ok(self.root.take().map(|root| root.into_bound(py)))
    }

    /// Releases the list of all objects, which the value itself holds; returns whether none is left.
    fn let_go(&mut self, budget: &mut Budget) -> bool {
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
                let value = self.used(value, bytes.part)?;
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
            let part = self.part_of_buffer(event)?;
            let value = match self.shared(py, part) {
                Some(bytes) => self.used(bytes, part)?,
                None => {
                    let bytes = self.blob(part)?;
                    if bytes.len() > LONG {
                        self.long = Some(Long::Bytes(LongBytes::new(py, bytes, part)?));
                        return self.go_on_long(py, budget);
                    }
                    budget.spend_bytes(bytes.len());
                    self.used(PyBytes::new(py, bytes).into_any(), part)?
                }
            };
            self.objects.push(value.clone().unbind());
            return self.place(py, value);
        }
        if self.is_long
            && let Some(of) = whole_of(event)
        {
            self.frames.push(Frame::Whole { of, parts: Vec::new() });
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
                let of = whole_of(event).ok_or_else(|| malformed(Malformed))?;
                let parts = (0..of.parts()).map(|_| self.part(py));
                whole(of, parts.collect::<PyResult<Vec<_>>>()?, owners)?
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

    /// The part of a buffer that a buffer or a view shows.
    fn part_of_buffer(&self, event: Event<'a>) -> PyResult<Part> {
        let bytes = |blob: u32| self.blobs.get(blob as usize).map(Vec::len);
        let part = match event {
            Event::Buffer(blob) => {
                bytes(blob).map(|end| Part { blob, start: 0, end, format: None })
            }
            Event::View { kind, blob, byte_offset, length } => (|| {
                let start = usize::try_from(byte_offset).ok()?;
                let length = usize::try_from(length).ok()?.checked_mul(kind.element_bytes())?;
                let end = start.checked_add(length).filter(|&end| Some(end) <= bytes(blob))?;
                Some(Part { blob, start, end, format: format(kind) })
            })(),
            _ => None,
        };
        part.ok_or_else(|| malformed(Malformed))
    }

    /// Whether a part is read as the whole buffer, even if it shows only some of it.
    fn is_of_whole(&self, part: Part) -> bool {
        let bytes = self.blobs.get(part.blob as usize).map_or(0, Vec::len);
        part.format.is_some() || (part.start, part.end) == (0, bytes)
    }

    /// The `bytes` of the whole buffer of a part, if they were read before.
    fn shared<'py>(&self, py: Python<'py>, part: Part) -> Option<Bound<'py, PyAny>> {
        let bytes = self.shared.get(part.blob as usize).and_then(Option::as_ref);
        bytes.filter(|_| self.is_of_whole(part)).map(|bytes| bytes.bind(py).clone())
    }

    /// The bytes to read for a part.
    fn blob(&self, part: Part) -> PyResult<&'a [u8]> {
        let bytes = self.blobs.get(part.blob as usize).map(Vec::as_slice);
        let bytes = if self.is_of_whole(part) {
            bytes
        } else {
            bytes.and_then(|bytes| bytes.get(part.start..part.end))
        };
        bytes.ok_or_else(|| malformed(Malformed))
    }

    /// The value of a part, from the bytes that were read for it.
    fn used<'py>(&mut self, bytes: Bound<'py, PyAny>, part: Part) -> PyResult<Bound<'py, PyAny>> {
        if self.is_of_whole(part) {
            let place = part.blob as usize;
            if self.shared.len() <= place {
                self.shared.resize_with(place + 1, || None);
            }
            self.shared[place] = Some(bytes.clone().unbind());
        }
        let Some(format) = part.format else { return Ok(bytes) };
        let py = bytes.py();
        let mut view = MEMORYVIEW.get(py)?.call1((bytes,))?;
        if part.end - part.start != self.blobs.get(part.blob as usize).map_or(0, Vec::len) {
            let (start, end) = (isize::try_from(part.start)?, isize::try_from(part.end)?);
            view = view.get_item(PySlice::new(py, start, end, 1))?;
        }
        view.call_method1("cast", (format,))
    }
}

impl Whole {
    /// The number of nodes of the value.
    fn parts(self) -> usize {
        match self {
            // Its name, message, stack and code.
            Self::Error(_) => 4,
            // Its name.
            Self::HostFunction(_) | Self::SandboxFunction(_) => 1,
        }
    }
}

fn whole_of(event: Event<'_>) -> Option<Whole> {
    Some(match event {
        Event::Error(class) => Whole::Error(class),
        Event::HostFunction(number) => Whole::HostFunction(number),
        Event::SandboxFunction(number) => Whole::SandboxFunction(number),
        _ => return None,
    })
}

fn whole<'py>(
    of: Whole,
    parts: Vec<Py<PyAny>>,
    owners: &Owners<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let owner = &owners.0;
    match (of, <[_; 4]>::try_from(parts)) {
        (Whole::Error(class), Ok([name, message, stack, code])) => {
            let arguments = (name, message, stack, code, class as u8);
            SANDBOX_ERROR.get(owner.py())?.call1(arguments)
        }
        (Whole::HostFunction(number), _) => owner.call_method1("host_function", (number,)),
        (Whole::SandboxFunction(number), Err(parts)) => match parts.into_iter().next() {
            Some(name) => owner.call_method1("sandbox_function", (number, name)),
            None => Err(malformed(Malformed)),
        },
        _ => Err(malformed(Malformed)),
    }
}

/// The format of a memoryview for views of that kind; `None` for views that become `bytes`.
pub(super) fn format(kind: ViewKind) -> Option<&'static str> {
    match kind {
        ViewKind::Uint8Array | ViewKind::Uint8ClampedArray | ViewKind::DataView => None,
        ViewKind::Int8Array => Some("b"),
        ViewKind::Int16Array => Some("h"),
        ViewKind::Uint16Array => Some("H"),
        ViewKind::Int32Array => Some("i"),
        ViewKind::Uint32Array => Some("I"),
        ViewKind::BigInt64Array => Some("q"),
        ViewKind::BigUint64Array => Some("Q"),
        ViewKind::Float16Array => Some("e"),
        ViewKind::Float32Array => Some("f"),
        ViewKind::Float64Array => Some("d"),
    }
}

/// Frees some members of a container; returns whether it is empty now.
fn empty(object: &Bound<'_, PyAny>) -> bool {
    if let Ok(list) = object.cast_exact::<PyList>() {
        let length = list.len();
        let kept = length.saturating_sub(FREED_PER_STEP);
        return list.del_slice(kept, length).is_err() || kept == 0;
    }
    if let Ok(dict) = object.cast_exact::<PyDict>() {
        dict.clear();
    } else if let Ok(set) = object.cast_exact::<PySet>() {
        set.clear();
    }
    true
}

/// The next step in a frame. If a member with a key follows, this reads its key.
fn next(
    reader: &mut Reader<'_>,
    keys: &mut Vec<Py<PyString>>,
    py: Python<'_>,
    frame: &mut Frame,
) -> PyResult<Next> {
    let more = match frame {
        Frame::Object { key, .. } => match reader.key().map_err(malformed)? {
            None => false,
            Some(next) => {
                if next.number as usize == keys.len() {
                    keys.push(string(py, next.text)?.unbind());
                }
                *key = next.number;
                true
            }
        },
        Frame::Sparse { list, length, index, then } => {
            return next_of_sparse(reader, list.bind(py), *length, index, then);
        }
        Frame::Array { left, .. } | Frame::Set { left, .. } => {
            let more = *left > 0;
            *left = left.saturating_sub(1);
            more
        }
        Frame::Map { left, .. } => {
            let more = *left > 0;
            *left = left.saturating_sub(1);
            more
        }
        Frame::Whole { of, parts } => parts.len() < of.parts(),
    };
    Ok(if more { Next::Member } else { Next::Done })
}

/// The next step in a sparse array. Holes take no bytes of the message, so they are made some at a time.
fn next_of_sparse(
    reader: &mut Reader<'_>,
    list: &Bound<'_, PyList>,
    length: u32,
    index: &mut u32,
    then: &mut AfterHoles,
) -> PyResult<Next> {
    let missing = (*index as usize).saturating_sub(list.len());
    if missing > 0 {
        for _ in 0..missing.min(HOLES_PER_STEP) {
            list.append(list.py().None())?;
        }
        return Ok(Next::Holes);
    }
    match then {
        AfterHoles::Index => {
            (*index, *then) = match reader.sparse_index().map_err(malformed)? {
                Some(index) if index >= length => return Err(malformed(Malformed)),
                Some(index) => (index, AfterHoles::Element),
                None => (length, AfterHoles::End),
            };
            Ok(Next::Holes)
        }
        AfterHoles::Element => {
            *then = AfterHoles::Index;
            Ok(Next::Member)
        }
        AfterHoles::End => Ok(Next::Done),
    }
}

fn put(
    py: Python<'_>,
    frame: &mut Frame,
    keys: &[Py<PyString>],
    value: Bound<'_, PyAny>,
) -> PyResult<()> {
    match frame {
        Frame::Object { dict, key } => match keys.get(*key as usize) {
            Some(key) => dict.bind(py).set_item(key.bind(py), value),
            None => Err(malformed(Malformed)),
        },
        Frame::Array { list, .. } => list.bind(py).append(value),
        Frame::Sparse { list, index, .. } => {
            let (list, index) = (list.bind(py), *index as usize);
            if index < list.len() { list.set_item(index, value) } else { list.append(value) }
        }
        Frame::Map { dict, key, .. } => match key.take() {
            Some(key) => dict.bind(py).set_item(key, value),
            None => {
                *key = Some(value.unbind());
                Ok(())
            }
        },
        Frame::Set { set, .. } => set.bind(py).add(value),
        Frame::Whole { parts, .. } => {
            parts.push(value.unbind());
            Ok(())
        }
    }
}

/// An `int` if it is a safe integer, else a `float`; `-0` is a `float`.
fn number(py: Python<'_>, value: f64) -> PyResult<Bound<'_, PyAny>> {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
    let is_int = value.fract() == 0.0
        && value.abs() <= MAX_SAFE_INTEGER
        && (value != 0.0 || value.is_sign_positive());
    if !is_int {
        return Ok(PyFloat::new(py, value).into_any());
    }
    #[expect(clippy::cast_possible_truncation, reason = "a safe integer")]
    let int = value as i64;
    Ok(int.into_pyobject(py)?.into_any())
}

fn bigint<'py>(py: Python<'py>, negative: bool, magnitude: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let class = py.get_type::<PyInt>();
    let value = class.call_method1("from_bytes", (PyBytes::new(py, magnitude), "little"))?;
    if negative { value.neg() } else { Ok(value) }
}

fn string<'py>(py: Python<'py>, text: Str<'_>) -> PyResult<Bound<'py, PyString>> {
    match text {
        Str::Utf8(text) => Ok(PyString::new(py, text)),
        Str::Utf16(units) => {
            let bytes = PyBytes::new(py, units);
            let text = bytes.call_method1("decode", ("utf-16-le", "surrogatepass"))?;
            Ok(text.cast_into()?)
        }
    }
}

fn datetime(py: Python<'_>, epoch_ms: f64) -> PyResult<Bound<'_, PyAny>> {
    let module = py.import("datetime")?;
    let class = DATETIME.get(py)?;
    let epoch =
        class.call_method1("fromtimestamp", (0, module.getattr("timezone")?.getattr("utc")?))?;
    // Whole milliseconds, so that no second is rounded.
    #[expect(clippy::cast_possible_truncation, reason = "a date's milliseconds are whole and few")]
    let since = module.getattr("timedelta")?.call1((0, 0, 0, epoch_ms as i64))?;
    epoch.add(since)
}

pub(super) fn malformed(malformed: Malformed) -> PyErr {
    PyValueError::new_err(malformed.to_string())
}
