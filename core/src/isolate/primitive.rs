//! Objects as primitive values, as the language turns one into the other.
//!
//! In: a value, and a hint which kind of primitive value is wanted. Out: the value that its methods give. This runs code
//! of the sandbox; the engine has no such function that others may call.

use std::ffi::CStr;

use super::{
    engine::{Cx, Local, Outcome, Raw, is_object, sys, tag_of},
    state::State,
};
use crate::value::ErrorClass;

/// The kind of primitive value that is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    Default,
    Number,
}

/// An object as a primitive value; any other value as it is.
pub(super) fn primitive(state: &State, cx: Cx, value: Raw, hint: Hint) -> Outcome<Local> {
    // Both hints ask for a number first.
    const METHODS: [&CStr; 2] = [c"valueOf", c"toString"];
    if !is_object(value) {
        return Ok(cx.dup(value));
    }
    let refused = || {
        let message = "cannot convert object to primitive value";
        state.throw_error(ErrorClass::TypeError, "TypeError", message)
    };
    let key = cx.atom_of(state.realm().intrinsics.dates.to_primitive)?;
    let method = cx.get(value, key.id)?;
    if !matches!(tag_of(method.raw()), sys::JS_TAG_UNDEFINED | sys::JS_TAG_NULL) {
        let hint = cx.string(if hint == Hint::Default { "default" } else { "number" })?;
        let found = cx.call(method.raw(), value, &[hint.raw()])?;
        return if is_object(found.raw()) { Err(refused()) } else { Ok(found) };
    }
    for name in METHODS {
        let method = cx.get_str(value, name)?;
        if cx.is_function(method.raw()) {
            let found = cx.call(method.raw(), value, &[])?;
            if !is_object(found.raw()) {
                return Ok(found);
            }
        }
    }
    Err(refused())
}
