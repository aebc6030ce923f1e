//! Long texts and buffers, which are read in pieces.
//!
//! In: their bytes. Out: a `str` or a `bytes`, the same as if it had been made at once. No other code sees it before it
//! is complete.
#![expect(unsafe_code, reason = "there is no safe way to make a text or bytes in pieces")]

use std::os::raw::c_char;

use isolane::value::{Malformed, Unchecked};
use pyo3::{ffi, prelude::*, types::PyString};

use super::{
    budget::Budget,
    decode::{Part, malformed},
    utf16::utf16,
};

/// Bytes above which a text or a buffer is read in pieces.
pub(super) const LONG: usize = 6 << 20;

/// Bytes of a piece. Even, so that no code unit is cut.
const PIECE: usize = 256 << 10;

/// Bytes that are scanned in the time of a piece.
const SCAN: usize = 8 * PIECE;

/// Something that is read in pieces.
pub(super) enum Long<'a> {
    Text(LongText<'a>),
    Bytes(LongBytes<'a>),
}

impl Long<'_> {
    /// Reads pieces until the budget is spent; returns the value when it is complete.
    pub(super) fn go_on<'py>(
        &mut self,
        py: Python<'py>,
        budget: &mut Budget,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::Text(text) => text.go_on(py, budget),
            Self::Bytes(bytes) => Ok(bytes.go_on(py, budget)),
        }
    }
}

/// The width of a text's characters in Python, which is that of the widest one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    Ascii,
    Latin1,
    Two,
    Four,
}

impl Width {
    /// A character of that width.
    fn example(self) -> Option<&'static str> {
        match self {
            Self::Ascii => None,
            Self::Latin1 => Some("\u{FF}"),
            Self::Two => Some("\u{FFFD}"),
            Self::Four => Some("\u{1F600}"),
        }
    }
}

/// A text that is made by appending.
///
/// Python copies a text when a wider character is appended. So the text begins with a character of the final width.
/// In the end the text's own first character replaces it.
pub(super) struct LongText<'a> {
    bytes: Unchecked<'a>,
    scanned: usize,
    width: Width,
    read: usize,
    /// The text so far.
    text: Option<Py<PyAny>>,
    /// Its own first character, if the text begins with another one.
    first: Option<u32>,
}

impl<'a> LongText<'a> {
    pub(super) fn new(bytes: Unchecked<'a>) -> Self {
        Self { bytes, scanned: 0, width: Width::Ascii, read: 0, text: None, first: None }
    }

    fn len(&self) -> usize {
        let (Unchecked::Utf8(bytes) | Unchecked::Utf16(bytes)) = self.bytes;
        bytes.len()
    }

    fn go_on<'py>(
        &mut self,
        py: Python<'py>,
        budget: &mut Budget,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        while !budget.is_spent() {
            if self.scanned < self.len() {
                self.scan();
                budget.spend_bytes(PIECE);
            } else if self.text.is_none() {
                self.begin(py)?;
            } else if self.read < self.len() {
                let piece = self.piece(py, PIECE)?;
                self.append(&piece)?;
                budget.spend_bytes(2 * PIECE);
            } else {
                return self.finish(py).map(Some);
            }
        }
        Ok(None)
    }

    /// Scans the width of the next characters.
    fn scan(&mut self) {
        let (Unchecked::Utf8(bytes) | Unchecked::Utf16(bytes)) = self.bytes;
        let end = (self.scanned + SCAN).min(bytes.len());
        let width = match self.bytes {
            Unchecked::Utf8(_) => utf8_width(&bytes[self.scanned..end]),
            // A surrogate pair may be cut here, so the scan begins with the unit before.
            Unchecked::Utf16(_) => utf16_width(&bytes[self.scanned.saturating_sub(2)..end]),
        };
        self.width = self.width.max(width);
        self.scanned = end;
    }

    /// Begins the text with its first character, or with a character of the final width.
    fn begin(&mut self, py: Python<'_>) -> PyResult<()> {
        let first = self.piece(py, 1)?;
        let text = match self.width.example() {
            None => first,
            Some(example) => {
                let class = py.import("builtins")?;
                self.first = Some(class.call_method1("ord", (first,))?.extract()?);
                PyString::new(py, example)
            }
        };
        self.text = Some(text.into_any().unbind());
        Ok(())
    }

    /// The next characters: that many bytes, and the rest of the last character.
    fn piece<'py>(&mut self, py: Python<'py>, bytes: usize) -> PyResult<Bound<'py, PyString>> {
        match self.bytes {
            Unchecked::Utf8(text) => {
                let mut end = (self.read + bytes).min(text.len());
                while text.get(end).is_some_and(|byte| byte & 0xC0 == 0x80) {
                    end += 1;
                }
                let piece = std::str::from_utf8(&text[self.read..end]);
                self.read = end;
                Ok(PyString::new(py, piece.map_err(|_| malformed(Malformed))?))
            }
            Unchecked::Utf16(units) => {
                let mut end = (self.read + bytes.next_multiple_of(2)).min(units.len());
                if is_pair(&units[end - 2..]) {
                    end += 2;
                }
                let piece = utf16(py, &units[self.read..end]);
                self.read = end;
                piece
            }
        }
    }

    fn append(&mut self, piece: &Bound<'_, PyString>) -> PyResult<()> {
        let py = piece.py();
        let mut text = self.text.take().map_or(std::ptr::null_mut(), Py::into_ptr);
        // SAFETY: `text` is null or an owned reference to a `str`. The call takes it and replaces it by an owned
        // reference to the longer text, or by null if it fails. It fails for null.
        unsafe { ffi::PyUnicode_Append(&raw mut text, piece.as_ptr()) };
        // SAFETY: an owned reference, or null with an exception.
        let text = unsafe { Bound::from_owned_ptr_or_err(py, text) }?;
        self.text = Some(text.unbind());
        Ok(())
    }

    /// The whole text, with its own first character.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = self.text.take().ok_or_else(|| malformed(Malformed))?.into_bound(py);
        if let Some(first) = self.first {
            // SAFETY: a `str` of at least one character, which only this holds. It was made by appending, and its
            // characters are at least as wide as this one. The call fails for a text that cannot be written to.
            let written = unsafe { ffi::PyUnicode_WriteChar(text.as_ptr(), 0, first) };
            if written != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        Ok(text)
    }
}

fn utf8_width(bytes: &[u8]) -> Width {
    match bytes.iter().copied().max().unwrap_or_default() {
        0..0x80 => Width::Ascii,
        0x80..0xC4 => Width::Latin1,
        0xC4..0xF0 => Width::Two,
        _ => Width::Four,
    }
}

fn utf16_width(bytes: &[u8]) -> Width {
    let units = || bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    match units().max().unwrap_or_default() {
        0..0x80 => Width::Ascii,
        0x80..0x100 => Width::Latin1,
        0x100..0xD800 => Width::Two,
        _ => {
            let mut before = 0;
            let has_pair = units().any(|unit| {
                let is_second = matches!((before, unit), (0xD800..0xDC00, 0xDC00..0xE000));
                before = unit;
                is_second
            });
            if has_pair { Width::Four } else { Width::Two }
        }
    }
}

/// Whether the first two units are one character.
fn is_pair(units: &[u8]) -> bool {
    matches!(units, [_, 0xD8..0xDC, _, 0xDC..0xE0, ..])
}

/// Bytes, filled in pieces.
pub(super) struct LongBytes<'a> {
    from: &'a [u8],
    filled: usize,
    bytes: Py<PyAny>,
    /// The part of a buffer that they are for.
    pub(super) part: Part,
}

impl<'a> LongBytes<'a> {
    pub(super) fn new(py: Python<'_>, from: &'a [u8], part: Part) -> PyResult<Self> {
        let length = isize::try_from(from.len()).map_err(|_| malformed(Malformed))?;
        // SAFETY: without bytes to copy, the call returns uninitialized `bytes`, or fails with an exception.
        let bytes = unsafe {
            Bound::from_owned_ptr_or_err(
                py,
                ffi::PyBytes_FromStringAndSize(std::ptr::null::<c_char>(), length),
            )
        }?;
        Ok(Self { from, filled: 0, bytes: bytes.unbind(), part })
    }

    fn go_on<'py>(&mut self, py: Python<'py>, budget: &mut Budget) -> Option<Bound<'py, PyAny>> {
        while self.filled < self.from.len() {
            if budget.is_spent() {
                return None;
            }
            let end = (self.filled + PIECE).min(self.from.len());
            let piece = &self.from[self.filled..end];
            // SAFETY: `bytes` has as many bytes as `from`, and no other code has a reference, so nothing else
            // reads or writes it. `PyBytes_AsString` does not fail for a `bytes`.
            unsafe {
                let start = ffi::PyBytes_AsString(self.bytes.as_ptr()).cast::<u8>();
                let place = start.add(self.filled);
                std::ptr::copy_nonoverlapping(piece.as_ptr(), place, piece.len());
            }
            self.filled = end;
            budget.spend_bytes(PIECE);
        }
        Some(self.bytes.bind(py).clone())
    }
}
