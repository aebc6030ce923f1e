//! The objects that stand for functions of the host.
//!
//! In: the number and the name of a function, and the class of such objects. Out: the object.

#![expect(unsafe_code, reason = "sets the opaque of an object with the engine's C function")]

use std::{ffi::c_void, ptr};

use crate::isolate::engine::{Cx, Local, Outcome, Raw, sys};

/// A new object of the class of host functions, with that number and that name.
pub(in crate::isolate) fn host_function_object(
    cx: Cx,
    class: u32,
    prototype: Raw,
    number: u32,
    name: &str,
) -> Outcome<Local> {
    let function = cx.object_of(class, prototype)?;
    // One more than the number: the engine cannot distinguish a missing opaque from zero.
    let opaque = ptr::without_provenance_mut::<c_void>(number as usize + 1);
    // SAFETY: an object of a class that only ever reads the pointer as a number.
    unsafe { sys::JS_SetOpaque(function.raw(), opaque) };
    let hidden = sys::JS_PROP_CONFIGURABLE;
    cx.define_str(function.raw(), "length", cx.number(0.0), hidden)?;
    cx.define_str(function.raw(), "name", cx.string(name)?, hidden)?;
    Ok(function)
}
