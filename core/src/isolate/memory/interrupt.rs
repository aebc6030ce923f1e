//! The engine's interrupt handler, which stops running code.
//!
//! In: calls of the handler by the engine. Out: continue, or leave the engine for good, which no code can catch. A run
//! stops when its heap says that it must end (it hit the limit, or the caller asked), or when its hook says so.
//!
//! The engine polls once per 10,000 calls and backward jumps. That is soon enough for a loop of additions and far too
//! late for one whose every step is a builtin at work for milliseconds. So the handler reads the clock and sets the
//! number of steps until the next poll itself.
#![expect(unsafe_code, reason = "the engine's interrupt handler")]

use super::{countdown::Countdown, escape, heap::Heap};
use crate::isolate::engine::{frames, sys as qjs};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// The engine's own period, and the longest here.
const LONGEST_PERIOD: i32 = 10_000;
/// At the start of a run nothing is known about its code.
const FIRST_PERIOD: i32 = 4;
/// Polls further apart than this make the period shorter.
const LONG_GAP: Duration = Duration::from_millis(1);
/// Polls closer than this make it longer. In between it stays: a poll costs 0.1 to 0.3 µs, and with a longer period the
/// handler would notice later that the code has changed. Code that turns from quick steps to slow ones is noticed after
/// some thousand slow ones, so a cap in a hook can be seconds late. A caller that has to be on time raises the run's
/// `Termination`, which is noticed in one step.
const SHORT_GAP: Duration = Duration::from_micros(50);

/// So many polls may come between the first interruption and the exit from the engine.
const MOST_INTERRUPTED: u8 = 8;

/// Called at each poll, on the engine's thread, from within the engine: it must not call back into it, nor panic.
/// Returns whether to leave it.
pub(crate) type Hook = fn(&mut PollState) -> bool;

/// The handler's state. It lies at one address outside of the engine's heap.
pub(crate) struct PollState {
    /// The time of this poll, or of the run's arming.
    pub(crate) now: Instant,
    /// The time since the poll before.
    pub(crate) gap: Duration,
    /// Polls in this run, this one included.
    pub(crate) polls: u64,
    /// The hook's own data: its setter keeps it alive for as long as the run is armed.
    pub(crate) host: *mut c_void,
    hook: Option<Hook>,
    heap: ManuallyDrop<Heap>,
    /// Where the engine counts down to the next poll.
    countdown: Countdown,
    period: i32,
    /// Polls since the engine was first told to interrupt the run.
    interrupted: u8,
}

impl PollState {
    /// # Safety
    /// `heap` and `countdown` outlive every poll.
    pub(crate) unsafe fn new(heap: &Heap, countdown: Countdown) -> Self {
        Self {
            // SAFETY: the caller vouches for it.
            heap: unsafe { heap.alias() },
            now: Instant::now(),
            gap: Duration::ZERO,
            polls: 0,
            host: std::ptr::null_mut(),
            hook: None,
            countdown,
            period: FIRST_PERIOD,
            interrupted: 0,
        }
    }

    /// Resets the state for a run.
    pub(crate) fn arm(&mut self, hook: Option<Hook>, host: *mut c_void) {
        self.now = Instant::now();
        self.gap = Duration::ZERO;
        self.polls = 0;
        self.hook = hook;
        self.host = host;
        self.period = FIRST_PERIOD;
        self.interrupted = 0;
        self.countdown.set(FIRST_PERIOD);
    }

    /// Forgets the hook and its data.
    pub(crate) fn disarm(&mut self) {
        self.hook = None;
        self.host = std::ptr::null_mut();
    }

    /// Removes the time that the code waited for the host from the current gap.
    pub(crate) fn skip(&mut self, waited: Duration) {
        self.now = self.now.checked_add(waited).unwrap_or(self.now);
    }

    /// Whether the engine is to make the error of an interruption.
    fn poll(&mut self, runtime: *mut qjs::JSRuntime) -> bool {
        let now = Instant::now();
        self.gap = now.saturating_duration_since(self.now);
        self.now = now;
        self.polls += 1;
        self.heap.heed_in_flight();
        if self.heap.must_end() || self.hook.is_some_and(|hook| hook(self)) {
            return self.interrupt();
        }
        self.period = next_period(self.period, self.gap);
        self.countdown.set(self.period);
        heed_limit(runtime, &self.heap);
        false
    }

    /// Ends the run. While the engine makes the error of an interruption, [`scene`] notes where the code is, and leaves the
    /// engine. If that does not come about within a few polls, a later poll leaves it.
    ///
    /// [`scene`]: crate::isolate::scene
    fn interrupt(&mut self) -> bool {
        // Without a host nobody notes the place, and without the layout of frames nobody knows it.
        let is_noted =
            !self.host.is_null() && self.heap.tells_places() && frames::probe::layout().is_some();
        if self.interrupted >= MOST_INTERRUPTED || !is_noted {
            escape::leave();
        }
        self.interrupted += 1;
        self.countdown.set(1);
        // The second one is for a poll of our own, while the engine made another error.
        matches!(self.interrupted, 1 | 5)
    }
}

/// The place where the handler finds its state: at one address for as long as the runtime lives, while the runs whose
/// states these are may take turns.
pub(crate) struct PollSeat(Cell<NonNull<PollState>>);

impl PollSeat {
    pub(crate) fn new(state: NonNull<PollState>) -> Self {
        Self(Cell::new(state))
    }

    pub(crate) fn state(&self) -> *mut PollState {
        self.0.get().as_ptr()
    }

    /// Seats another state; returns the one before.
    pub(crate) fn replace(&self, state: NonNull<PollState>) -> NonNull<PollState> {
        self.0.replace(state)
    }
}

fn next_period(period: i32, gap: Duration) -> i32 {
    if gap > LONG_GAP {
        (period / 8).max(1)
    } else if gap < SHORT_GAP {
        period.saturating_mul(2).min(LONGEST_PERIOD)
    } else {
        period
    }
}

/// Has the engine collect cycles before the limit is hit. Left alone the engine waits until the heap has grown by half
/// since the last time, and a run with much alive would be ended for its garbage.
pub(crate) fn heed_limit(runtime: *mut qjs::JSRuntime, heap: &Heap) {
    let limit = heap.limit_bytes();
    // SAFETY: the runtime that this heap belongs to; neither call runs any code.
    unsafe {
        if bytes(qjs::JS_GetGCThreshold(runtime)) > limit {
            // The threshold is half way to the limit from here. So collections come more often near the limit, but
            // never at every step.
            let room = limit.saturating_sub(heap.used_bytes());
            let threshold = heap.used_bytes().saturating_add((room / 2).max(limit / 64));
            qjs::JS_SetGCThreshold(runtime, threshold as qjs::size_t);
        }
    }
}

fn bytes(size: qjs::size_t) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// For `JS_SetInterruptHandler`, with a `PollSeat` as its opaque pointer.
pub(crate) unsafe extern "C-unwind" fn handler(
    runtime: *mut qjs::JSRuntime,
    opaque: *mut c_void,
) -> c_int {
    // SAFETY: the instance that set the handler keeps the seat and its state for as long as the runtime lives. It touches
    // the state only while no code runs, or from within a host call, which is no poll. A run that steps aside within a
    // poll takes its state along.
    let interrupts = unsafe { &mut *(*opaque.cast::<PollSeat>()).state() }.poll(runtime);
    c_int::from(interrupts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spent_waiting_is_not_the_codes() {
        let heap = Heap::in_process();
        // SAFETY: the heap outlives the state.
        let mut state = unsafe { PollState::new(&heap, Countdown::NONE) };
        state.arm(None, std::ptr::null_mut());
        let before = state.now;
        state.skip(Duration::from_secs(1));
        assert_eq!(state.now, before + Duration::from_secs(1));
    }

    #[test]
    fn the_period_follows_the_gaps() {
        let (slow, fit, quick) =
            (Duration::from_millis(5), Duration::from_micros(100), Duration::from_micros(1));
        assert_eq!(next_period(10_000, slow), 1_250);
        assert_eq!(next_period(4, slow), 1);
        assert_eq!(next_period(64, fit), 64);
        assert_eq!(next_period(64, quick), 128);
        assert_eq!(next_period(9_000, quick), 10_000);
    }
}
