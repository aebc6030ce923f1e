//! A message of the core, read as a Python object.
//!
//! In: nodes, the blobs beside them, and who owns the numbers in them. Out: a fresh value that
//! shares nothing with the sandbox. What Python cannot hold was refused before (`limits.rs`), while
//! the sandbox could still be told. Nothing recurses.

use isolane::{
    Value,
    value::{ErrorClass, Event, Malformed, Reader, Str, ViewKind},
};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PySet, PyString},
};

use super::classes::{DATETIME, MEMORYVIEW, SANDBOX_ERROR};

/// Makes functions and promises of the numbers under which they crossed.
pub(crate) struct Owners<'py>(Bound<'py, PyAny>);

impl<'py> Owners<'py> {
    pub(crate) fn new(owner: &Bound<'py, PyAny>) -> Self {
        Self(owner.clone())
    }
}

/// A container being read, and what is left of it.
enum Frame<'py> {
    Object { dict: Bound<'py, PyDict>, key: u32 },
    Array { list: Bound<'py, PyList>, left: u32 },
    Sparse { list: Bound<'py, PyList>, index: u32 },
    Map { dict: Bound<'py, PyDict>, key: Option<Bound<'py, PyAny>>, left: u64 },
    Set { set: Bound<'py, PySet>, left: u32 },
}

/// Reads a whole message.
pub(crate) fn read<'py>(
    py: Python<'py>,
    message: &Value,
    owners: &Owners<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut decoder = Decoder {
        py,
        owners,
        blobs: message.blobs(),
        reader: message.reader(),
        objects: Vec::new(),
        keys: Vec::new(),
        frames: Vec::new(),
    };
    decoder.whole()
}

struct Decoder<'a, 'py> {
    py: Python<'py>,
    owners: &'a Owners<'py>,
    blobs: &'a [Vec<u8>],
    reader: Reader<'a>,
    objects: Vec<Bound<'py, PyAny>>,
    keys: Vec<Bound<'py, PyString>>,
    frames: Vec<Frame<'py>>,
}

impl<'py> Decoder<'_, 'py> {
    fn whole(&mut self) -> PyResult<Bound<'py, PyAny>> {
        let (root, opened) = self.node()?;
        self.frames.extend(opened);
        loop {
            while let Some(frame) = self.frames.last_mut() {
                if is_done(&mut self.reader, &mut self.keys, self.py, frame)? {
                    self.frames.pop();
                } else {
                    break;
                }
            }
            if self.frames.is_empty() {
                return Ok(root);
            }
            let (value, opened) = self.node()?;
            if let Some(frame) = self.frames.last_mut() {
                put(frame, &self.keys, value)?;
            }
            self.frames.extend(opened);
        }
    }

    /// The next value, and the frame of what is in it.
    fn node(&mut self) -> PyResult<(Bound<'py, PyAny>, Option<Frame<'py>>)> {
        let py = self.py;
        let event = self.reader.event().map_err(malformed)?;
        let (value, frame) = match event {
            Event::Object => {
                let dict = PyDict::new(py);
                (dict.clone().into_any(), Frame::Object { dict, key: 0 })
            }
            Event::Array(left) => {
                let list = PyList::empty(py);
                (list.clone().into_any(), Frame::Array { list, left })
            }
            Event::SparseArray(length) => {
                let list = PyList::new(py, (0..length).map(|_| py.None()))?;
                (list.clone().into_any(), Frame::Sparse { list, index: 0 })
            }
            Event::Map(entries) => {
                let dict = PyDict::new(py);
                let left = 2 * u64::from(entries);
                (dict.clone().into_any(), Frame::Map { dict, key: None, left })
            }
            Event::Set(left) => {
                let set = PySet::empty(py)?;
                (set.clone().into_any(), Frame::Set { set, left })
            }
            leaf => {
                let value = self.leaf(leaf)?;
                if leaf.is_object() {
                    self.objects.push(value.clone());
                }
                return Ok((value, None));
            }
        };
        self.objects.push(value.clone());
        Ok((value, Some(frame)))
    }

    fn leaf(&mut self, event: Event<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match event {
            Event::Undefined | Event::Null | Event::Hole => py.None().into_bound(py),
            Event::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
            Event::Int(value) => value.into_pyobject(py)?.into_any(),
            Event::Double(value) => number(py, value)?,
            Event::BigInt { negative, magnitude } => bigint(py, negative, magnitude)?,
            Event::String(text) => string(py, text)?.into_any(),
            Event::Ref(index) => {
                self.objects.get(index as usize).cloned().ok_or_else(|| malformed(Malformed))?
            }
            Event::Date(epoch_ms) => datetime(py, epoch_ms)?,
            Event::Error(class) => self.error(class)?,
            Event::Buffer(blob) => PyBytes::new(py, self.blob(blob)?).into_any(),
            Event::View { kind, blob, byte_offset, length } => {
                self.view(kind, blob, byte_offset, length)?
            }
            Event::HostFunction(number) => {
                self.reader.text().map_err(malformed)?;
                self.owners.0.call_method1("host_function", (number,))?
            }
            Event::SandboxFunction(number) => {
                let name = string(py, self.reader.text().map_err(malformed)?)?;
                self.owners.0.call_method1("sandbox_function", (number, name))?
            }
            Event::HostPromise(number) => self.owners.0.call_method1("own_promise", (number,))?,
            Event::SandboxPromise(number) => {
                self.owners.0.call_method1("sandbox_promise", (number,))?
            }
            // Patterns of the two languages differ: none crosses.
            Event::RegExp
            | Event::Object
            | Event::Array(_)
            | Event::SparseArray(_)
            | Event::Map(_)
            | Event::Set(_) => return Err(malformed(Malformed)),
        })
    }

    fn error(&mut self, class: ErrorClass) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let name = string(py, self.reader.text().map_err(malformed)?)?;
        let message = string(py, self.reader.text().map_err(malformed)?)?;
        let stack = self.reader.event().map_err(malformed)?;
        let stack = self.leaf(stack)?;
        let code = self.reader.event().map_err(malformed)?;
        let code = self.leaf(code)?;
        SANDBOX_ERROR.get(py)?.call1((name, message, stack, code, class as u8))
    }

    fn view(
        &self,
        kind: ViewKind,
        blob: u32,
        byte_offset: u64,
        length: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let start = usize::try_from(byte_offset).map_err(|_| malformed(Malformed))?;
        let bytes = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_mul(kind.element_bytes()))
            .and_then(|length| self.blob(blob).ok()?.get(start..start.checked_add(length)?))
            .ok_or_else(|| malformed(Malformed))?;
        let bytes = PyBytes::new(py, bytes).into_any();
        match format(kind) {
            None => Ok(bytes),
            Some(format) => MEMORYVIEW.get(py)?.call1((bytes,))?.call_method1("cast", (format,)),
        }
    }

    fn blob(&self, number: u32) -> PyResult<&[u8]> {
        self.blobs.get(number as usize).map(Vec::as_slice).ok_or_else(|| malformed(Malformed))
    }
}

/// The format of a memoryview for views of that kind; none for those that are plain bytes.
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

/// Whether nothing follows in this container; if something does, its key is read.
fn is_done<'py>(
    reader: &mut Reader<'_>,
    keys: &mut Vec<Bound<'py, PyString>>,
    py: Python<'py>,
    frame: &mut Frame<'py>,
) -> PyResult<bool> {
    Ok(match frame {
        Frame::Object { key, .. } => match reader.key().map_err(malformed)? {
            None => true,
            Some(next) => {
                if next.number as usize == keys.len() {
                    keys.push(string(py, next.text)?);
                }
                *key = next.number;
                false
            }
        },
        Frame::Sparse { index, .. } => match reader.sparse_index().map_err(malformed)? {
            None => true,
            Some(next) => {
                *index = next;
                false
            }
        },
        Frame::Array { left, .. } | Frame::Set { left, .. } => {
            let done = *left == 0;
            *left = left.saturating_sub(1);
            done
        }
        Frame::Map { left, .. } => {
            let done = *left == 0;
            *left = left.saturating_sub(1);
            done
        }
    })
}

fn put<'py>(
    frame: &mut Frame<'py>,
    keys: &[Bound<'py, PyString>],
    value: Bound<'py, PyAny>,
) -> PyResult<()> {
    match frame {
        Frame::Object { dict, key } => match keys.get(*key as usize) {
            Some(key) => dict.set_item(key, value),
            None => Err(malformed(Malformed)),
        },
        Frame::Array { list, .. } => list.append(value),
        Frame::Sparse { list, index } => list.set_item(*index as usize, value),
        Frame::Map { dict, key, .. } => match key.take() {
            Some(key) => dict.set_item(key, value),
            None => {
                *key = Some(value);
                Ok(())
            }
        },
        Frame::Set { set, .. } => set.add(value),
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
    // Whole milliseconds, so that no rounding of seconds gets in.
    #[expect(clippy::cast_possible_truncation, reason = "a date's milliseconds are whole and few")]
    let since = module.getattr("timedelta")?.call1((0, 0, 0, epoch_ms as i64))?;
    epoch.add(since)
}

fn malformed(malformed: Malformed) -> PyErr {
    PyValueError::new_err(malformed.to_string())
}
