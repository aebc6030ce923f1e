//! `structuredClone` inside the sandbox.
//!
//! In: one value. Out: a copy made by way of a message, exactly as a value crosses, or a SerializationError for a value
//! that cannot be cloned. Transfers are refused rather than ignored.

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

use std::ffi::c_int;

use crate::{
    isolate::{
        engine::{Cx, Outcome, Raw, is_object, sys, tag_of},
        trampoline,
    },
    value::ErrorClass,
};

use super::{
    clone_in::clone_in,
    clone_out::{Crossing, clone_out},
};

/// Puts the function on the global object.
pub(in crate::isolate) fn install(cx: Cx, global: Raw) -> Outcome<()> {
    let function = cx.c_function(structured_clone, c"structuredClone", 1, 0)?;
    let hidden = sys::JS_PROP_WRITABLE | sys::JS_PROP_CONFIGURABLE;
    cx.define_str(global, "structuredClone", function, hidden)
}

unsafe extern "C-unwind" fn structured_clone(
    ctx: *mut sys::JSContext,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    _magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let args = trampoline::args(argc, argv);
        let Some(&value) = args.first() else {
            let message = "structuredClone needs a value to clone";
            return Err(state.throw_error(ErrorClass::TypeError, "TypeError", message));
        };
        if let Some(&options) = args.get(1).filter(|options| is_object(**options)) {
            let transfer = Cx(ctx).get_str(options, c"transfer")?;
            if tag_of(transfer.raw()) != sys::JS_TAG_UNDEFINED
                && (!is_object(transfer.raw()) || Cx(ctx).length(transfer.raw())? > 0)
            {
                return Err(state.throw_serialization_error("structuredClone cannot transfer"));
            }
        }
        let message = clone_out(state, value, Crossing::Inside, "value")?;
        let copy = clone_in(state, &message);
        state.discharge(message.held_bytes());
        copy
    })
}
