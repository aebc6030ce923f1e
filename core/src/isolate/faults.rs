//! Refusals of the engine's requests, on purpose. Compiled for tests only.
//!
//! In: a [`Plan`] for this thread: the request to refuse, and the fate of those after it. Out: each request for memory
//! (a block that is new or grows, a charge, a range of addresses) asks [`refuses`] first. A refusal counts as the limit
//! hit, exactly there.
//!
//! The engine requests small blocks by the page, so most of its allocations are no requests. [`crowd`] leaves it so few
//! that it has to request one where a test wants. Built with `CFLAGS=-D__SANITIZE_ADDRESS__`, as for that sanitizer, it
//! makes a request for each block.
#![expect(unsafe_code, reason = "allocates in the engine's heap")]

use super::engine::sys;
use std::{cell::Cell, ffi::c_void};

/// The requests to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nothing; requests are counted.
    Count,
    /// The n-th request, counted from 1.
    Once(u64),
    /// The n-th and all after it.
    On(u64),
}

thread_local! {
    static ARMED: Cell<Option<Plan>> = const { Cell::new(None) };
    static SEEN: Cell<u64> = const { Cell::new(0) };
    static REFUSED: Cell<u64> = const { Cell::new(0) };
}

/// Counts of the requests while a plan was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) requests: u64,
    pub(crate) refused: u64,
}

/// Runs a function with that plan in force on this thread.
pub(crate) fn with<T>(plan: Plan, body: impl FnOnce() -> T) -> (T, Seen) {
    let _armed = Armed::new(plan);
    let result = body();
    (result, Seen { requests: SEEN.get(), refused: REFUSED.get() })
}

/// Whether this request is to be refused.
pub(crate) fn refuses() -> bool {
    let Some(plan) = ARMED.get() else { return false };
    let number = SEEN.get() + 1;
    SEEN.set(number);
    let refused = match plan {
        Plan::Count => false,
        Plan::Once(first) => number == first,
        Plan::On(first) => number >= first,
    };
    REFUSED.set(REFUSED.get() + u64::from(refused));
    refused
}

struct Armed;

impl Armed {
    fn new(plan: Plan) -> Self {
        SEEN.set(0);
        REFUSED.set(0);
        ARMED.set(Some(plan));
        Self
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        ARMED.set(None);
    }
}

/// Uses up the small blocks that the engine has in hand, of every size, except for `spare` of each. They are gone when
/// the heap is restored or dropped.
pub(super) fn crowd(runtime: *mut sys::JSRuntime, spare: &mut dyn FnMut() -> usize) {
    const LARGEST_SMALL_BYTES: sys::size_t = 504;
    for bytes in (8..=LARGEST_SMALL_BYTES).step_by(8) {
        let mut taken: Vec<*mut c_void> = Vec::new();
        loop {
            // SAFETY: a live runtime, not at work.
            let allocate = || unsafe { sys::js_malloc_rt(runtime, bytes) };
            let (block, seen) = with(Plan::Count, allocate);
            taken.push(block);
            if seen.requests > 0 {
                break;
            }
        }
        // The last block opened a new page, which is freed with it.
        for block in taken.iter().rev().take(spare() + 1) {
            // SAFETY: allocated above, and forgotten here.
            unsafe { sys::js_free_rt(runtime, *block) };
        }
    }
}
