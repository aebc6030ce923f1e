//! The buffers of one message, as `bytes` and memoryviews.
//!
//! In: buffers and views, which name the blobs of the message. Out: for each the part of a blob that it shows, and its
//! value once the bytes of that part have been read. All memoryviews and whole buffers of a blob share one `bytes`.

use isolane::value::{Event, Malformed, ViewKind};
use pyo3::{prelude::*, types::PySlice};

use super::scalars::malformed;
use crate::value::classes::MEMORYVIEW;

/// The part of a buffer that a value shows. `format` is that of its memoryview, and `None` for `bytes`.
#[derive(Clone, Copy)]
pub(in crate::value) struct Part {
    blob: u32,
    start: usize,
    end: usize,
    format: Option<&'static str>,
}

/// The blobs of the message that a decoder reads.
pub(super) struct Buffers<'a> {
    blobs: &'a [Vec<u8>],
    /// The `bytes` of whole buffers. All values with the same buffer share them, because they are immutable.
    shared: Vec<Option<Py<PyAny>>>,
}

impl<'a> Buffers<'a> {
    pub(super) fn new(blobs: &'a [Vec<u8>]) -> Self {
        Self { blobs, shared: Vec::new() }
    }

    /// The part of a buffer that a buffer or a view shows.
    pub(super) fn part(&self, event: Event<'_>) -> PyResult<Part> {
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
    pub(super) fn shared<'py>(&self, py: Python<'py>, part: Part) -> Option<Bound<'py, PyAny>> {
        let bytes = self.shared.get(part.blob as usize).and_then(Option::as_ref);
        bytes.filter(|_| self.is_of_whole(part)).map(|bytes| bytes.bind(py).clone())
    }

    /// The bytes to read for a part.
    pub(super) fn blob(&self, part: Part) -> PyResult<&'a [u8]> {
        let bytes = self.blobs.get(part.blob as usize).map(Vec::as_slice);
        let bytes = if self.is_of_whole(part) {
            bytes
        } else {
            bytes.and_then(|bytes| bytes.get(part.start..part.end))
        };
        bytes.ok_or_else(|| malformed(Malformed))
    }

    /// The value of a part, from the bytes that were read for it.
    pub(super) fn value<'py>(
        &mut self,
        bytes: Bound<'py, PyAny>,
        part: Part,
    ) -> PyResult<Bound<'py, PyAny>> {
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

/// The format of a memoryview for views of that kind; `None` for views that become `bytes`.
pub(in crate::value) fn format(kind: ViewKind) -> Option<&'static str> {
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
