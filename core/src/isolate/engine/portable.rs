//! References to the engine's objects, as bytes.
//!
//! In: references whose heap is written beside them. Out: the same references, in a process whose heap has that content
//! at the same addresses. They count in the heap's content, as those of an image do: to read them changes no count,
//! and those that are not used must be dropped without the engine.

use std::ptr;

use super::{Atom, Cx, Local, Raw, address_of, double_of, frames::Caller, int_of, sys, tag_of};
use crate::data::portable::{Input, Output, Portable, portable};

impl Portable for Cx {
    fn write(&self, out: &mut Output) {
        self.0.expose_provenance().write(out);
    }

    fn read(input: &mut Input) -> Option<Self> {
        usize::read(input).map(|address| Self(ptr::with_exposed_provenance_mut(address)))
    }
}

/// A tag, then an address, a number, or the bits of a double.
fn write_raw(raw: Raw, out: &mut Output) {
    let tag = tag_of(raw);
    let payload = match tag {
        ..0 => address_of(raw) as u64,
        sys::JS_TAG_FLOAT64 => double_of(raw).to_bits(),
        _ => u64::from(int_of(raw).cast_unsigned()),
    };
    tag.write(out);
    payload.write(out);
}

fn read_raw(input: &mut Input) -> Option<Raw> {
    let (tag, payload) = (i32::read(input)?, u64::read(input)?);
    Some(match tag {
        ..0 => {
            let address = usize::try_from(payload).ok()?;
            sys::JS_MKPTR(tag, ptr::with_exposed_provenance_mut(address))
        }
        sys::JS_TAG_FLOAT64 => sys::__JS_NewFloat64(f64::from_bits(payload)),
        _ => sys::JS_MKVAL(tag, u32::try_from(payload).ok()?.cast_signed()),
    })
}

impl Portable for Local {
    fn write(&self, out: &mut Output) {
        self.cx.write(out);
        write_raw(self.raw, out);
    }

    fn read(input: &mut Input) -> Option<Self> {
        Some(Self { cx: Cx::read(input)?, raw: read_raw(input)? })
    }
}

portable!(struct Atom { cx, id });
portable!(struct Caller { function, pc });
