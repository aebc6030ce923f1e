//! Promises that the run waits for.
//!
//! In: a promise, or a value that may be one. Out: a [`Signal`] in the run's state, once it has settled.

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

use std::ffi::c_int;

use super::{
    engine::{Cx, Local, Outcome, Raw, int_of, is_promise, sys, undefined},
    signal::{REJECTED, RESOLVED, Signal},
    state::State,
    trampoline,
};

/// Makes the engine notify the run when a promise settles; a rejection ends the run.
pub(super) fn await_promise(state: &State, promise: Raw, what: c_int) -> Outcome<()> {
    await_numbered(state, promise, what, 0)
}

/// The same, with a number for the signal.
pub(super) fn await_numbered(state: &State, promise: Raw, what: c_int, number: u32) -> Outcome<()> {
    let cx = state.realm().cx;
    if let Some(value) = cx.fulfilled(promise)
        && is_next(cx)
    {
        state.signal.replace(Some(Signal { what, number, value }));
        return Ok(());
    }
    let fulfilled = cx.numbered_function(signal, what, number)?;
    let rejected = cx.numbered_function(signal, REJECTED, 0)?;
    cx.then(promise, fulfilled.raw(), rejected.raw())
}

/// Makes the engine notify the run when a value has resolved, as one `await` of it would.
pub(super) fn await_value(state: &State, value: Local) -> Outcome<()> {
    let cx = state.realm().cx;
    if is_next(cx) && !is_promise(value.raw()) && cx.is_its_own_outcome(value.raw())? {
        state.signal.replace(Some(Signal::of(RESOLVED, value)));
        return Ok(());
    }
    await_promise(state, state.promise_of(value.raw())?.raw(), RESOLVED)
}

impl State {
    /// The promise that one `await` of a value would wait for: of a promise, that itself, without a call of its `then`.
    pub(super) fn promise_of(&self, value: Raw) -> Outcome<Local> {
        let intrinsics = self.realm().intrinsics;
        self.realm().cx.call(intrinsics.promise_resolve, intrinsics.promise, &[value])
    }
}

/// Whether a job queued now would run next. Then a known reaction need not be queued: no code could tell the
/// difference.
pub(super) fn is_next(cx: Cx) -> bool {
    // SAFETY: a live runtime, entered on this thread.
    unsafe { !sys::JS_IsJobPending(sys::JS_GetRuntime(cx.0)) }
}

unsafe extern "C-unwind" fn signal(
    ctx: *mut sys::JSContext,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    what: c_int,
    data: *mut Raw,
) -> Raw {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        // SAFETY: `await_numbered` made the function with one number.
        let number = int_of(unsafe { *data }).cast_unsigned();
        let value = cx.dup(trampoline::args(argc, argv).first().copied().unwrap_or(undefined()));
        state.signal.replace(Some(Signal { what, number, value }));
        Ok(cx.dup(undefined()))
    })
}
