//! The promises that wait for a promise.
//!
//! In: a promise. Out: whether anything was ever attached to it, and the ends of the chains that begin with it: pending
//! promises for which nothing waits. A chain leads through the functions that an `await` suspends, through the promises
//! that `then` returns, and through functions that settle another promise, as those of `Promise.all`. It stops, and has
//! no end, at a promise that is settled (a `Promise.race` that another one has won) and at the host. The engine has no
//! functions for this. `layout` reads what it reads only if a program with known promises proves the places.

use std::{
    collections::{HashMap, HashSet},
    ffi::CStr,
    ptr,
    sync::OnceLock,
};

use super::{
    Cx, Raw, address_of, class_of,
    frames::{self, AsyncFunction, Caller},
    is_object,
    jobs::{self, FunctionData, Link, PromiseData, finish, opaque, requested, resolved_by},
    sys, tag_of,
    trial::try_out,
};
use crate::os::process::PerProcess;

/// The proof that the declared structures are those of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::isolate) struct Layout {
    jobs: jobs::Layout,
    frames: frames::Layout,
    /// The class of the functions that reject a promise.
    reject: u32,
}

/// `JSPromiseReactionData`.
#[repr(C)]
struct Reaction {
    link: Link,
    resolving: [Raw; 2],
    handler: Raw,
}

/// The end of a chain.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct ChainEnd {
    /// The promise for which nothing waits.
    pub(in crate::isolate) promise: Raw,
    /// The references to the promise of those that will settle it; `None` if that is not known.
    references: Option<i32>,
}

/// A pending promise on a chain.
type Step = ChainEnd;

/// The references of the two functions that settle a promise.
const OF_RESOLVING: i32 = 2;

/// The place, among the values of a function of `Promise.all` or `Promise.allSettled`, of the function that settles the
/// promise of all.
const SETTLES_ALL: usize = 3;

/// The longest chain that is followed without a note of the promises on it.
const LONGEST_PLAIN: usize = 16;

/// Whether anything was ever attached to a promise: by `then`, by `await`, by the host.
pub(in crate::isolate) fn is_handled(layout: Layout, promise: Raw) -> bool {
    data(layout, promise).is_none_or(|data| data.handled)
}

/// Whether a promise is rejected.
pub(in crate::isolate) fn is_rejected(layout: Layout, promise: Raw) -> bool {
    data(layout, promise).is_some_and(|data| data.state == 2)
}

/// Whether a promise is pending.
pub(in crate::isolate) fn is_pending(layout: Layout, promise: Raw) -> bool {
    data(layout, promise).is_some_and(|data| data.state == 0)
}

/// Whether a promise is fulfilled with `undefined`.
pub(in crate::isolate) fn is_without_value(layout: Layout, promise: Raw) -> bool {
    data(layout, promise).is_some_and(|data| tag_of(data.result) == sys::JS_TAG_UNDEFINED)
}

/// Whether a promise was marked as told of. The mark is in the heap, and is copied and undone with it.
pub(in crate::isolate) fn is_told(layout: Layout, promise: Raw) -> bool {
    data(layout, promise).is_some_and(|data| data.told != 0)
}

/// Marks a promise as told of.
pub(in crate::isolate) fn tell(layout: Layout, promise: Raw) {
    if class_of(promise) == layout.jobs.promise {
        let data = opaque(promise).cast::<PromiseData>();
        // SAFETY: the data of a live promise, whose structure `layout` proved.
        unsafe { (*data).told = 1 }
    }
}

/// The references to an object.
pub(in crate::isolate) fn references(_layout: Layout, object: Raw) -> i32 {
    // SAFETY: the engine keeps the count before each object, as `layout` proved.
    unsafe { *(address_of(object) as *const i32).sub(1) }
}

impl ChainEnd {
    /// Whether only those refer to the promise that will settle it, and so many others.
    pub(in crate::isolate) fn is_abandoned(&self, layout: Layout, others: i32) -> bool {
        self.references == Some(references(layout, self.promise) - others)
    }
}

/// The promise at the end of the chain, if the chain is one of async functions alone, each of which waits for the one
/// before; and the last of these functions, where it waits. Nothing is known of one that has returned a promise.
pub(in crate::isolate) fn last_function(
    cx: Cx,
    layout: Layout,
    promise: Raw,
) -> Option<(Raw, Option<Caller>)> {
    let (first, _) = only_reaction(layout, promise)?;
    let mut at = waiting_function(layout, first.handler)?;
    let mut handler = Some(first.handler);
    for _ in 0..LONGEST_PLAIN {
        if !is_handled(layout, at) {
            return Some((at, handler.and_then(|handler| where_it_waits(cx, layout, handler))));
        }
        let (first, _) = only_reaction(layout, at)?;
        let next = waiting_function(layout, first.handler);
        handler = next.map(|_| first.handler);
        at = next.or_else(|| settled_by(layout, first.handler))?;
    }
    None
}

/// The async functions that wait for a promise, where they wait: the one that waits for the promise itself, then the one
/// that waits for that function, and so on. Of several that wait for one promise it is the first.
pub(in crate::isolate) fn waiting(cx: Cx, layout: Layout, promise: Raw) -> Vec<Caller> {
    let (mut found, mut at) = (Vec::new(), promise);
    for _ in 0..LONGEST_PLAIN {
        let waits = |(fulfilled, _): &(&Reaction, &Reaction)| {
            class_of(fulfilled.handler) == layout.jobs.awaits[0]
        };
        let function = reactions(layout, at).take(LONGEST_PLAIN).find(waits);
        let Some((fulfilled, rejected)) = function.or_else(|| reactions(layout, at).next()) else {
            break;
        };
        found.extend(where_it_waits(cx, layout, fulfilled.handler));
        let mut next = Vec::new();
        followers(layout, fulfilled, rejected, &mut next);
        match next.first() {
            Some(step) if is_pending(layout, step.promise) => at = step.promise,
            _ => break,
        }
    }
    found
}

/// The async function that goes on when a handler is called.
fn where_it_waits(cx: Cx, layout: Layout, handler: Raw) -> Option<Caller> {
    if class_of(handler) != layout.jobs.awaits[0] {
        return None;
    }
    let function = opaque(handler).cast::<AsyncFunction>();
    // SAFETY: a function of that class keeps the function that waits alive.
    unsafe { function.as_ref().and_then(|function| frames::suspended_at(cx, function)) }
}

/// The way along the chains of promises.
pub(in crate::isolate) struct Walk {
    layout: Layout,
    /// By their addresses: promises that a job is about to attach something to, with one that waits for each.
    thenables: HashMap<usize, Raw>,
    /// How many promises and reactions may still be visited.
    left: usize,
}

impl Walk {
    pub(in crate::isolate) fn new(cx: Cx, layout: Layout) -> Self {
        /// That takes some 10 ms.
        const MOST_VISITS: usize = 100_000;
        let thenables = jobs::thenables(cx, layout.jobs, MOST_VISITS).into_iter().collect();
        Self { layout, thenables, left: MOST_VISITS }
    }

    /// The ends of all chains that begin with a pending promise, to which those that will settle it have so many
    /// references. None where one chain has come to a settled promise, for then the code waited for the first of many; and
    /// none where the way is too long.
    pub(in crate::isolate) fn ends(&mut self, promise: Raw, references: i32) -> Vec<ChainEnd> {
        let (mut ends, mut visited) = (Vec::new(), HashSet::new());
        let mut open = vec![Step { promise, references: Some(references) }];
        while let Some(step) = open.pop() {
            let Some(left) = self.left.checked_sub(1) else { return Vec::new() };
            self.left = left;
            if !is_pending(self.layout, step.promise) {
                return Vec::new();
            }
            if !visited.insert(address_of(step.promise)) {
                continue;
            }
            let about_to = self.thenables.get(&address_of(step.promise)).copied();
            open.extend(about_to.map(|promise| Step { promise, references: None }));
            if !is_handled(self.layout, step.promise) && about_to.is_none() {
                ends.push(step);
            }
            for (fulfilled, rejected) in reactions(self.layout, step.promise) {
                let Some(left) = self.left.checked_sub(1) else { return Vec::new() };
                self.left = left;
                followers(self.layout, fulfilled, rejected, &mut open);
            }
        }
        ends
    }
}

/// Adds the promises that a reaction leads to. None if it leads to the host, or if nothing is known of it.
fn followers(layout: Layout, fulfilled: &Reaction, rejected: &Reaction, found: &mut Vec<Step>) {
    let handlers = [fulfilled.handler, rejected.handler];
    if let Some(promise) = waiting_function(layout, handlers[0]) {
        found.push(Step { promise, references: Some(OF_RESOLVING) });
        return;
    }
    let settled = handlers.map(|handler| settled_by(layout, handler));
    if let [Some(first), Some(second)] = settled
        && address_of(first) == address_of(second)
    {
        found.push(Step { promise: first, references: Some(OF_RESOLVING) });
        return;
    }
    // One of them stands for both: the other one is an element of `Promise.all` or `Promise.any`, or code.
    if let Some(promise) = settled[0].or(settled[1]) {
        let is_element = handlers.iter().any(|handler| values(layout, *handler).is_some());
        found.push(Step { promise, references: is_element.then_some(OF_RESOLVING) });
        return;
    }
    if let Some(values) = handlers.iter().find_map(|handler| values(layout, *handler)) {
        match values.get(SETTLES_ALL).and_then(|value| settled_by(layout, *value)) {
            Some(promise) => found.push(Step { promise, references: None }),
            // A function with a number is the host's; `finally` has the promise that it returns.
            None if values.first().is_some_and(|value| tag_of(*value) == sys::JS_TAG_INT) => {}
            None => derived(layout, fulfilled, found),
        }
        return;
    }
    let closures = handlers.map(|handler| frames::closure(layout.frames, handler));
    if closures.iter().flatten().any(|closure| closure.is_trusted) {
        return;
    }
    let captured = closures.iter().flatten().flat_map(|closure| &closure.captured);
    let before = found.len();
    let settled = captured.filter_map(|value| settled_by(layout, *value));
    found.extend(settled.map(|promise| Step { promise, references: None }));
    if found.len() == before {
        derived(layout, fulfilled, found);
    }
}

/// Adds the promise that `then` returned.
fn derived(layout: Layout, reaction: &Reaction, found: &mut Vec<Step>) {
    let promise = settled_by(layout, reaction.resolving[0]);
    found.extend(promise.map(|promise| Step { promise, references: Some(OF_RESOLVING) }));
}

/// The promise of the function that goes on when a handler is called.
fn waiting_function(layout: Layout, handler: Raw) -> Option<Raw> {
    let class = class_of(handler);
    if class == layout.jobs.awaits[0] {
        let function = opaque(handler).cast::<AsyncFunction>();
        // SAFETY: a function of that class keeps the function that waits alive.
        let resolve = unsafe { function.as_ref() }?.resolve();
        return settled_by(layout, resolve);
    }
    let generators = layout.jobs.generators;
    if class == generators.class {
        // SAFETY: a function of that class has such a record.
        let record = unsafe { opaque(handler).cast::<FunctionData>().as_ref() }?;
        if ptr::eq(record.function, generators.function) {
            // SAFETY: the value is a generator, whose data has its requests there.
            return unsafe { requested(record.data, generators.queue) };
        }
    }
    None
}

/// The promise that a function of the engine settles; `None` for any other value.
fn settled_by(layout: Layout, function: Raw) -> Option<Raw> {
    let class = class_of(function);
    let settles = class == layout.jobs.resolve || class == layout.reject;
    if settles { resolved_by(function) } else { None }
}

/// The values of a function that the engine, or this crate, made with some.
fn values(layout: Layout, function: Raw) -> Option<&'static [Raw]> {
    if class_of(function) != layout.jobs.generators.class {
        return None;
    }
    // SAFETY: a function of that class has such a record, with so many values. The caller keeps the function alive for as
    // long as it reads them.
    unsafe {
        let record = opaque(function).cast::<FunctionData>().as_ref()?;
        Some(std::slice::from_raw_parts(&raw const record.data, usize::from(record.counts[1])))
    }
}

fn data(layout: Layout, promise: Raw) -> Option<&'static PromiseData> {
    if class_of(promise) != layout.jobs.promise {
        return None;
    }
    // SAFETY: the data of a live promise, whose structure `layout` proved. The callers read it at once.
    unsafe { opaque(promise).cast::<PromiseData>().as_ref() }
}

/// The only reaction to a promise.
fn only_reaction(layout: Layout, promise: Raw) -> Option<(&'static Reaction, &'static Reaction)> {
    let mut reactions = reactions(layout, promise);
    let first = reactions.next()?;
    reactions.next().is_none().then_some(first)
}

/// The reactions to a pending promise: each to its fulfilment, and to its rejection. The engine keeps two lists that are
/// equally long.
fn reactions(
    layout: Layout,
    promise: Raw,
) -> impl Iterator<Item = (&'static Reaction, &'static Reaction)> {
    let heads = data(layout, promise).map(|data| data.reactions.each_ref().map(ptr::from_ref));
    let mut at = heads;
    std::iter::from_fn(move || {
        let (heads, here) = (heads?, at?);
        // SAFETY: the engine links live reactions in rings with their heads, and nothing runs meanwhile.
        unsafe {
            let next = [(*here[0]).next.cast_const(), (*here[1]).next.cast_const()];
            at = Some(next);
            let is_end = ptr::eq(next[0], heads[0]) || ptr::eq(next[1], heads[1]);
            let pair = next.map(|link| &*link.cast::<Reaction>());
            (!is_end).then_some((pair[0], pair[1]))
        }
    })
}

/// The layout, found once per process in less than a millisecond.
pub(in crate::isolate) fn layout() -> Option<Layout> {
    static LAYOUT: PerProcess<OnceLock<Option<Layout>>> = PerProcess::new();
    *LAYOUT.get_or_init(OnceLock::new).get_or_init(|| {
        let (jobs, frames) = (jobs::layout()?, frames::probe::layout()?);
        try_out(|cx, _| examine(cx, jobs, frames))
    })
}

fn examine(cx: Cx, jobs: jobs::Layout, frames: frames::Layout) -> Option<Layout> {
    let run = |text: &CStr| {
        let length = text.count_bytes() as sys::size_t;
        // SAFETY: the context lives, and a C string ends with a zero byte.
        cx.own(unsafe { sys::JS_Eval(cx.0, text.as_ptr(), length, c"probe".as_ptr(), 0) }).ok()
    };
    let same = |found: Option<Raw>, wanted: Raw| {
        found.is_some_and(|it| is_object(it) && address_of(it) == address_of(wanted))
    };
    let pending = run(c"const pending = new Promise(() => {}); pending")?;
    let mut layout = Layout { jobs, frames, reject: 0 };
    let promise = pending.raw();
    let began = class_of(promise) == jobs.promise
        && is_pending(layout, promise)
        && !is_handled(layout, promise)
        && !is_told(layout, promise)
        && reactions(layout, promise).next().is_none();
    let derived = run(c"pending.then(function () {})")?;
    layout.reject = class_of(only_reaction(layout, promise)?.0.resolving[1]);
    let (first, second) = only_reaction(layout, promise)?;
    let is_derived = first.resolving.iter().zip(&second.resolving).all(|(first, second)| {
        same(settled_by(layout, *first), derived.raw()) && same(Some(*second), *first)
    }) && layout.reject != jobs.resolve
        && is_handled(layout, promise)
        && !is_handled(layout, derived.raw());
    // Two functions settle it, and this refers to it.
    let before = references(layout, derived.raw());
    let again = derived.clone();
    let counted = before == OF_RESOLVING + 1 && references(layout, again.raw()) == before + 1;
    drop(again);
    tell(layout, promise);
    let told = is_told(layout, promise) && !is_told(layout, derived.raw());
    let waits = run(c"(async function () { await pending; })()")?;
    let race = run(c"Promise.race([pending])")?;
    let all = run(c"Promise.all([pending])")?;
    let settled = run(c"Promise.allSettled([pending])")?;
    let outer = run(c"new Promise((yes, no) => pending.then((it) => yes(it), (it) => no(it)))")?;
    finish(cx);
    let mut found = Vec::new();
    for (fulfilled, rejected) in reactions(layout, promise) {
        followers(layout, fulfilled, rejected, &mut found);
    }
    let wanted = [&derived, &waits, &race, &all, &settled, &outer, &outer];
    let leads = found.len() == wanted.len()
        && found.iter().zip(wanted).all(|(step, wanted)| same(Some(step.promise), wanted.raw()));
    (began && is_derived && counted && told && leads).then_some(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reactions_of_this_engine_are_known() {
        assert!(layout().is_some());
    }
}
