//! Jobs, and the numbers of the promises that they lead to.
//!
//! In: promises, each of which is given a number when it is made. Out: the number behind the next job: that of the
//! promise which the job goes on with. For a reaction it is the promise that `then` returned, for an `await` the promise
//! of the function that waits. The engine has no functions for this. A number takes the place of bytes in a promise that
//! the engine does not use, and `layout` reads what it reads only if a program with known promises proves the places.

use std::{
    ffi::{CStr, c_int, c_void},
    ptr,
    sync::OnceLock,
};

use super::{
    Cx, Local, Raw, address_of, class_of, frames::AsyncFunction, is_object, sys, trial::try_out,
};
use crate::{isolate::memory::heap::Heap, os::process::PerProcess};

/// The proof that the declared structures are those of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::isolate) struct Layout {
    /// The offset of the list of jobs in the engine's runtime.
    jobs: usize,
    pub(super) promise: u32,
    /// The class of the functions that fulfil a promise.
    pub(super) resolve: u32,
    /// The classes of the functions that go on with an async function after an `await`.
    pub(super) awaits: [u32; 2],
    pub(super) generators: Generators,
}

/// The functions that go on with an async generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generators {
    /// The class of functions that have values of the engine.
    pub(super) class: u32,
    pub(super) function: *const c_void,
    /// The offset of the requests in the data of a generator.
    pub(super) queue: usize,
}

// SAFETY: the pointer is compared, and never followed.
unsafe impl Send for Generators {}
// SAFETY: as above.
unsafe impl Sync for Generators {}

/// The head of a list of the engine, or a link in it.
#[repr(C)]
pub(super) struct Link {
    previous: *mut Link,
    pub(super) next: *mut Link,
}

/// `JSJobEntry`, without its arguments.
#[repr(C)]
struct Job {
    link: Link,
    context: *mut sys::JSContext,
    function: *const c_void,
    count: c_int,
}

/// `JSPromiseData`.
#[repr(C)]
pub(super) struct PromiseData {
    pub(super) state: u32,
    /// No field of the engine: it is the padding before the next one.
    number: u32,
    pub(super) reactions: [Link; 2],
    pub(super) handled: bool,
    /// No field of the engine either.
    pub(super) told: u8,
    pub(super) result: Raw,
}

/// The beginning of `JSCFunctionDataRecord`, with one value.
#[repr(C)]
pub(super) struct FunctionData {
    pub(super) function: *const c_void,
    /// The second one is the number of values.
    pub(super) counts: [u8; 8],
    pub(super) data: Raw,
}

/// The beginning of `JSAsyncGeneratorRequest`.
#[repr(C)]
struct Request {
    link: Link,
    kind: c_int,
    result: Raw,
    promise: Raw,
}

/// Gives a promise its number.
pub(in crate::isolate) fn set_number(_layout: Layout, promise: Raw, number: u32) {
    let data = opaque(promise).cast::<PromiseData>();
    if !data.is_null() {
        // SAFETY: the data of a live promise, whose structure `layout` proved.
        unsafe { (*data).number = number }
    }
}

/// The number behind the next job, zero if it leads to no promise that is known. `None` without a job.
pub(in crate::isolate) fn next_number(cx: Cx, layout: Layout) -> Option<u32> {
    let job = next(cx, layout)?;
    // SAFETY: a job in the engine's list lives.
    let promise = unsafe { promise_of(job, layout) };
    Some(promise.map_or(0, number))
}

/// Drops the next job, which never runs.
pub(in crate::isolate) fn drop_next(cx: Cx, layout: Layout) {
    let Some(job) = next(cx, layout) else { return };
    // SAFETY: the job lives, in a list whose links do. It owns its arguments and its memory, and nothing refers to it
    // once it is out of the list.
    unsafe {
        let Link { next, previous } = (*job).link;
        (*previous).next = next;
        (*next).previous = previous;
        let arguments = arguments(job);
        for argument in arguments {
            drop(Local { cx, raw: *argument });
        }
        sys::js_free(cx.0, job.cast());
    }
}

/// The promises that jobs are about to attach something to, by their addresses, each with the promise that waits for it.
/// Looks at the next `most` jobs.
pub(super) fn thenables(cx: Cx, layout: Layout, most: usize) -> Vec<(usize, Raw)> {
    let mut found = Vec::new();
    // SAFETY: `layout` found the list there; the engine links live jobs in a ring with its head.
    unsafe {
        let head = sys::JS_GetRuntime(cx.0).byte_add(layout.jobs).cast::<Link>();
        let mut at = (*head).next;
        for _ in 0..most {
            if ptr::eq(at, head) {
                break;
            }
            if let [promise, thenable, _] = arguments(at.cast::<Job>())
                && [promise, thenable].iter().all(|value| class_of(**value) == layout.promise)
            {
                found.push((address_of(*thenable), *promise));
            }
            at = (*at).next;
        }
    }
    found
}

/// The next job of the runtime.
fn next(cx: Cx, layout: Layout) -> Option<*mut Job> {
    // SAFETY: `layout` found the list there; the engine links live jobs in a ring with its head.
    unsafe {
        let head = sys::JS_GetRuntime(cx.0).byte_add(layout.jobs).cast::<Link>();
        let first = (*head).next;
        (!ptr::eq(first, head)).then(|| first.cast())
    }
}

/// # Safety
/// The job must live, and longer than the slice.
unsafe fn arguments<'a>(job: *const Job) -> &'a [Raw] {
    // SAFETY: the engine allocates that many values right behind the job.
    unsafe {
        let count = usize::try_from((*job).count).unwrap_or(0);
        std::slice::from_raw_parts(job.add(1).cast::<Raw>(), count)
    }
}

/// The promise that a job goes on with.
///
/// # Safety
/// The job must live.
unsafe fn promise_of(job: *const Job, layout: Layout) -> Option<Raw> {
    // SAFETY: as the caller promises.
    let arguments = unsafe { arguments(job) };
    let first = *arguments.first()?;
    // A thenable is about to settle it.
    if class_of(first) == layout.promise {
        return Some(first);
    }
    if class_of(first) == layout.resolve {
        return resolved_by(first);
    }
    let handler = *arguments.get(2)?;
    if layout.awaits.contains(&class_of(handler)) {
        let function = opaque(handler).cast::<AsyncFunction>();
        // SAFETY: a function of that class keeps the function that waits alive.
        let resolve = unsafe { function.as_ref() }?.resolve();
        return Some(resolve).filter(|it| class_of(*it) == layout.resolve).and_then(resolved_by);
    }
    if class_of(handler) == layout.generators.class {
        let data = opaque(handler).cast::<FunctionData>();
        // SAFETY: a function of that class has such a record. That of the engine's generators has one value.
        let data = unsafe { data.as_ref() }?;
        if ptr::eq(data.function, layout.generators.function) {
            // SAFETY: the value is a generator, whose data has its requests there.
            return unsafe { requested(data.data, layout.generators.queue) };
        }
    }
    None
}

/// The promise of the request that a generator is busy with.
///
/// # Safety
/// The value is an async generator, with its requests at that offset of its data.
pub(super) unsafe fn requested(generator: Raw, queue: usize) -> Option<Raw> {
    let data = opaque(generator);
    if data.is_null() {
        return None;
    }
    // SAFETY: as the caller promises; the engine links live requests in a ring with its head.
    unsafe {
        let head = data.byte_add(queue).cast::<Link>();
        let first = (*head).next;
        (!ptr::eq(first, head)).then(|| (*first.cast::<Request>()).promise)
    }
}

/// The promise that a function of the engine settles.
pub(super) fn resolved_by(function: Raw) -> Option<Raw> {
    // SAFETY: the data of such a function begins with its promise; there is none once it is being freed.
    unsafe { opaque(function).cast::<Raw>().as_ref() }.copied().filter(|it| is_object(*it))
}

fn number(promise: Raw) -> u32 {
    // SAFETY: the data of a live promise, whose structure `layout` proved.
    unsafe { opaque(promise).cast::<PromiseData>().as_ref() }.map_or(0, |data| data.number)
}

/// The data of an object.
pub(super) fn opaque(value: Raw) -> *mut c_void {
    let mut class = 0;
    // SAFETY: any value may be asked.
    unsafe { sys::JS_GetAnyOpaque(value, &raw mut class) }
}

/// No number in the data of a generator is larger, and no address smaller.
const LARGEST_NUMBER: usize = 1 << 16;

/// The layout, found once per process in less than a millisecond.
pub(in crate::isolate) fn layout() -> Option<Layout> {
    static LAYOUT: PerProcess<OnceLock<Option<Layout>>> = PerProcess::new();
    *LAYOUT.get_or_init(OnceLock::new).get_or_init(|| try_out(examine))
}

fn examine(cx: Cx, heap: &Heap) -> Option<Layout> {
    // SAFETY: a live context.
    let runtime = unsafe { sys::JS_GetRuntime(cx.0) };
    let run = |text: &CStr| {
        let length = text.count_bytes() as sys::size_t;
        // SAFETY: the context lives, and a C string ends with a zero byte.
        cx.own(unsafe { sys::JS_Eval(cx.0, text.as_ptr(), length, c"probe".as_ptr(), 0) }).ok()
    };
    let fulfilled = run(c"Promise.resolve(7)")?;
    let rejected = run(c"const no = Promise.reject(8); no.catch(function () {}); no")?;
    finish(cx);
    let heads = empty_lists(heap, runtime)?;
    let derived = run(c"Promise.resolve(7).then(function () {})")?;
    let jobs = filled_list(cx, &heads, runtime)?;
    let none = Generators { class: 0, function: ptr::null(), queue: 0 };
    let (promise, resolve) = (class_of(derived.raw()), 0);
    let mut layout = Layout { jobs, promise, resolve, awaits: [0; 2], generators: none };
    let same = |found: Option<Raw>, wanted: &Local| {
        found.is_some_and(|it| is_object(it) && address_of(it) == address_of(wanted.raw()))
    };
    let head = |layout: Layout| {
        // SAFETY: the engine's list has this live job.
        next(cx, layout).map(|job| unsafe { arguments(job) }).filter(|them| them.len() == 5)
    };
    let first = *head(layout)?.first()?;
    layout.resolve = class_of(first);
    let known = is_promise(&derived, 0, None)
        && is_promise(&fulfilled, 1, Some(7))
        && is_promise(&rejected, 2, Some(8));
    if !known || !same(resolved_by(first), &derived) {
        return None;
    }
    finish(cx);
    for (index, text) in [
        c"(async function () { await 1; })()",
        c"(async function () { await Promise.reject(1); })().catch(function () {})",
    ]
    .into_iter()
    .enumerate()
    {
        let waits = run(text)?;
        layout.awaits[index] = class_of(*head(layout)?.get(2)?);
        let job = next(cx, layout)?;
        // SAFETY: the job lives.
        let found = unsafe { promise_of(job, layout) }?;
        let expected = index == 1 || same(Some(found), &waits);
        if !expected || class_of(found) != layout.promise {
            return None;
        }
        finish(cx);
    }
    let waits = run(c"(async function* () { await 1; })().next()")?;
    layout.generators = generators(cx, *head(layout)?.get(2)?, &waits)?;
    let job = next(cx, layout)?;
    // SAFETY: the job lives.
    let found = same(unsafe { promise_of(job, layout) }, &waits);
    set_number(layout, waits.raw(), 9);
    let numbered = is_promise(&waits, 0, None);
    // The first of two is the next one.
    let later = run(c"Promise.resolve(7).then(function () {})")?;
    set_number(layout, later.raw(), 10);
    let in_order = next_number(cx, layout) == Some(9);
    drop_next(cx, layout);
    let in_order = in_order && next_number(cx, layout) == Some(10);
    finish(cx);
    (found && numbered && in_order && next(cx, layout).is_none()).then_some(layout)
}

/// Runs all jobs.
pub(super) fn finish(cx: Cx) {
    let mut context = ptr::null_mut();
    // SAFETY: a live runtime.
    while unsafe { sys::JS_ExecutePendingJob(sys::JS_GetRuntime(cx.0), &raw mut context) } > 0 {}
}

/// Whether a promise has that state and, beside links that refer to themselves, that result.
fn is_promise(promise: &Local, state: u32, result: Option<i32>) -> bool {
    let data = opaque(promise.raw()).cast::<PromiseData>();
    // SAFETY: the engine's data of a promise is at least that long.
    let Some(known) = (unsafe { data.as_ref() }) else { return false };
    let is_empty = |link: &Link| {
        let here = ptr::from_ref(link);
        ptr::eq(link.next, here) && ptr::eq(link.previous, here)
    };
    known.state == state
        && known.reactions.iter().all(is_empty)
        && result.is_none_or(|result| super::int_of(known.result) == result)
}

/// The offsets of empty lists in a runtime.
fn empty_lists(heap: &Heap, runtime: *mut sys::JSRuntime) -> Option<Vec<usize>> {
    let functions = heap.functions();
    // SAFETY: the runtime is a block of that allocator.
    let bytes = unsafe { functions.js_malloc_usable_size?(runtime.cast()) };
    let words = usize::try_from(bytes).ok()? / size_of::<usize>();
    let empty = (0..words.saturating_sub(1)).map(|word| word * size_of::<usize>()).filter(|at| {
        // SAFETY: within the block, which the engine cleared when it made it.
        let link = unsafe { &*runtime.byte_add(*at).cast::<Link>() };
        ptr::eq(link.next, link) && ptr::eq(link.previous, link)
    });
    Some(empty.collect())
}

/// The only one of these lists that has one element now, which looks like a reaction in this context. Other lists of the
/// runtime are those of its allocator, whose elements are at least as large.
fn filled_list(cx: Cx, lists: &[usize], runtime: *mut sys::JSRuntime) -> Option<usize> {
    let mut filled = lists.iter().copied().filter(|at| {
        // SAFETY: a list of the runtime, whose links live.
        unsafe {
            let head = runtime.byte_add(*at).cast::<Link>();
            let first = (*head).next;
            let is_only = !ptr::eq(first, head)
                && ptr::eq((*head).previous, first)
                && ptr::eq((*first).next, head)
                && ptr::eq((*first).previous, head);
            is_only && {
                let job = first.cast::<Job>();
                ptr::eq((*job).context, cx.0) && (*job).count == 5
            }
        }
    });
    filled.next().filter(|_| filled.next().is_none())
}

/// The generators known to the function that goes on with the one whose request has that promise.
fn generators(cx: Cx, handler: Raw, promise: &Local) -> Option<Generators> {
    // SAFETY: the function was made with one value.
    let data = unsafe { opaque(handler).cast::<FunctionData>().as_ref() }?;
    let block = Some(opaque(data.data)).filter(|block| is_object(data.data) && !block.is_null())?;
    // SAFETY: the data of a generator is a block of its runtime.
    let bytes = unsafe { sys::js_malloc_usable_size_rt(sys::JS_GetRuntime(cx.0), block) };
    let words = usize::try_from(bytes).ok()? / size_of::<usize>();
    let queue = (1..words.saturating_sub(1)).map(|word| word * size_of::<usize>()).find(|at| {
        // SAFETY: within the block, which the engine cleared when it made it. The block of a generator that has just begun
        // has pointers to live blocks, and numbers that are smaller than any address.
        unsafe {
            let head = block.byte_add(*at).cast::<Link>();
            let Link { next: first, previous } = head.read();
            ptr::eq(first, previous)
                && first as usize > LARGEST_NUMBER
                && (first as usize).is_multiple_of(align_of::<Link>())
                && ptr::eq((*first).next, head)
                && ptr::eq((*first).previous, head)
        }
    })?;
    // SAFETY: the list has one request.
    let found = unsafe { requested(data.data, queue) }?;
    let same = is_object(found) && address_of(found) == address_of(promise.raw());
    same.then_some(Generators { class: class_of(handler), function: data.function, queue })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_of_this_engine_are_known() {
        assert!(layout().is_some());
    }
}
