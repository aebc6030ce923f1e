//! Unhandled rejections, and exceptions out of bare jobs.
//!
//! In: the engine's events about promises. Out: at settlement, a log of level `error` for each rejection that is still
//! unhandled, one with a count for those that say the same, unless the caller brought a console of its own. Keeps the
//! contract's rule that none of these fails a run.

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

use std::{ffi::c_void, ptr};

use rustc_hash::FxHashMap;

use super::{
    engine::{Cx, Local, Raw, address_of, sys},
    exception,
    state::State,
    trampoline,
};

use crate::data::outcome::LogLevel;

/// How many unhandled rejections are remembered; a run that makes more shows the first ones.
const REMEMBERED: usize = 1_000;

/// Makes the runtime report rejections to this file.
pub(super) fn install(runtime: *mut sys::JSRuntime) {
    // SAFETY: a live runtime; the function finds the run's state through the context.
    unsafe { sys::JS_SetHostPromiseRejectionTracker(runtime, track, ptr::null_mut()) }
}

unsafe extern "C-unwind" fn track(
    ctx: *mut sys::JSContext,
    promise: Raw,
    reason: Raw,
    handled: bool,
    _opaque: *mut c_void,
) {
    trampoline::enter(ctx, |state| {
        let cx = Cx(ctx);
        let mut unhandled = state.unhandled.borrow_mut();
        if handled {
            unhandled.retain(|(known, _)| address_of(known.raw()) != address_of(promise));
        } else if unhandled.len() < REMEMBERED {
            unhandled.push((cx.dup(promise), cx.dup(reason)));
        }
        Ok(cx.dup(sys::JS_UNDEFINED))
    });
}

impl State {
    /// Logs the rejections that are still unhandled when the run settles.
    pub(super) fn log_unhandled(&self) {
        let unhandled = std::mem::take(&mut *self.unhandled.borrow_mut());
        if self.own_console.get() {
            return;
        }
        // In the order in which each was first seen. A flood of calls that nobody awaits fails in one way.
        let mut texts: Vec<String> = Vec::new();
        let mut counts: FxHashMap<String, usize> = FxHashMap::default();
        for (_, reason) in unhandled {
            let text = format!("Uncaught (in promise) {}", exception::headline(self, reason.raw()));
            let count = counts.entry(text.clone()).or_default();
            *count += 1;
            if *count == 1 {
                texts.push(text);
            }
        }
        for text in texts {
            match counts.get(&text) {
                Some(count @ 2..) => {
                    self.log_text(LogLevel::Error, &format!("{text} ({count} times)"));
                }
                _ => self.log_text(LogLevel::Error, &text),
            }
        }
    }

    /// Logs an exception out of a bare job.
    pub(super) fn log_uncaught(&self, prefix: &str, thrown: &Local) {
        if self.own_console.get() {
            return;
        }
        let text = format!("{prefix} {}", exception::headline(self, thrown.raw()));
        self.log_text(LogLevel::Error, &text);
    }
}
