//! The places of thrown values that are no errors.
//!
//! In: the stack that the engine writes when such a value is thrown, and the value that ended a run. Out: the frames of
//! the throw, if that value was the last one. The engine writes such a stack while it has no other for its context: it keeps
//! the first one since the last `catch` of the code. So this file takes it away before each job. The value is known by its
//! identity, and no reference to it is kept.

#![expect(
    unsafe_code,
    reason = "calls a function of the engine with a variable number of arguments"
)]

use std::ffi::c_int;

use super::{
    engine::{Cx, Raw, sys, tag_of},
    last_throw::{LONGEST, Thrown, identity},
    session::parts::Parts,
    state::State,
};

impl State {
    /// Notes a throw. A value that comes back from an `await` in a later job keeps the place of its first throw.
    pub(super) fn note_throw(&self, value: Raw, stack: &[u8]) {
        let Ok(mut last) = self.last_throw.try_borrow_mut() else { return };
        let (identity, job) = (identity(value), last.job);
        match &mut last.thrown {
            Some(thrown) if thrown.identity == identity && thrown.job != job => thrown.job = job,
            thrown => {
                let stack = stack.get(..LONGEST.min(stack.len())).unwrap_or_default().to_vec();
                *thrown = Some(Thrown { identity, job, stack });
            }
        }
    }

    /// The stack of the last throw, if it was of that value.
    pub(super) fn stack_of_throw(&self, value: Raw) -> Option<Vec<u8>> {
        let last = self.last_throw.try_borrow().ok()?;
        let thrown = last.thrown.as_ref().filter(|thrown| thrown.identity == identity(value))?;
        Some(thrown.stack.clone())
    }

    /// A job begins. Forgets the last throw if the job before has caught it.
    pub(super) fn note_job(&self) {
        let realm = self.realm();
        let parts = realm.session.map(Parts::modules);
        let mut is_caught = true;
        for cx in [Some(realm.cx), parts].into_iter().flatten() {
            is_caught &= !takes_stack(cx);
        }
        if let Ok(mut last) = self.last_throw.try_borrow_mut() {
            let job = last.job;
            last.thrown.take_if(|thrown| is_caught && thrown.job == job);
            last.job += 1;
        }
    }
}

/// Takes the stack away that a context keeps; whether it kept one.
fn takes_stack(cx: Cx) -> bool {
    /// `js_std_cmd`'s number for it.
    const TAKE_STACK: c_int = 2;
    let mut stack = sys::JS_UNDEFINED;
    // SAFETY: the engine expects a live context and a place for a value, whose reference it gives away.
    unsafe { sys::js_std_cmd(TAKE_STACK, cx.0, &raw mut stack) };
    cx.own(stack).is_ok_and(|stack| tag_of(stack.raw()) != sys::JS_TAG_UNDEFINED)
}
