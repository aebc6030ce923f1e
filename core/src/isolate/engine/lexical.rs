//! The object of the engine that has the global `let` and `const` declarations.
//!
//! In: a context. Out: that object, which code cannot reach. The engine looks a name up there first, at each access, so
//! an entry that is changed is changed for all code. It reads an entry's value without a look at the kind of the
//! property, so each entry must be plain data. The engine has no function for the object; it lies behind the global
//! object in the context. The offset is found once a process, and accepted only if a declaration appears there.

use std::{ffi::CStr, ptr, sync::OnceLock};

use super::{Cx, Raw, Thrown, address_of, is_object, sys, trial::try_out};
use crate::os::process::PerProcess;

/// Declares one name in each way that leads to the object.
const PROGRAM: &CStr = c"const declared = 1; let other = 2;";

/// The object of this context; `None` if it was not found for certain.
pub(in crate::isolate) fn of(cx: Cx) -> Option<Raw> {
    // SAFETY: the offset was found in a context of the same engine.
    offset().map(|offset| unsafe { at(cx, offset) })
}

/// Whether the object is found.
pub(in crate::isolate) fn is_known() -> bool {
    offset().is_some()
}

/// The offset of the object in a context, if it is found.
pub(super) fn offset() -> Option<usize> {
    static OFFSET: PerProcess<OnceLock<Option<usize>>> = PerProcess::new();
    *OFFSET.get_or_init(OnceLock::new).get_or_init(find)
}

/// The value at that offset of a context.
///
/// # Safety
/// It must lie within the context, and be a value.
unsafe fn at(cx: Cx, offset: usize) -> Raw {
    // SAFETY: as the caller promises.
    unsafe { *cx.0.byte_add(offset).cast::<Raw>() }
}

fn find() -> Option<usize> {
    try_out(|cx, _| {
        let offset = behind_global(cx)?;
        declares(cx, offset).ok()?.then_some(offset)
    })
}

/// The offset behind the only place of the global object in the context.
fn behind_global(cx: Cx) -> Option<usize> {
    let global = cx.global().ok()?;
    // SAFETY: the context is a block of its runtime.
    let bytes = unsafe { sys::js_malloc_usable_size_rt(sys::JS_GetRuntime(cx.0), cx.0.cast()) };
    let places = usize::try_from(bytes).ok()? / size_of::<usize>();
    let size = size_of::<Raw>() / size_of::<usize>();
    let is_global = |place: &usize| {
        // SAFETY: within the block, which the engine cleared when it made it.
        let words = unsafe { cx.0.cast::<usize>().add(*place) };
        let wanted = ptr::from_ref(&global.raw).cast::<usize>();
        // SAFETY: both are as long as a value.
        (0..size).all(|word| unsafe { *words.add(word) == *wanted.add(word) })
    };
    let mut found = (0..places.saturating_sub(2 * size)).filter(is_global);
    let place = found.next().filter(|_| found.next().is_none())?;
    Some(place * size_of::<usize>() + size_of::<Raw>())
}

/// Whether declarations appear in the object at that offset, and disappear with its properties.
fn declares(cx: Cx, offset: usize) -> Result<bool, Thrown> {
    // SAFETY: within the context. Any value may be asked for its tag.
    let object = unsafe { at(cx, offset) };
    let global = cx.global()?;
    // A number that looks like an object is none of the engine's.
    let is_near = address_of(object).abs_diff(address_of(global.raw)) < 1 << 20;
    if !is_object(object) || !is_near || address_of(object) == address_of(global.raw) {
        return Ok(false);
    }
    let run = |text: &CStr| {
        let length = text.count_bytes() as sys::size_t;
        // SAFETY: the context lives, and a C string ends with a zero byte.
        cx.own(unsafe { sys::JS_Eval(cx.0, text.as_ptr(), length, c"probe".as_ptr(), 0) })
    };
    let names = ["declared", "other"];
    let is_empty = cx.all_keys(object)?.len() == 0;
    run(PROGRAM)?;
    let [first, second] = [cx.atom(names[0])?, cx.atom(names[1])?];
    let declared = cx.own_property(object, first.id)?.is_some()
        && !cx.is_writable(object, first.id)?
        && cx.is_writable(object, second.id)?;
    cx.delete(object, names[0])?;
    let gone = cx.own_property(object, first.id)?.is_none() && run(c"declared").is_err();
    drop(cx.exception());
    cx.delete(object, names[1])?;
    Ok(is_empty && declared && gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declarations_of_this_engine_are_found() {
        assert!(find().is_some());
    }
}
