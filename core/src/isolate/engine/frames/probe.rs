//! Whether the engine's structures are as declared, and where it keeps its innermost frame.
//!
//! In: nothing. Out: a [`Layout`], once a process, if everything that is read of a program with known variables is as
//! expected.

use std::{
    cell::Cell,
    ffi::{CStr, c_int},
    ptr,
    sync::OnceLock,
};

use super::{
    Around, Stack, call_site, callers, has_stack, install, property_count, structures::StackFrame,
    suspended,
};
use crate::{
    isolate::engine::{
        Cx, Local, Raw, address_of, class_of, is_object, sys, trial::try_out, undefined,
    },
    os::process::PerProcess,
};

/// The proof that the declared structures are those of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::isolate) struct Layout {
    /// The offset, in the engine's runtime, of the pointer to the innermost frame.
    pub(super) frame: usize,
    /// The classes of functions with bytecode that call others: of plain and of async ones.
    pub(super) functions: [u32; 2],
}

/// Calls an async function, which waits; and a function with two arguments, a variable and a captured variable, which
/// fails in its third line.
const PROGRAM: &CStr =
    c"const waits = (async function waits() { await 1; })(); (function (outer) { return function probe(first, second) {\n const local = { a: 1, b: 2 };\n outer(); second.x.y;\n first.z; } })(function () {})('one', 'two')";

const FILE: &CStr = c"probe";

/// The search, as `find` hands it over.
struct Search {
    /// The words of the runtime while nothing runs in it.
    idle: Vec<usize>,
    found: Cell<Option<Layout>>,
}

/// The most stack between the engine's innermost frame and this function's own.
const NEAR_BYTES: usize = 256 << 10;

/// The layout, found once per process in less than a millisecond.
pub(in crate::isolate) fn layout() -> Option<Layout> {
    static LAYOUT: PerProcess<OnceLock<Option<Layout>>> = PerProcess::new();
    *LAYOUT.get_or_init(OnceLock::new).get_or_init(find)
}

fn find() -> Option<Layout> {
    try_out(|cx, heap| {
        // SAFETY: a live context.
        let runtime = unsafe { sys::JS_GetRuntime(cx.0) };
        let functions = heap.functions();
        // SAFETY: the runtime is a block of that allocator.
        let bytes = unsafe { functions.js_malloc_usable_size?(runtime.cast()) };
        let idle = words(runtime, usize::try_from(bytes).ok()? / size_of::<usize>());
        let search = Search { idle, found: Cell::new(None) };
        {
            let global = cx.global().ok()?;
            let error = cx.get_str(global.raw(), c"Error").ok()?;
            install(cx, runtime, error.raw(), record)?;
            cx.set_opaque(ptr::from_ref(&search).cast_mut().cast());
            let length = PROGRAM.count_bytes() as sys::size_t;
            // SAFETY: the context lives, and a C string ends with a zero byte.
            let raw = unsafe { sys::JS_Eval(cx.0, PROGRAM.as_ptr(), length, FILE.as_ptr(), 0) };
            drop(cx.own(raw));
            drop(cx.exception());
            cx.set_opaque(ptr::null_mut());
        }
        search.found.get()
    })
}

/// Called by the engine while it makes the error of the program.
unsafe extern "C-unwind" fn record(
    ctx: *mut sys::JSContext,
    _function: Raw,
    _this: Raw,
    count: c_int,
    arguments: *mut Raw,
    _flags: c_int,
) -> Raw {
    let cx = Cx(ctx);
    // SAFETY: `find` handed the search over and waits.
    let search = unsafe { cx.opaque().cast::<Search>().as_ref() };
    // Without a stack, the error comes once more for the function around.
    if let Some(search) = search.filter(|search| count == 2 && search.found.get().is_none()) {
        // SAFETY: there are two arguments.
        let (error, list) = unsafe { (*arguments, *arguments.add(1)) };
        let made = search.found.get().is_none() && is_object(error);
        let found = examine(cx, list, &search.idle);
        search.found.set(found.filter(|layout| made && !has_stack(*layout, error)));
    }
    undefined()
}

fn examine(cx: Cx, list: Raw, idle: &[usize]) -> Option<Layout> {
    let unproven = Layout { frame: 0, functions: [0; 2] };
    let sites = cx.call_sites(unproven, list);
    let first = call_site(unproven, sites.first()?)?;
    let text = |value: Raw| cx.text(value).ok().map(crate::isolate::engine::Text::into_lossy);
    let named = !first.native()
        && is_object(first.function())
        && text(first.name()).as_deref() == Some("probe")
        && text(first.file()).as_deref() == FILE.to_str().ok()
        && first.place() == Some((3, 11));
    if !named || sites.len() != 2 {
        return None;
    }
    let frame = innermost(cx, idle, first.function())?;
    let layout = Layout { frame, functions: [class_of(first.function()), 0] };
    // SAFETY: the engine is making the program's error, and made this list.
    let stack = unsafe { Stack::of(cx, layout, &first) }?;
    let frame = stack.frame(0, &first).filter(|_| !stack.in_constructor)?;
    let around = Around { function: Some((1, 82)), before: Some((3, 11)), after: Some((4, 2)) };
    let variable = |name: &str| cx.atom(name).ok().and_then(|name| frame.variable(cx, &name));
    let shown = |name: &str| variable(name).and_then(|value: Local| text(value.raw()));
    let agrees = frame.around() == around
        && shown("first").as_deref() == Some("one")
        && shown("second").as_deref() == Some("two")
        && variable("local").is_some_and(|local| property_count(layout, local.raw()) == 2)
        && variable("outer").is_some_and(|outer| cx.is_function(outer.raw()))
        && variable("absent").is_none();
    let mut waiting = suspended(cx, layout).into_iter();
    let waits = waiting.next().filter(|_| waiting.next().is_none())?;
    let name = cx.own_data(waits.function(), c"name");
    let waits_there = name.and_then(|name| text(name.raw())).as_deref() == Some("waits");
    let layout = Layout { functions: [layout.functions[0], class_of(waits.function())], ..layout };
    let mut callers = callers(cx, layout).into_iter();
    let calls = callers.next().and_then(|caller| caller.place()) == Some((3, 11));
    (agrees && waits_there && calls && callers.len() == 1).then_some(layout)
}

/// The first words of a runtime.
fn words(runtime: *const sys::JSRuntime, count: usize) -> Vec<usize> {
    // SAFETY: the caller gives the size of the block. The engine clears it when it makes the runtime.
    (0..count).map(|index| unsafe { *runtime.cast::<usize>().add(index) }).collect()
}

/// The offset of the only pointer to a frame of this function: null while nothing runs, and now on this thread's stack.
fn innermost(cx: Cx, idle: &[usize], function: Raw) -> Option<usize> {
    let here = 0_u8;
    let here = ptr::from_ref(&here) as usize;
    // SAFETY: a live context.
    let runtime = unsafe { sys::JS_GetRuntime(cx.0) };
    let began = |(index, (before, now)): (usize, (&usize, usize))| {
        let near = now.abs_diff(here) < NEAR_BYTES;
        let pointer = near && now.is_multiple_of(align_of::<StackFrame>());
        (*before == 0 && pointer).then_some((index * size_of::<usize>(), now))
    };
    let now = words(runtime, idle.len());
    let mut found = idle.iter().zip(now).enumerate().filter_map(began);
    let (offset, frame) = found.next().filter(|_| found.next().is_none())?;
    // SAFETY: the engine keeps one pointer to the stack while it runs, to its innermost frame.
    let frame = unsafe { &*(frame as *const StackFrame) };
    let same = is_object(frame.function) && address_of(frame.function) == address_of(function);
    same.then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_of_this_engine_are_known() {
        assert!(layout().is_some());
    }
}
