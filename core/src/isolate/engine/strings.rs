//! Strings and property keys of the engine.
//!
//! In: text as UTF-8 or UTF-16, or a value of the engine. Out: a string or an [`Atom`], or the text behind one. The
//! engine keeps a string as Latin-1 or UTF-16, and makes the form that a caller asks for.

#![expect(unsafe_code, reason = "calls the engine's C functions")]

use super::{Cx, Local, Outcome, Raw, Thrown, size, sys};
use crate::isolate::memory::escape::has_left;

/// A property key of the engine that holds one reference.
#[derive(Debug)]
pub(in crate::isolate) struct Atom {
    pub(super) cx: Cx,
    pub(in crate::isolate) id: sys::JSAtom,
}

impl Drop for Atom {
    fn drop(&mut self) {
        if !has_left() {
            // SAFETY: this atom owns one reference.
            unsafe { sys::JS_FreeAtom(self.cx.0, self.id) }
        }
    }
}

impl Atom {
    /// As [`Local::image`].
    pub(in crate::isolate) fn image(&self) -> Self {
        Self { cx: self.cx, id: self.id }
    }
}

/// Text of the engine, in the form in which the engine offers it.
#[derive(Debug)]
pub(in crate::isolate) enum Text {
    Utf8(String),
    Utf16(Vec<u16>),
}

impl Text {
    pub(in crate::isolate) fn into_lossy(self) -> String {
        match self {
            Self::Utf8(text) => text,
            Self::Utf16(units) => String::from_utf16_lossy(&units),
        }
    }
}

/// Text of the engine, borrowed from it.
#[derive(Clone, Copy, Debug)]
pub(in crate::isolate) enum Seen<'t> {
    Utf8(&'t str),
    /// With a lone surrogate.
    Utf16(&'t [u16]),
}

impl Cx {
    pub(in crate::isolate) fn string(self, text: &str) -> Outcome<Local> {
        self.string_of_bytes(text.as_bytes())
    }

    /// A string of bytes that the engine reads as UTF-8.
    pub(in crate::isolate) fn string_of_bytes(self, text: &[u8]) -> Outcome<Local> {
        // SAFETY: pointer and length of a live slice.
        self.own(unsafe { sys::JS_NewStringLen(self.0, text.as_ptr().cast(), text.len() as _) })
    }

    /// The value that a text has in JSON; throws where it has none. Reads nothing that the sandbox could have changed.
    pub(in crate::isolate) fn parse_json(self, text: &str) -> Outcome<Local> {
        let ended = [text.as_bytes(), b"\0"].concat();
        let (start, bytes) = (ended.as_ptr().cast(), text.len() as _);
        // SAFETY: the text ends with a zero byte, as the engine asks for, and its length is that without it.
        self.own(unsafe { sys::JS_ParseJSON(self.0, start, bytes, c"<JSON>".as_ptr()) })
    }

    pub(in crate::isolate) fn string16(self, units: &[u16]) -> Outcome<Local> {
        // SAFETY: pointer and length of a live slice.
        self.own(unsafe { sys::JS_NewStringUTF16(self.0, units.as_ptr(), units.len() as _) })
    }

    pub(in crate::isolate) fn atom(self, text: &str) -> Outcome<Atom> {
        // SAFETY: pointer and length of a live string.
        let id = unsafe { sys::JS_NewAtomLen(self.0, text.as_ptr().cast(), text.len() as _) };
        if id == sys::JS_ATOM_NULL { Err(Thrown) } else { Ok(Atom { cx: self, id }) }
    }

    /// The property key that a string value is.
    pub(in crate::isolate) fn atom_of(self, value: Raw) -> Outcome<Atom> {
        // SAFETY: a live value.
        let id = unsafe { sys::JS_ValueToAtom(self.0, value) };
        if id == sys::JS_ATOM_NULL { Err(Thrown) } else { Ok(Atom { cx: self, id }) }
    }

    /// The property key that an array index is.
    pub(in crate::isolate) fn index_atom(self, index: u32) -> Outcome<Atom> {
        // SAFETY: a live context.
        let id = unsafe { sys::JS_NewAtomUInt32(self.0, index) };
        if id == sys::JS_ATOM_NULL { Err(Thrown) } else { Ok(Atom { cx: self, id }) }
    }

    pub(in crate::isolate) fn dup_atom(self, atom: sys::JSAtom) -> Atom {
        // SAFETY: a live atom.
        Atom { cx: self, id: unsafe { sys::JS_DupAtom(self.0, atom) } }
    }

    /// The array index that a property key is. The engine keeps indices below 2^31 in the key itself.
    pub(in crate::isolate) fn array_index(self, atom: sys::JSAtom) -> Option<u32> {
        const TAGGED: u32 = 1 << 31;
        const LONGEST: usize = "4294967294".len();
        if atom & TAGGED != 0 {
            return Some(atom & !TAGGED);
        }
        let text = self.atom_string(atom).ok()?;
        let index = self.with_bytes(text.raw, |text| {
            let text = str::from_utf8(text).ok().filter(|text| text.len() <= LONGEST)?;
            let index: u32 = text.parse().ok()?;
            ((TAGGED..u32::MAX).contains(&index) && index.to_string() == text).then_some(index)
        });
        index.ok().flatten()
    }

    /// The text of a property key, which the engine does not copy.
    pub(in crate::isolate) fn atom_string(self, atom: sys::JSAtom) -> Outcome<Local> {
        // SAFETY: a live atom.
        self.own(unsafe { sys::JS_AtomToString(self.0, atom) })
    }

    /// A copy of the text of a key. For short ones: nothing is charged for it.
    pub(in crate::isolate) fn atom_text(self, atom: sys::JSAtom) -> Outcome<Text> {
        self.text(self.atom_string(atom)?.raw)
    }

    /// A value as a string, which may run sandbox code.
    pub(in crate::isolate) fn to_string(self, value: Raw) -> Outcome<Local> {
        // SAFETY: a live value.
        self.own(unsafe { sys::JS_ToString(self.0, value) })
    }

    /// A copy of the text of a string value; anything else is converted, which may run sandbox code. For
    /// short ones: nothing is charged for it.
    pub(in crate::isolate) fn text(self, value: Raw) -> Outcome<Text> {
        self.with_text(value, |text| match text {
            Seen::Utf8(text) => Text::Utf8(text.to_owned()),
            Seen::Utf16(units) => Text::Utf16(units.to_vec()),
        })
    }

    /// Looks at a string, which stays in the engine.
    #[inline]
    pub(in crate::isolate) fn with_text<T>(
        self,
        value: Raw,
        look: impl FnOnce(Seen<'_>) -> T,
    ) -> Outcome<T> {
        let mut look = Some(look);
        let seen = self.with_bytes(value, |text| {
            let text = str::from_utf8(text).ok()?;
            look.take().map(|look| look(Seen::Utf8(text)))
        })?;
        match (seen, look) {
            (Some(seen), _) => Ok(seen),
            (None, Some(look)) => self.with_units(value, |units| look(Seen::Utf16(units))),
            (None, None) => Err(Thrown),
        }
    }

    /// Looks at a string's UTF-8; where it has lone surrogates, at bytes that are not UTF-8.
    #[inline]
    pub(in crate::isolate) fn with_bytes<T>(
        self,
        value: Raw,
        look: impl FnOnce(&[u8]) -> T,
    ) -> Outcome<T> {
        let mut length = 0;
        // SAFETY: a live value and a place for the length.
        let bytes = unsafe { sys::JS_ToCStringLen2(self.0, &raw mut length, value, false) };
        if bytes.is_null() {
            return Err(Thrown);
        }
        // SAFETY: the engine keeps that many bytes until they are freed below.
        let slice = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size(length)) };
        let seen = look(slice);
        // SAFETY: given by the call above, freed once.
        unsafe { sys::JS_FreeCString(self.0, bytes) };
        Ok(seen)
    }

    /// Looks at a string's UTF-16.
    pub(in crate::isolate) fn with_units<T>(
        self,
        value: Raw,
        look: impl FnOnce(&[u16]) -> T,
    ) -> Outcome<T> {
        let mut length = 0;
        // SAFETY: a live value and a place for the length.
        let units = unsafe { sys::JS_ToCStringLenUTF16(self.0, &raw mut length, value) };
        if units.is_null() {
            return Err(Thrown);
        }
        // SAFETY: the engine keeps that many units until they are freed below.
        let seen = look(unsafe { std::slice::from_raw_parts(units, size(length)) });
        // SAFETY: given by the call above, freed once.
        unsafe { sys::JS_FreeCStringUTF16(self.0, units) };
        Ok(seen)
    }
}
