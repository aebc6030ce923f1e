//! The entries from the engine into this crate.
//!
//! In: a call of the engine, by a context that finds the run's state. Out: the state, for the function that answers the
//! call. A panic there is limited to the end of one run. The engine calls functions of this crate only through [`enter`];
//! the interrupt handler calls [`on_poll`].

#![expect(unsafe_code, reason = "the engine calls these functions with raw pointers")]

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use super::{
    engine::{Cx, Local, Outcome, Raw, Thrown, sys},
    memory::{
        escape::{catch_panic, leave},
        interrupt::PollState,
    },
    realm::Realm,
    state::State,
};

impl Realm {
    /// Lets the functions of this crate find the run's state.
    pub(super) fn attach(&self, state: &State) {
        self.set_opaque(ptr::from_ref(state).cast_mut().cast());
    }

    /// After this the functions of this crate find no run.
    pub(super) fn detach(&self) {
        self.set_opaque(ptr::null_mut());
    }

    fn set_opaque(&self, state: *mut c_void) {
        self.cx.set_opaque(state);
        if let Some(parts) = self.session {
            parts.modules().set_opaque(state);
        }
    }
}

/// The entry from the engine into this crate.
///
/// A panic here is a bug of ours. It ends the run, not the process, and no more code of the run is evaluated.
pub(super) fn enter(ctx: *mut sys::JSContext, body: impl FnOnce(&State) -> Outcome<Local>) -> Raw {
    let cx = Cx(ctx);
    let state = cx.opaque().cast::<State>();
    if state.is_null() {
        return sys::JS_EXCEPTION;
    }
    // SAFETY: the run puts its state there before any code runs and removes it afterwards.
    let state = unsafe { &*state };
    match catch_panic(|| body(state)) {
        Ok(Ok(value)) => value.into_raw(),
        Ok(Err(Thrown)) => sys::JS_EXCEPTION,
        Err(_panic) => {
            state.fail();
            leave()
        }
    }
}

/// The arguments as the engine passes them.
pub(super) fn args<'a>(count: c_int, values: *mut Raw) -> &'a [Raw] {
    let count = usize::try_from(count).unwrap_or(0);
    if count == 0 || values.is_null() {
        return &[];
    }
    // SAFETY: the engine passes that many values, alive for as long as the call lasts.
    unsafe { std::slice::from_raw_parts(values, count) }
}

/// Called by the engine now and then while code runs.
pub(super) fn on_poll(polls: &mut PollState) -> bool {
    let now = polls.now;
    // SAFETY: whoever arms the instance sets it to the state, which lives for as long as the run is armed.
    let state = unsafe { &*polls.host.cast::<State>() };
    if catch_panic(|| state.outside(|embedder| embedder.poll(now))).is_err() {
        state.fail();
    }
    state.must_end()
}
