//! An instance, in which one run lives: a runtime with a pristine realm, its heap, and its interrupts.
//!
//! In: a function that builds the realm, then a run's limit and flag. Out: the realm, entered; and after the run the
//! same instance again, pristine, or nothing. There are two kinds, which are the same to their users. An instance in a
//! slot is restored from its image; a plain one, on memory from the process's own allocator, serves one run. The engine
//! never tears either down: no finalizer runs, so nothing in the engine's heap may own anything outside of it.
#![expect(unsafe_code, reason = "makes and enters runtimes of the engine")]

use super::{
    calibrate::{self, Fields},
    countdown::Countdown,
    escape::{self, Left},
    exchange::{Account, Figures},
    heap::{Heap, new_runtime},
    interrupt::{self, Hook, PollSeat, PollState},
    slot::Slot,
    termination::Termination,
};
use crate::{isolate::engine::sys as qjs, os::process};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

/// Cycles are not collected before a heap is this large (a pristine one is a tenth of it), or half way to its limit. So
/// most runs never collect.
const FIRST_COLLECTION_BYTES: usize = 2 << 20;

/// The things built in a runtime: plain pointers and values, valid at one address for as long as the instance is,
/// because a restore brings back the objects that they point at.
pub(crate) trait Realm: Copy + 'static {
    /// The context that sandbox code runs in.
    fn context(&self) -> *mut qjs::JSContext;

    /// Another context that code runs in, or null.
    fn second_context(&self) -> *mut qjs::JSContext {
        ptr::null_mut()
    }

    /// Frees everything that was built, every context included, so that the engine finds nothing left when it frees the
    /// runtime. Only a check, in debug builds.
    ///
    /// # Safety
    /// Called once, with the runtime that it was built in, which is pristine.
    unsafe fn free(self, runtime: *mut qjs::JSRuntime);
}

/// Builds a realm; `None` if it cannot. All settings of the runtime belong here (stack limit, module loader, handlers
/// other than the interrupt handler): a restore undoes later ones. It should touch every class that can be touched.
pub(crate) type Build<R> = fn(*mut qjs::JSRuntime) -> Option<R>;

/// The parts of a run that its instance needs.
pub(crate) struct Run {
    /// The limit for all that the run makes anyone hold, the pristine realm included.
    pub(crate) limit_bytes: usize,
    /// Raised by any thread to end the run.
    pub(crate) termination: Arc<Termination>,
    /// Called at every poll, with `host` in the state that it gets.
    pub(crate) hook: Option<Hook>,
    pub(crate) host: *mut c_void,
}

impl Run {
    /// A run with a limit, and no hook.
    #[cfg(test)]
    pub(crate) fn with_limit(limit_bytes: usize) -> Self {
        Self { limit_bytes, termination: Arc::default(), hook: None, host: ptr::null_mut() }
    }
}

/// One runtime, for one run at a time, on one thread at a time.
pub(crate) struct Instance<R: Realm> {
    runtime: *mut qjs::JSRuntime,
    realm: R,
    fields: Fields,
    build: Build<R>,
    /// Owned, with the state in it; at one address for life, because the engine keeps the address.
    polls: NonNull<PollSeat>,
    heap: Heap,
    /// The range under `heap`, so dropped after it; `None` in a plain instance.
    slot: Option<Slot>,
    /// How many entries are on the stack.
    entries: Cell<usize>,
    poisoned: Cell<bool>,
    /// Changes whenever the engine may have written to its memory.
    epoch: Cell<u64>,
}

/// A run while the instance has the content of another: everything about it that lies outside of the range.
pub(crate) struct Away {
    account: Account,
    figures: Figures,
    /// Owned.
    polls: NonNull<PollState>,
    entries: usize,
    poisoned: bool,
}

// SAFETY: as for `Instance`, to which all of it belongs.
unsafe impl Send for Away {}

impl Away {
    /// No run, in a heap with such a content.
    pub(crate) fn at_rest<R: Realm>(instance: &Instance<R>, figures: Figures) -> Self {
        let polls = instance.new_polls();
        Self { account: Account::default(), figures, polls, entries: 0, poisoned: false }
    }

    pub(crate) fn figures(&self) -> &Figures {
        &self.figures
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        // SAFETY: leaked by whoever made it; in no seat.
        drop(unsafe { Box::from_raw(self.polls.as_ptr()) });
    }
}

// SAFETY: it owns all that it points at. It is not `Sync`, so one thread at a time uses it, and on entry the engine
// learns that thread's stack.
unsafe impl<R: Realm> Send for Instance<R> {}

impl<R: Realm> Instance<R> {
    /// An instance in a slot. `None` if there are no addresses for it, if the engine's random state is not known (every
    /// run would draw the same numbers), or if the realm cannot be built.
    pub(crate) fn in_slot(build: Build<R>) -> Option<Self> {
        let fields = calibrate::fields();
        fields.random_state?;
        let range = Slot::reserve()?;
        let heap = Heap::in_range(&range)?;
        let mut instance = Self::start(heap, build, fields)?;
        // SAFETY: no code of the runtime is on any stack.
        unsafe { qjs::JS_RunGC(instance.runtime) };
        instance.slot = Some(Slot::take_image(range, &instance.heap)?);
        Some(instance)
    }

    /// A plain instance; `None` if the realm cannot be built.
    pub(crate) fn plain(build: Build<R>) -> Option<Self> {
        Self::start(Heap::in_process(), build, calibrate::fields())
    }

    fn start(heap: Heap, build: Build<R>, fields: Fields) -> Option<Self> {
        heap.set_leaves(true);
        let built = escape::catch(|| {
            let runtime = new_runtime(&heap)?;
            // SAFETY: the runtime was just made.
            unsafe { qjs::JS_SetGCThreshold(runtime, FIRST_COLLECTION_BYTES as qjs::size_t) };
            Some((runtime, build(runtime)?))
        });
        heap.set_leaves(false);
        let (runtime, realm) = built.ok().flatten()?;
        // SAFETY: the counters are in the realm's contexts, which live as long as heap and polls are
        // used; the state is freed when the runtime is never used again.
        let polls = unsafe {
            let countdown = countdown(realm, fields);
            heap.set_countdown(countdown);
            let state = NonNull::from(Box::leak(Box::new(PollState::new(&heap, countdown))));
            let polls = NonNull::from(Box::leak(Box::new(PollSeat::new(state))));
            let handler: Option<qjs::InterruptHandler> = Some(interrupt::handler);
            qjs::JS_SetInterruptHandler(runtime, handler, polls.as_ptr().cast());
            polls
        };
        let (entries, poisoned, epoch) = (Cell::new(0), Cell::new(false), Cell::new(0));
        Some(Self {
            runtime,
            realm,
            fields,
            build,
            polls,
            heap,
            slot: None,
            entries,
            poisoned,
            epoch,
        })
    }

    /// Prepares a run: accounting, interrupts, random numbers. Allocates nothing in the heap and cannot fail.
    pub(crate) fn arm(&self, run: Run) {
        debug_assert_eq!(self.entries.get(), 0, "armed while code runs");
        if let Some(slot) = &self.slot {
            slot.expect(run.limit_bytes);
        }
        self.heap.arm(run.limit_bytes, run.termination);
        self.arm_engine(run.hook, run.host);
    }

    /// As `arm`, for a further run which finds what earlier ones left. No restore in between: that stays charged, and the
    /// size of pages stays as it is.
    pub(crate) fn rearm(&self, run: Run) {
        debug_assert_eq!(self.entries.get(), 0, "armed while code runs");
        self.heap.rearm(run.limit_bytes, run.termination);
        self.arm_engine(run.hook, run.host);
    }

    /// Ends a run whose remains stay. Up to the next `rearm` there is no limit, and nothing ends what runs.
    pub(crate) fn rest(&self) {
        debug_assert_eq!(self.entries.get(), 0, "ended while code runs");
        // SAFETY: no code runs, so no poll does.
        unsafe { (*self.seat().state()).disarm() };
        self.heap.rest();
    }

    fn arm_engine(&self, hook: Option<Hook>, host: *mut c_void) {
        self.epoch.set(self.epoch.get() + 1);
        interrupt::heed_limit(self.runtime, &self.heap);
        // SAFETY: no code runs, so no poll does.
        unsafe { (*self.seat().state()).arm(hook, host) };
        if let Some(random_state) = field::<u64, R>(self.realm, self.fields.random_state) {
            // SAFETY: the field is in the realm's context, aligned, and a `u64`.
            unsafe { *random_state = process::random().max(1) };
        }
    }

    /// Gives the addresses back that no run under this limit, or a lower one, can reach; for good. For a process that
    /// has one run and limits its addresses. Returns the number of bytes.
    pub(crate) fn trim(&self, limit_bytes: usize) -> usize {
        self.slot.as_ref().map_or(0, |slot| slot.trim(&self.heap, limit_bytes))
    }

    /// The one way into the engine. Within it, on the same thread, a caller may enter again, and may call the engine.
    ///
    /// An escape leaves all of the engine, down to the first entry. Then nothing that was made in the instance may be
    /// used again, and the instance can only be finished.
    pub(crate) fn enter<T>(&self, run: impl FnOnce(R) -> T) -> Result<T, Left> {
        if self.entries.get() > 0 {
            let entry = Entry::new(self);
            let result = run(self.realm);
            entry.leave();
            return Ok(result);
        }
        // Not on a nested entry: each entry would then have the whole limit to itself.
        // SAFETY: the runtime lives, and this is the thread that is about to use it.
        unsafe { qjs::JS_UpdateStackTop(self.runtime) };
        let entry = Entry::new(self);
        let result = escape::catch(|| run(self.realm));
        entry.leave();
        result
    }

    /// Reads the run's values without its limits, for the run may have to end, and then the engine would get no memory.
    pub(crate) fn enter_unaccounted<T>(&self, read: impl FnOnce() -> T) -> Result<T, Left> {
        let account = self.heap.take_account();
        let found = self.enter(|_| read());
        self.heap.set_account(account);
        found
    }

    /// Ends the run, whatever it left behind. Returns the same instance, pristine, or none if it is a plain one. Read
    /// the run's figures from the heap's accounting before.
    pub(crate) fn finish(self) -> Option<Self> {
        let slot = self.slot.as_ref()?;
        // SAFETY: the instance is not entered, because an entry borrows it. No value made in it is used again, because
        // only the realm may be kept.
        unsafe {
            (*self.seat().state()).disarm();
            slot.restore(&self.heap);
        }
        Some(self)
    }

    pub(crate) fn realm(&self) -> R {
        self.realm
    }

    #[cfg(test)]
    pub(crate) fn runtime(&self) -> *mut qjs::JSRuntime {
        self.runtime
    }

    pub(crate) fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Removes the time that the code waited for the host from the gap that the hook sees. For host calls, not for
    /// hooks.
    pub(crate) fn skip_clock(&self, waited: Duration) {
        // SAFETY: a host call is no poll, so nothing else refers to the state.
        unsafe { (*self.seat().state()).skip(waited) }
    }

    /// Takes everything outside of the range that belongs to the run. The content of the range may then be exchanged for
    /// that of the run which `move_in` gets. The run may be in the middle of an entry: then its thread must wait until
    /// the run is back.
    ///
    /// # Panics
    /// In a plain instance, whose content nobody can exchange.
    pub(crate) fn move_out(&self) -> Away {
        let account = self.heap.take_account();
        Away {
            account,
            figures: self.heap.figures().expect("an instance in a slot"),
            polls: self.seat().replace(self.new_polls()),
            entries: self.entries.replace(0),
            poisoned: self.poisoned.replace(false),
        }
    }

    /// Goes on with a run whose content the range has by now.
    pub(crate) fn move_in(&self, away: Away) {
        let mut away = away;
        self.heap.set_figures(&away.figures);
        self.heap.set_account(std::mem::take(&mut away.account));
        self.entries.set(away.entries);
        self.poisoned.set(away.poisoned);
        // The former content of the seat is dropped with `away`.
        away.polls = self.seat().replace(away.polls);
    }

    /// Builds a plain instance anew in the place of this one; false if the realm cannot be built.
    pub(crate) fn rebuild(&mut self) -> bool {
        debug_assert!(self.slot.is_none() && self.entries.get() == 0, "plain, and not in use");
        let epoch = self.epoch.get() + 1;
        let Some(instance) = Self::plain(self.build) else { return false };
        *self = instance;
        self.epoch.set(epoch);
        true
    }

    /// A number that differs from an earlier one if the engine may have written to its memory since.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    /// Whether code is on a stack.
    pub(crate) fn is_entered(&self) -> bool {
        self.entries.get() > 0
    }

    /// The polls of no run, for the seat; leaked.
    fn new_polls(&self) -> NonNull<PollState> {
        // SAFETY: contexts and heap live for as long as the engine polls.
        let polls = unsafe { PollState::new(&self.heap, countdown(self.realm, self.fields)) };
        NonNull::from(Box::leak(Box::new(polls)))
    }

    fn seat(&self) -> &PollSeat {
        // SAFETY: leaked by `start`, freed by `drop`, and only ever shared.
        unsafe { self.polls.as_ref() }
    }

    /// The slot, unless this is a plain instance.
    pub(crate) fn slot(&self) -> Option<&Slot> {
        self.slot.as_ref()
    }

    /// Checks that the accounting agrees with the blocks.
    #[cfg(test)]
    pub(crate) fn unbalanced(&self) -> Result<(), String> {
        let (used, counted) = (self.heap.used_bytes(), self.heap.counted_bytes());
        match counted {
            Some(counted) if counted != used => Err(format!("{used} bytes used, {counted} held")),
            _ => Ok(()),
        }
    }

    /// Marks the instance as not to be used again, after something that should not have happened in it.
    pub(crate) fn mark_odd(&self) {
        self.poisoned.set(true);
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.get()
    }
}

impl<R: Realm> Drop for Instance<R> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.as_ref()
            && cfg!(debug_assertions)
        {
            // SAFETY: as in `finish`. It is pristine, so the engine's own teardown must work. Nothing but the
            // accounting is used after it.
            unsafe {
                slot.restore(&self.heap);
                qjs::JS_UpdateStackTop(self.runtime);
                self.realm.free(self.runtime);
                qjs::JS_FreeRuntime(self.runtime);
            }
            debug_assert_eq!(self.heap.used_bytes(), 0, "bytes that nobody freed");
        }
        // SAFETY: leaked by `start` or `move_out`; the runtime is never used again.
        unsafe {
            drop(Box::from_raw(self.seat().state()));
            drop(Box::from_raw(self.polls.as_ptr()));
        }
    }
}

/// One entry; a panic poisons the instance.
struct Entry<'a, R: Realm> {
    instance: &'a Instance<R>,
    left: bool,
}

impl<'a, R: Realm> Entry<'a, R> {
    fn new(instance: &'a Instance<R>) -> Self {
        instance.entries.set(instance.entries.get() + 1);
        instance.heap.set_leaves(true);
        Self { instance, left: false }
    }

    fn leave(mut self) {
        self.left = true;
    }
}

impl<R: Realm> Drop for Entry<'_, R> {
    fn drop(&mut self) {
        let entries = self.instance.entries.get() - 1;
        self.instance.epoch.set(self.instance.epoch.get() + 1);
        self.instance.entries.set(entries);
        self.instance.heap.set_leaves(entries > 0);
        if !self.left && !escape::has_left() {
            self.instance.poisoned.set(true);
        }
    }
}

/// The engine's counts of polls in the realm's contexts.
///
/// # Safety
/// Used while the realm lives.
unsafe fn countdown<R: Realm>(realm: R, fields: Fields) -> Countdown {
    let place = |context: *mut qjs::JSContext| match fields.interrupt_counter {
        // SAFETY: calibrated in a context of the same engine, so it lies within this one.
        Some(offset) if !context.is_null() => unsafe { context.byte_add(offset).cast() },
        _ => ptr::null_mut(),
    };
    // SAFETY: as the caller promises.
    unsafe { Countdown::new([place(realm.context()), place(realm.second_context())]) }
}

/// A field of the realm's context, if its offset is known.
fn field<T, R: Realm>(realm: R, offset: Option<usize>) -> Option<*mut T> {
    // SAFETY: calibrated in a context of the same engine, so it lies within this one.
    offset.map(|offset| unsafe { realm.context().byte_add(offset).cast() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolate::memory::test_realm::{LEFT, TestRealm, build, run};

    #[test]
    fn an_engine_that_is_not_known_still_runs_and_stops() {
        let fields = Fields { random_state: None, interrupt_counter: None };
        let instance: Instance<TestRealm> =
            Instance::start(Heap::in_process(), build, fields).expect("a plain instance");
        let termination = Arc::<Termination>::default();
        instance.arm(Run { termination: Arc::clone(&termination), ..Run::with_limit(64 << 20) });
        assert_eq!(run(&instance, "let n = 0; while (n < 1e5) n++; n"), "100000");
        termination.raise();
        assert_eq!(run(&instance, "for (;;);"), LEFT);
    }

    #[test]
    fn a_home_left_by_a_panic_is_odd() {
        let instance: Instance<TestRealm> = Instance::plain(build).expect("a plain instance");
        instance
            .enter(|realm| assert_eq!(realm.context(), instance.realm().context()))
            .expect("stayed");
        instance.skip_clock(Duration::from_secs(1));
        assert!(!instance.is_poisoned());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = instance.enter(|_| panic!("as the test wants"));
        }));
        assert!(panicked.is_err() && instance.is_poisoned());
    }
}
