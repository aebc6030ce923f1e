//! The text of functions.
//!
//! In: a function of the sandbox. Out: its text as it was written. The engine keeps the text that it compiled, in which
//! blanks stand for types, and in which some forms are written anew. A file without types or such forms is not read; in
//! any other each text costs a search from the beginning of the file, 1.5 ms for 2.4 MB.

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

use std::ffi::c_int;

use super::{
    engine::{Cx, Local, Outcome, Raw, int_of, is_string, sys, tag_of},
    marks::label_of,
    realm::originals::FunctionText,
    state::State,
    trampoline,
};

/// Replaces the engine's own `toString` of functions.
pub(super) fn install(cx: Cx, function_prototype: Raw) -> Outcome<FunctionText> {
    let getter = |name| cx.own_getter(function_prototype, name).map(Local::into_raw);
    let originals = FunctionText {
        text: cx.get_str(function_prototype, c"toString")?.into_raw(),
        file: getter(c"fileName")?,
        line: getter(c"lineNumber")?,
        column: getter(c"columnNumber")?,
    };
    let hidden = sys::JS_PROP_WRITABLE | sys::JS_PROP_CONFIGURABLE;
    let replaced = cx.c_function(to_string, c"toString", 0, 0)?;
    cx.define_str(function_prototype, "toString", replaced, hidden)?;
    Ok(originals)
}

unsafe extern "C-unwind" fn to_string(
    ctx: *mut sys::JSContext,
    this: Raw,
    _argc: c_int,
    _argv: *mut Raw,
    _magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let compiled = Cx(ctx).call(state.realm().intrinsics.function_text.text, this, &[])?;
        match written(state, this, &compiled)? {
            Some(written) => Ok(written),
            None => Ok(compiled),
        }
    })
}

/// The text as it was written, if it differs from the compiled one.
fn written(state: &State, function: Raw, compiled: &Local) -> Outcome<Option<Local>> {
    let cx = state.realm().cx;
    let FunctionText { file, line, column, .. } = state.realm().intrinsics.function_text;
    let file = cx.call(file, function, &[])?;
    if !is_string(file.raw()) {
        return Ok(None);
    }
    let file = cx.text(file.raw())?.into_lossy();
    let Ok(linker) = state.linker.try_borrow() else { return Ok(None) };
    if !linker.is_edited(label_of(&file)) {
        return Ok(None);
    }
    let number = |getter| -> Outcome<Option<u32>> {
        let found = cx.call(getter, function, &[])?;
        let is_number = tag_of(found.raw()) == sys::JS_TAG_INT;
        Ok(is_number.then(|| u32::try_from(int_of(found.raw())).ok()).flatten())
    };
    let (Some(line), Some(column)) = (number(line)?, number(column)?) else { return Ok(None) };
    let mut charged = 0;
    let written = cx.with_bytes(compiled.raw(), |text| {
        state.charge(text.len());
        charged = text.len();
        let text = str::from_utf8(text).ok()?;
        let written = linker.written(label_of(&file), (line, column), text)?;
        Some(cx.string(written))
    })?;
    state.discharge(charged);
    written.transpose()
}
