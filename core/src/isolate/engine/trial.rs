//! A context in a heap of its own, in which the engine is tried out.
//!
//! In: a trial. Out: its result. The context has what code needs to run, and is gone with its heap after the trial.

use super::{Cx, sys};
use crate::isolate::memory::{
    escape,
    heap::{Heap, new_runtime},
};

/// The result of a trial; `None` also if there is no memory for it.
pub(in crate::isolate) fn try_out<T>(trial: impl FnOnce(Cx, &Heap) -> Option<T>) -> Option<T> {
    let heap = Heap::in_process();
    heap.set_leaves(true);
    let tried = escape::catch(|| {
        let runtime = new_runtime(&heap)?;
        let intrinsics = [
            sys::JS_AddIntrinsicBaseObjects,
            sys::JS_AddIntrinsicEval,
            sys::JS_AddIntrinsicRegExp,
            sys::JS_AddIntrinsicPromise,
        ];
        // SAFETY: a live runtime, and a live context of it unless it is null; the heap is dropped with all its content.
        let context = unsafe {
            let context = sys::JS_NewContextRaw(runtime);
            let ready = !context.is_null() && intrinsics.iter().all(|add| add(context) == 0);
            ready.then_some(Cx(context))
        }?;
        trial(context, &heap)
    });
    tried.ok().flatten()
}
