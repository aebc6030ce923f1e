//! A home: an instance in which sessions take turns.
//!
//! In: a lease of the pool. Out: [`Tenant`]s, each with a state of its own, of which one at a time is *in place*: in the
//! instance. All others are at rest, as snapshots. A state consists of the content of the slot and of everything that
//! the instance keeps beside it: the accounting, the polls, the flag that asks the run to end.
//!
//! A tenant belongs to one home for life, because the engine's values are addresses. A fork belongs to the home of its
//! parent. A tenant stays in place until another one comes, so a session that is alone in its home is never moved. A
//! plain instance has no snapshots, so it is the home of one tenant.
#![expect(unsafe_code, reason = "hands an instance from thread to thread")]

use super::{
    instance::{Away, Instance, Realm},
    pool::Lease,
    slot::CLEARED_BY_HAND_BYTES,
    snapshot::{Live, Snapshot},
};
use crate::{
    data::portable::Input,
    os::sync::{Condvar, Mutex},
};
use std::cell::{RefCell, UnsafeCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of free blocks that a snapshot may have: a share of those in use, and some more.
const FREE_SHARE: usize = 16;
const FREE_BYTES: usize = 64 << 10;

/// An instance and its queue.
pub(crate) struct Home<R: Realm> {
    /// Differs from that of every other home of the process.
    number: u64,
    /// The state of the instance as the pool gave it; `None` for a plain instance.
    pristine: Option<Snapshot>,
    /// Of the thread that made `queue` busy.
    place: Place<R>,
    queue: Mutex<Queue>,
    left: Condvar,
}

// SAFETY: `place` is used by one thread at a time: the one that found the queue idle and made it busy. The queue's lock
// orders these threads. The rest is `Sync`.
unsafe impl<R: Realm> Sync for Home<R> {}

/// In cells, because a thread that steps aside keeps its reference to the instance.
struct Place<R: Realm> {
    lease: UnsafeCell<Lease<R>>,
    /// The tenant whose state is in the instance.
    resident: RefCell<Option<Arc<State>>>,
    /// The snapshot that the range is equal to, where there is no resident and it is known.
    vacant: RefCell<Option<Snapshot>>,
}

/// Threads take turns in the order in which they came.
#[derive(Default)]
struct Queue {
    busy: bool,
    next_ticket: u64,
    served: u64,
    /// Whether it ever had a tenant.
    let_out: bool,
}

/// The state of a tenant, as far as it is outside of the instance. The lock is never waited for: it is taken by the
/// thread that has the home.
struct State(Mutex<AtRest>);

struct AtRest {
    /// The last snapshot, or the tenant's origin; `None` in a plain instance.
    snapshot: Option<Snapshot>,
    /// The instance's epoch when it was equal to the snapshot, for the resident.
    epoch: u64,
    /// The bytes of the last snapshot that was taken without free pages, which is not worth it at each.
    tidy_page_bytes: usize,
    /// `None` for the resident, and for a tenant that was never in place.
    away: Option<Away>,
    /// The tenant is dropped, so nobody needs its state.
    gone: bool,
}

/// A state in a home. Dropped with everything in it; snapshots and forks stay.
pub(crate) struct Tenant<R: Realm> {
    home: Arc<Home<R>>,
    state: Arc<State>,
}

/// A tenant in its place: this thread alone uses the instance.
pub(crate) struct Occupied<'a, R: Realm> {
    tenant: &'a Tenant<R>,
}

impl<R: Realm> Home<R> {
    /// Makes a home of an instance that was just taken from the pool.
    pub(crate) fn new(lease: Lease<R>) -> Arc<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let pristine = lease.slot().and_then(|slot| {
            // Small pages: a snapshot is made of these.
            slot.expect(0);
            Snapshot::pristine(number, slot, lease.heap())
        });
        let place = Place {
            lease: UnsafeCell::new(lease),
            resident: RefCell::default(),
            vacant: RefCell::new(pristine.clone()),
        };
        Arc::new(Self { number, pristine, place, queue: Mutex::default(), left: Condvar::new() })
    }

    /// Whether it can have several tenants, and snapshots of them.
    pub(crate) fn is_shared(&self) -> bool {
        self.pristine.is_some()
    }

    /// Waits until no other thread uses the instance.
    fn enter(&self) {
        let mut queue = self.queue.lock();
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        while queue.busy || queue.served != ticket {
            queue = self.left.wait(queue);
        }
        queue.served += 1;
        queue.busy = true;
    }

    /// As `enter`, if nobody uses the instance or waits for it.
    fn try_enter(&self) -> bool {
        let mut queue = self.queue.lock();
        if queue.busy || queue.served != queue.next_ticket {
            return false;
        }
        queue.next_ticket += 1;
        queue.served += 1;
        queue.busy = true;
        true
    }

    fn leave(&self) {
        self.queue.lock().busy = false;
        self.left.notify_all();
    }
}

impl<R: Realm> Place<R> {
    /// # Safety
    /// This thread made the queue busy, and `rebuild` is not called while the reference is used.
    unsafe fn instance(&self) -> &Instance<R> {
        // SAFETY: as the caller promises. Others may refer to the instance without using it.
        unsafe { &*self.lease.get() }
    }

    /// Puts the state of a tenant into the instance, and the resident's to rest.
    ///
    /// # Safety
    /// This thread made the queue busy.
    unsafe fn seat(&self, state: &Arc<State>) {
        if self.has(state) {
            return;
        }
        // SAFETY: as the caller promises.
        let instance = unsafe { self.instance() };
        let live = match self.resident.take() {
            Some(resident) => resident.move_out(instance),
            None => Live {
                high_bytes: instance.heap().mark().high_bytes(),
                snapshot: self.vacant.take(),
            },
        };
        state.move_in(instance, &live);
        self.resident.replace(Some(Arc::clone(state)));
    }

    fn has(&self, state: &Arc<State>) -> bool {
        self.resident.borrow().as_ref().is_some_and(|resident| Arc::ptr_eq(resident, state))
    }

    /// Forgets the resident, and the memory that only it needed. `epoch`: that of the instance when it was equal to the
    /// snapshot.
    ///
    /// # Safety
    /// This thread made the queue busy.
    unsafe fn vacate(&self, pristine: &Snapshot, snapshot: Option<Snapshot>, epoch: u64) {
        // SAFETY: as the caller promises.
        let instance = unsafe { self.instance() };
        let Some(slot) = instance.slot() else { return };
        self.resident.take();
        let snapshot = snapshot.filter(|_| !instance.is_entered() && instance.epoch() == epoch);
        let away = instance.move_out();
        let high_bytes = away.figures().high_bytes();
        drop(away);
        if high_bytes > pristine.figures().high_bytes() + CLEARED_BY_HAND_BYTES {
            // SAFETY: this thread has the instance, and the tenant is gone.
            unsafe { pristine.put(slot, &Live { high_bytes, ..Live::default() }) };
            instance.heap().set_figures(pristine.figures());
            self.vacant.replace(Some(pristine.clone()));
        } else {
            // The next tenant then knows which pages to write.
            self.vacant.replace(snapshot);
        }
    }
}

impl State {
    fn new(snapshot: Option<Snapshot>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(AtRest {
            snapshot,
            epoch: 0,
            tidy_page_bytes: 0,
            away: None,
            gone: false,
        })))
    }

    /// Puts the resident to rest; returns the content of the range.
    fn move_out<R: Realm>(&self, instance: &Instance<R>) -> Live {
        let mut rest = self.0.lock();
        let high_bytes = instance.heap().mark().high_bytes();
        if rest.gone {
            drop(instance.move_out());
            return Live { high_bytes, ..Live::default() };
        }
        let is_behind = rest.prepare(instance);
        let away = instance.move_out();
        if is_behind {
            // SAFETY: this thread has the instance, and the flag of the run is detached.
            unsafe { rest.catch_up(instance) };
        }
        rest.away = Some(away);
        Live { high_bytes, snapshot: rest.snapshot.clone() }
    }

    /// Puts the tenant into the instance, whose range has that content.
    fn move_in<R: Realm>(&self, instance: &Instance<R>, live: &Live) {
        let mut rest = self.0.lock();
        let Some(snapshot) = rest.snapshot.clone() else { return };
        let away = rest.away.take();
        // SAFETY: this thread has the instance, and the former resident has been moved out.
        unsafe { rest.put(instance, snapshot, live, away) };
    }
}

impl AtRest {
    /// Whether the snapshot is behind the instance. If so, gives free memory back first.
    fn prepare<R: Realm>(&self, instance: &Instance<R>) -> bool {
        let is_behind = instance.is_entered() || self.epoch != instance.epoch();
        if is_behind && !instance.is_poisoned() {
            instance.heap().give_back_free();
        }
        is_behind
    }

    /// Whether much of a snapshot is the content of free blocks.
    fn is_untidy<R: Realm>(&self, instance: &Instance<R>, snapshot: Option<&Snapshot>) -> bool {
        let tidy_bytes = self.tidy_page_bytes.max(instance.heap().used_bytes());
        let most_bytes = tidy_bytes + tidy_bytes / FREE_SHARE + FREE_BYTES;
        let has_many = snapshot.is_some_and(|snapshot| snapshot.page_bytes() > most_bytes);
        has_many && !instance.is_entered() && !instance.is_poisoned()
    }

    /// Brings the snapshot up to date with the instance.
    ///
    /// # Safety
    /// This thread has the instance, and no other thread writes to its range.
    unsafe fn catch_up<R: Realm>(&mut self, instance: &Instance<R>) {
        let (Some(slot), Some(snapshot)) = (instance.slot(), self.snapshot.take()) else { return };
        // SAFETY: as the caller promises.
        let mut next = unsafe { snapshot.next(slot, instance.heap()) };
        if self.is_untidy(instance, next.as_ref()) {
            instance.heap().clear_free();
            // SAFETY: as the caller promises.
            next = next.and_then(|next| unsafe { next.next(slot, instance.heap()) });
            self.tidy_page_bytes = next.as_ref().map_or(0, Snapshot::page_bytes);
        }
        self.snapshot = next;
        self.epoch = instance.epoch();
    }

    /// Puts a snapshot into the instance, whose range has the content `live`. `away`: the run that goes on, if any.
    ///
    /// # Safety
    /// This thread has the instance. No run is in it, and no other thread writes to its range.
    unsafe fn put<R: Realm>(
        &mut self,
        instance: &Instance<R>,
        snapshot: Snapshot,
        live: &Live,
        away: Option<Away>,
    ) {
        let Some(slot) = instance.slot() else { return };
        // SAFETY: as the caller promises.
        unsafe { snapshot.put(slot, live) };
        instance.heap().set_figures(snapshot.figures());
        let away = away.unwrap_or_else(|| Away::at_rest(instance, snapshot.figures().clone()));
        instance.move_in(away);
        self.epoch = instance.epoch();
        self.snapshot = Some(snapshot);
    }
}

impl<R: Realm> Tenant<R> {
    /// A tenant with the pristine state. `None` if this is a plain instance and had its tenant.
    pub(crate) fn new(home: &Arc<Home<R>>) -> Option<Self> {
        let had_one = std::mem::replace(&mut home.queue.lock().let_out, true);
        (!had_one || home.is_shared()).then(|| Self::with(home, home.pristine.clone()))
    }

    /// A tenant of the same home with the state of a snapshot.
    pub(crate) fn fork(&self, snapshot: &Snapshot) -> Self {
        assert_eq!(snapshot.home(), self.home.number, "a snapshot belongs to its home");
        Self::with(&self.home, Some(snapshot.clone()))
    }

    /// The only tenant of a new home, with the state that a snapshot of another process's home wrote, whose slot has the
    /// same identity. `None` if it is none of such a slot.
    pub(crate) fn read(home: &Arc<Home<R>>, input: &mut Input) -> Option<(Self, Snapshot)> {
        home.queue.lock().let_out = true;
        home.enter();
        // SAFETY: this thread just made the queue busy.
        let slot = unsafe { home.place.instance() }.slot();
        let snapshot = slot.and_then(|slot| Snapshot::read(input, home.number, slot));
        home.leave();
        let snapshot = snapshot?;
        Some((Self::with(home, Some(snapshot.clone())), snapshot))
    }

    fn with(home: &Arc<Home<R>>, snapshot: Option<Snapshot>) -> Self {
        Self { home: Arc::clone(home), state: State::new(snapshot) }
    }

    pub(crate) fn home(&self) -> &Arc<Home<R>> {
        &self.home
    }

    /// Waits for the home if another tenant has it, and puts this one in place. Waits for ever where this thread has it.
    pub(crate) fn occupy(&self) -> Occupied<'_, R> {
        self.home.enter();
        // SAFETY: this thread just made the queue busy.
        unsafe { self.home.place.seat(&self.state) };
        Occupied { tenant: self }
    }

    /// Leaves the home to others while the function runs, and then occupies it again. The code may be in the middle of
    /// an entry.
    ///
    /// # Safety
    /// This thread has occupied the tenant. The function does not use the instance, nor anything of the engine in it.
    pub(crate) unsafe fn step_aside<T>(&self, wait: impl FnOnce() -> T) -> T {
        let _back = Back(self);
        self.home.leave();
        wait()
    }
}

/// Occupies the tenant again, after a panic too.
struct Back<'a, R: Realm>(&'a Tenant<R>);

impl<R: Realm> Drop for Back<'_, R> {
    fn drop(&mut self) {
        std::mem::forget(self.0.occupy());
    }
}

impl<R: Realm> Drop for Tenant<R> {
    fn drop(&mut self) {
        let mut rest = self.state.0.lock();
        rest.gone = true;
        rest.away = None;
        let (snapshot, epoch) = (rest.snapshot.take(), rest.epoch);
        drop(rest);
        // Otherwise the next tenant finds that this one is gone.
        if self.home.try_enter() {
            if let Some(pristine) = &self.home.pristine
                && self.home.place.has(&self.state)
            {
                // SAFETY: this thread just made the queue busy.
                unsafe { self.home.place.vacate(pristine, snapshot, epoch) };
            }
            self.home.leave();
        }
    }
}

impl<R: Realm> Occupied<'_, R> {
    pub(crate) fn instance(&self) -> &Instance<R> {
        // SAFETY: this thread made the queue busy, and `rebuild` is called by a function that borrows `self` for itself.
        unsafe { self.tenant.home.place.instance() }
    }

    /// Takes a snapshot of the state between two runs. `None` in a plain instance.
    ///
    /// Gives free memory back where it is much, and shares all pages that are as they were at the last snapshot.
    pub(crate) fn checkpoint(&self) -> Option<Snapshot> {
        let instance = self.instance();
        assert!(!instance.is_entered(), "no snapshot while code runs");
        let mut rest = self.tenant.state.0.lock();
        let heap = instance.heap();
        if rest.prepare(instance) {
            // Nobody hurries the engine meanwhile: that writes to the range.
            let account = heap.take_account();
            // SAFETY: this thread has the instance, and the flag of the run is detached.
            unsafe { rest.catch_up(instance) };
            heap.set_account(account);
        } else if let Some(snapshot) = &rest.snapshot {
            // The tables of a run may have changed without the engine.
            rest.snapshot = snapshot.with_figures(heap);
        }
        rest.snapshot.clone()
    }

    /// Puts the state of a snapshot in place, whatever happened since. The run is over; the next one must `rearm`.
    pub(crate) fn recall(&mut self, snapshot: &Snapshot) {
        assert_eq!(snapshot.home(), self.tenant.home.number, "a snapshot belongs to its home");
        let instance = self.instance();
        assert!(!instance.is_entered(), "no rolling back while code runs");
        let mut rest = self.tenant.state.0.lock();
        let live = Live { high_bytes: instance.heap().mark().high_bytes(), snapshot: None };
        drop(instance.move_out());
        // SAFETY: this thread has the instance, and the flag of the run is detached.
        unsafe { rest.put(instance, snapshot.clone(), &live, None) };
    }

    /// Puts the pristine state in place. False if this is a plain instance and no other one can be made.
    pub(crate) fn recall_pristine(&mut self) -> bool {
        if let Some(pristine) = &self.tenant.home.pristine {
            self.recall(pristine);
            return true;
        }
        // SAFETY: this thread made the queue busy, and nobody else has borrowed `self`. A plain instance has one tenant, so
        // no thread has stepped aside.
        unsafe { &mut *self.tenant.home.place.lease.get() }.rebuild()
    }
}

impl<R: Realm> Drop for Occupied<'_, R> {
    fn drop(&mut self) {
        self.tenant.home.leave();
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(isolane_portable)))]
#[path = "home_tests.rs"]
mod tests;
