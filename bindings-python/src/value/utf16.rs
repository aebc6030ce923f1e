//! Text with lone surrogates as a Python `str`.
//!
//! In: UTF-16 code units, little-endian. Out: a `str` in which each pair is one character and a lone surrogate stays
//! one. Python's own codec calls an error handler for each lone surrogate, which takes some 150 ns.
#![expect(unsafe_code, reason = "there is no safe way to make a text with lone surrogates")]

use pyo3::{ffi, prelude::*, types::PyString};

/// The `str` of these code units.
pub(super) fn utf16<'py>(py: Python<'py>, units: &[u8]) -> PyResult<Bound<'py, PyString>> {
    let units = units.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    // Python's `wchar_t` is a code unit on Windows and a code point elsewhere.
    #[cfg(windows)]
    let wide: Vec<u16> = units.collect();
    #[cfg(not(windows))]
    let wide: Vec<u32> = code_points(units);
    let length = isize::try_from(wide.len())?;
    // SAFETY: `wide` has `length` items of the size of `wchar_t`, and the call only reads them. It returns an owned
    // reference to a `str`, or null with an exception.
    unsafe {
        let text = ffi::PyUnicode_FromWideChar(wide.as_ptr().cast(), length);
        Ok(Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked())
    }
}

#[cfg(not(windows))]
fn code_points(units: impl ExactSizeIterator<Item = u16>) -> Vec<u32> {
    let mut points = Vec::with_capacity(units.len());
    points.extend(char::decode_utf16(units).map(|decoded| match decoded {
        Ok(character) => u32::from(character),
        Err(lone) => u32::from(lone.unpaired_surrogate()),
    }));
    points
}
