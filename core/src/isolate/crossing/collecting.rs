//! The entries of a Map and the members of a Set.
//!
//! In: a collection, and the engine's own `forEach`. Out: its content, charged while it is collected. Runs no code of the
//! sandbox.

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

use std::ffi::c_int;

use crate::isolate::{
    engine::{Cx, Local, Outcome, Raw, sys, undefined},
    state::{Collected, State},
    trampoline::{args, enter},
};

/// The function that the `forEach` of a Map or a Set calls while the collection is read.
pub(in crate::isolate) fn collector(cx: Cx) -> Outcome<Local> {
    cx.c_function(collect, c"", 0, 0)
}

unsafe extern "C-unwind" fn collect(
    ctx: *mut sys::JSContext,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    _magic: c_int,
) -> Raw {
    enter(ctx, |state| {
        let cx = Cx(ctx);
        if let [value, key, ..] = args(argc, argv) {
            let mut collected = state.collected.borrow_mut();
            let room = 2 * (collected.items.len() + 1).next_power_of_two() * size_of::<Local>();
            if room > collected.charged {
                state.keep(room - collected.charged);
                collected.charged = room;
            }
            if collected.pairs {
                collected.items.push(cx.dup(*key));
            }
            collected.items.push(cx.dup(*value));
        }
        Ok(cx.dup(undefined()))
    })
}

impl State {
    /// The entries of a Map (key, value, key, value) or the members of a Set.
    pub(in crate::isolate) fn collect(
        &self,
        for_each: Raw,
        collection: Raw,
        pairs: bool,
    ) -> Outcome<Vec<Local>> {
        let realm = self.realm();
        self.collected.borrow_mut().pairs = pairs;
        let done = realm.cx.call(for_each, collection, &[realm.intrinsics.collector]);
        let Collected { items, charged, .. } = std::mem::take(&mut *self.collected.borrow_mut());
        self.let_go(charged);
        done.map(|_| items)
    }
}
