//! A pool of instances.
//!
//! In: a function that builds a realm, and the number of instances to keep. Out: pristine instances, taken last in,
//! first out (the one used last is still in the caches), and taken back after a run. Neither wakes a thread: that costs
//! more than making an instance. The caller makes instances ahead of need when it has time ([`Pool::fill`]).
//!
//! Instances in slots are quickest but hold twice their image when parked, so their number is bounded. Beyond it, and
//! for limits larger than a slot's addresses allow, instances are plain.
//!
//! There are two kinds of realms: *extended* ones have the extension of the process, at the cost of a larger image. A run
//! that does not need it gets one only if it is ready and no other one is.

use super::{
    instance::{Build, Instance, Realm},
    slot::LARGEST_LIMIT_BYTES,
};
use crate::os::{sanitized, sync::Mutex};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Numbers of instances, and their lifetime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolOptions {
    /// Made ahead of need, and kept pristine.
    pub(crate) ready: usize,
    /// Kept beyond those when they are returned. This should be the number in use at once; otherwise instances made
    /// meanwhile would be dropped again and again.
    pub(crate) spare: usize,
    /// Slots at once, in use or parked.
    pub(crate) max_slots: usize,
    /// Slots reserved for runs that cannot wait. A run that waits keeps its slot for as long as its host likes.
    pub(crate) kept_slots: usize,
    /// Runs after which a slot is made anew.
    pub(crate) runs_per_slot: u32,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self { ready: 4, spare: 0, max_slots: 64, kept_slots: 0, runs_per_slot: 10_000 }
    }
}

/// Counters since the pool was made, except for the first two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolStats {
    /// Parked, pristine.
    pub(crate) ready: usize,
    /// In use or parked.
    pub(crate) slots: usize,
    pub(crate) made_in_slots: u64,
    pub(crate) made_plain: u64,
    /// Takes that found an instance ready.
    pub(crate) taken_ready: u64,
    pub(crate) taken: u64,
    /// Slots that were not parked again: used up, poisoned, or more than are kept.
    pub(crate) retired: u64,
}

/// Keeps instances of one kind of realm.
pub(crate) struct Pool<R: Realm> {
    build: Build<R>,
    build_extended: Build<R>,
    /// Whether the last run needed an extended realm: the next one probably will.
    is_extended: AtomicBool,
    options: PoolOptions,
    ready: Mutex<Vec<Lease<R>>>,
    /// False once the pool is closed: it then keeps no instance.
    open: AtomicBool,
    slots: Arc<AtomicUsize>,
    /// Slots of runs that may wait.
    waiting: Arc<AtomicUsize>,
    made_in_slots: AtomicU64,
    made_plain: AtomicU64,
    taken_ready: AtomicU64,
    taken: AtomicU64,
    retired: AtomicU64,
}

/// An instance on loan. If it is dropped instead of given back, it is gone, and its place in the pool is free.
pub(crate) struct Lease<R: Realm> {
    instance: Instance<R>,
    is_extended: bool,
    runs: u32,
    /// Held by an instance in a slot. Dropped after the instance, so that the slot is gone when it is counted off.
    permit: Option<SlotPermit>,
    /// Held while a run that may wait has the slot.
    waiting: Option<SlotPermit>,
}

/// The right of a home of sessions to a slot. Parked runs leave some of these.
pub(crate) struct HomePermit(SlotPermit);

impl<R: Realm> Deref for Lease<R> {
    type Target = Instance<R>;

    fn deref(&self) -> &Instance<R> {
        &self.instance
    }
}

impl<R: Realm> Lease<R> {
    /// Builds a plain instance anew; false if that cannot be done.
    pub(super) fn rebuild(&mut self) -> bool {
        self.instance.rebuild()
    }
}

impl<R: Realm> Pool<R> {
    /// A pool with nothing in it yet.
    pub(crate) fn new(build: Build<R>, options: PoolOptions) -> Self {
        Self {
            build,
            build_extended: build,
            is_extended: AtomicBool::new(false),
            options,
            ready: Mutex::default(),
            open: AtomicBool::new(true),
            slots: Arc::default(),
            waiting: Arc::default(),
            made_in_slots: AtomicU64::new(0),
            made_plain: AtomicU64::new(0),
            taken_ready: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            retired: AtomicU64::new(0),
        }
    }

    /// The same pool, with a function that builds extended realms.
    pub(crate) fn with_extended(self, build_extended: Build<R>) -> Self {
        Self { build_extended, ..self }
    }

    /// Has the pool make extended instances ahead of need, until a run takes another one.
    pub(crate) fn expect_extended(&self) {
        self.is_extended.store(true, Ordering::Relaxed);
    }

    /// A pristine instance for a run with that limit, made now if none is ready. `None` if no realm can be built, which
    /// means that the process is out of memory. `may_wait`: whether the run was given anything to wait for.
    pub(crate) fn take(&self, limit_bytes: usize, may_wait: bool) -> Option<Lease<R>> {
        self.take_kind(limit_bytes, may_wait, false)
    }

    /// The same, for a run that needs an extended realm. `None` too if that cannot be built.
    pub(crate) fn take_extended(&self, limit_bytes: usize, may_wait: bool) -> Option<Lease<R>> {
        self.take_kind(limit_bytes, may_wait, true)
    }

    fn take_kind(&self, limit_bytes: usize, may_wait: bool, is_extended: bool) -> Option<Lease<R>> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.is_extended.store(is_extended, Ordering::Relaxed);
        if limit_bytes > LARGEST_LIMIT_BYTES {
            return self.make_plain(is_extended);
        }
        if !may_wait {
            return self.take_ready_or_make(is_extended);
        }
        let most = self.options.max_slots.saturating_sub(self.options.kept_slots);
        let Some(waiting) = SlotPermit::take(&self.waiting, most) else {
            return self.make_plain(is_extended);
        };
        let lease = self.take_ready_or_make(is_extended)?;
        Some(Lease { waiting: lease.permit.is_some().then_some(waiting), ..lease })
    }

    /// The right to a slot for a home of sessions; `None` if runs that wait have all. Where sessions have no home yet, they
    /// get one in any case: without a slot no cell of theirs could be rolled back.
    pub(crate) fn permit_home(&self, is_first: bool) -> Option<HomePermit> {
        let most = self.options.max_slots.saturating_sub(self.options.kept_slots);
        SlotPermit::take(&self.waiting, if is_first { usize::MAX } else { most }).map(HomePermit)
    }

    /// A pristine instance for a home of sessions with that limit: in a slot with a permit, else a plain one.
    pub(crate) fn take_home(
        &self,
        permit: Option<HomePermit>,
        limit_bytes: usize,
        is_extended: bool,
    ) -> Option<Lease<R>> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.is_extended.store(is_extended, Ordering::Relaxed);
        let Some(HomePermit(waiting)) = permit.filter(|_| limit_bytes <= LARGEST_LIMIT_BYTES)
        else {
            return self.make_plain(is_extended);
        };
        let lease = match self.take_ready(is_extended) {
            Some(lease) if lease.permit.is_some() => lease,
            // A few more than the others have.
            _ => self.make_in(usize::MAX, is_extended)?,
        };
        Some(Lease { waiting: lease.permit.is_some().then_some(waiting), ..lease })
    }

    fn take_ready_or_make(&self, is_extended: bool) -> Option<Lease<R>> {
        self.take_ready(is_extended).or_else(|| self.make(is_extended))
    }

    fn take_ready(&self, is_extended: bool) -> Option<Lease<R>> {
        let ready = {
            let mut ready = self.ready.lock();
            match ready.iter().rposition(|lease| lease.is_extended == is_extended) {
                Some(place) => Some(ready.remove(place)),
                None if is_extended => None,
                None => ready.pop(),
            }
        };
        if ready.is_some() {
            self.taken_ready.fetch_add(1, Ordering::Relaxed);
        }
        ready
    }

    /// Takes an instance back after its run, whatever was left in it.
    pub(crate) fn give_back(&self, lease: Lease<R>) {
        let Lease { instance, is_extended, runs, permit, waiting } = lease;
        drop(waiting);
        let runs = runs + 1;
        let worn = instance.is_poisoned() || runs >= self.options.runs_per_slot;
        let seated = permit.is_some();
        let instance = if worn { None } else { instance.finish() };
        if let Some(instance) = instance {
            let mut ready = self.ready.lock();
            let has_room = ready.len() < self.most(self.options.spare);
            let replaced = if has_room { None } else { self.replaceable(&ready, is_extended) };
            if has_room || replaced.is_some() {
                let replaced = replaced.map(|place| ready.remove(place));
                ready.push(Lease { instance, is_extended, runs, permit, waiting: None });
                drop(ready);
                if replaced.is_some_and(|lease| lease.permit.is_some()) {
                    self.retired.fetch_add(1, Ordering::Relaxed);
                }
                return;
            }
        }
        if seated {
            self.retired.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The place of an instance of the other kind than this one, if runs need this kind now.
    fn replaceable(&self, ready: &[Lease<R>], is_extended: bool) -> Option<usize> {
        let is_needed = self.is_extended.load(Ordering::Relaxed) == is_extended;
        ready.iter().position(|other| is_needed && other.is_extended != is_extended)
    }

    /// Makes instances until enough are ready, or the caller is needed elsewhere; off the path of any run.
    pub(crate) fn fill(&self, is_needed_elsewhere: impl Fn() -> bool) {
        while self.ready.lock().len() < self.most(0) && !is_needed_elsewhere() {
            let is_extended = self.is_extended.load(Ordering::Relaxed);
            let Some(lease) = self.make(is_extended) else { return };
            let mut ready = self.ready.lock();
            if ready.len() < self.most(self.options.spare) {
                // Below the used ones: it is the last to be needed.
                ready.insert(0, lease);
            }
        }
    }

    /// Gives back the addresses of the ready instances that no run under this limit can reach; for good. For a process
    /// that has one run. Returns the number of bytes.
    pub(crate) fn trim(&self, limit_bytes: usize) -> usize {
        self.ready.lock().iter().map(|lease| lease.instance.trim(limit_bytes)).sum()
    }

    /// The most that may be ready, with that many to spare.
    fn most(&self, spare: usize) -> usize {
        let open = self.open.load(Ordering::Relaxed);
        if open { self.options.ready.saturating_add(spare) } else { 0 }
    }

    /// Drops every ready instance, and keeps none from now on.
    pub(crate) fn close(&self) {
        let ready = {
            let mut ready = self.ready.lock();
            self.open.store(false, Ordering::Relaxed);
            std::mem::take(&mut *ready)
        };
        drop(ready);
    }

    /// Checks that every ready instance is pristine.
    #[cfg(test)]
    pub(crate) fn check_pristine(&self) -> Result<(), String> {
        let ready = self.ready.lock();
        ready
            .iter()
            .filter_map(|lease| lease.instance.slot())
            .try_for_each(super::slot::Slot::check_pristine)
    }

    pub(crate) fn stats(&self) -> PoolStats {
        PoolStats {
            ready: self.ready.lock().len(),
            slots: self.slots.load(Ordering::Relaxed),
            made_in_slots: self.made_in_slots.load(Ordering::Relaxed),
            made_plain: self.made_plain.load(Ordering::Relaxed),
            taken_ready: self.taken_ready.load(Ordering::Relaxed),
            taken: self.taken.load(Ordering::Relaxed),
            retired: self.retired.load(Ordering::Relaxed),
        }
    }

    fn make(&self, is_extended: bool) -> Option<Lease<R>> {
        self.make_in(self.options.max_slots, is_extended)
    }

    /// Makes an instance, in a slot if there are fewer than so many.
    fn make_in(&self, most_slots: usize, is_extended: bool) -> Option<Lease<R>> {
        if sanitized::plain_instances() {
            return self.make_plain(is_extended);
        }
        let Some(permit) = SlotPermit::take(&self.slots, most_slots) else {
            return self.make_plain(is_extended);
        };
        let Some(instance) = Instance::in_slot(self.build(is_extended)) else {
            return self.make_plain(is_extended);
        };
        self.made_in_slots.fetch_add(1, Ordering::Relaxed);
        Some(Lease { instance, is_extended, runs: 0, permit: Some(permit), waiting: None })
    }

    fn make_plain(&self, is_extended: bool) -> Option<Lease<R>> {
        let instance = Instance::plain(self.build(is_extended))?;
        self.made_plain.fetch_add(1, Ordering::Relaxed);
        Some(Lease { instance, is_extended, runs: 0, permit: None, waiting: None })
    }

    fn build(&self, is_extended: bool) -> Build<R> {
        if is_extended { self.build_extended } else { self.build }
    }
}

/// The permit of one slot, whose number is bounded.
struct SlotPermit(Arc<AtomicUsize>);

impl SlotPermit {
    fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |count| if count < most { Some(count + 1) } else { None };
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(Arc::clone(taken)))
    }
}

impl Drop for SlotPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(isolane_portable)))]
mod tests {
    use super::*;
    use crate::isolate::memory::instance::Run;
    use crate::isolate::memory::test_realm::{TestRealm, build, run};

    const LIMIT: usize = 16 << 20;

    fn pool(ready: usize, max_slots: usize, runs_per_slot: u32) -> Pool<TestRealm> {
        Pool::new(build, PoolOptions { ready, spare: 0, max_slots, kept_slots: 0, runs_per_slot })
    }

    fn use_once(pool: &Pool<TestRealm>) -> usize {
        let lease = pool.take(LIMIT, false).expect("a instance");
        lease.arm(Run::with_limit(LIMIT));
        assert_eq!(run(&lease, "typeof left + (globalThis.left = 1)"), "undefined1");
        let address = lease.runtime().addr();
        pool.give_back(lease);
        address
    }

    #[test]
    fn the_last_one_in_is_the_first_one_out() {
        let pool = pool(3, 8, 1000);
        pool.fill(|| false);
        assert_eq!(pool.stats().ready, 3);
        let first = use_once(&pool);
        for _ in 0..20 {
            assert_eq!(use_once(&pool), first);
        }
        let stats = pool.stats();
        assert_eq!((stats.taken, stats.taken_ready), (21, 21));
        assert_eq!(stats.made_in_slots + stats.made_plain, 3);
        pool.close();
        assert_eq!((pool.stats().ready, pool.stats().slots), (0, 0));
    }

    #[test]
    fn slots_are_bounded_and_the_rest_is_plain() {
        let pool = pool(2, 2, 1000);
        let leases: Vec<_> = (0..4).map(|_| pool.take(LIMIT, false).expect("a instance")).collect();
        let kinds: Vec<_> = leases.iter().map(|lease| lease.slot().is_some()).collect();
        assert_eq!(kinds, [true, true, false, false]);
        for lease in leases {
            pool.give_back(lease);
        }
        assert_eq!((pool.stats().ready, pool.stats().slots), (2, 2));
        let large = pool.take(LARGEST_LIMIT_BYTES + 1, false).expect("a instance");
        assert!(large.slot().is_none());
        drop(large);
        drop(pool.take(LIMIT, false));
        assert_eq!((pool.stats().ready, pool.stats().slots), (1, 1));
    }

    #[test]
    fn those_that_may_wait_leave_slots_to_those_that_cannot() {
        let options =
            PoolOptions { ready: 1, max_slots: 3, kept_slots: 1, ..PoolOptions::default() };
        let pool = Pool::<TestRealm>::new(build, options);
        let take = |may_wait| pool.take(LIMIT, may_wait).expect("a instance");
        let waiting: Vec<_> = (0..3).map(|_| take(true)).collect();
        let kinds = |leases: &[Lease<_>]| -> Vec<_> {
            leases.iter().map(|lease| lease.slot().is_some()).collect()
        };
        assert_eq!(kinds(&waiting), [true, true, false]);
        for _ in 0..3 {
            let quick = take(false);
            assert!(quick.slot().is_some());
            pool.give_back(quick);
        }
        assert_eq!(pool.stats().made_in_slots, 3);
        for lease in waiting {
            pool.give_back(lease);
        }
        assert_eq!(kinds(&[take(true), take(true)]), [true, true]);
    }

    #[test]
    fn the_first_home_has_a_slot_beside_all_runs_that_wait() {
        let options =
            PoolOptions { ready: 1, max_slots: 2, kept_slots: 1, ..PoolOptions::default() };
        let pool = Pool::<TestRealm>::new(build, options);
        let runs: Vec<_> = (0..2).map(|_| pool.take(LIMIT, true).expect("an instance")).collect();
        let quick = pool.take(LIMIT, false).expect("an instance");
        assert!(
            quick.slot().is_some() && runs.iter().filter(|it| it.slot().is_some()).count() == 1
        );
        assert!(pool.permit_home(false).is_none());
        let permit = pool.permit_home(true);
        let home = pool.take_home(permit, LIMIT, false).expect("an instance");
        assert!(home.slot().is_some());
        assert!(pool.permit_home(false).is_none());
        drop((runs, quick, home));
        let permit = pool.permit_home(false);
        let home = pool.take_home(permit, LIMIT, false).expect("an instance");
        assert!(home.slot().is_some());
        let none = pool.permit_home(false);
        assert!(pool.take_home(none, LIMIT, false).expect("an instance").slot().is_none());
    }

    #[test]
    fn what_is_used_up_or_odd_is_not_used_again() {
        let pool = pool(1, 8, 3);
        for _ in 0..9 {
            use_once(&pool);
        }
        assert_eq!((pool.stats().made_in_slots, pool.stats().retired), (3, 3));
        let lease = pool.take(LIMIT, false).expect("a instance");
        lease.mark_odd();
        pool.give_back(lease);
        let stats = pool.stats();
        assert_eq!((stats.ready, stats.slots, stats.retired), (0, 0, 4));
    }

    #[test]
    fn each_kind_is_kept_for_the_runs_that_need_it() {
        let pool = pool(2, 8, 1000).with_extended(build);
        let take = |is_extended: bool| {
            let lease = if is_extended {
                pool.take_extended(LIMIT, false)
            } else {
                pool.take(LIMIT, false)
            };
            lease.expect("an instance")
        };
        let kinds = || -> Vec<_> { pool.ready.lock().iter().map(|it| it.is_extended).collect() };
        pool.fill(|| false);
        assert_eq!(kinds(), [false, false]);
        // A run that needs the extension never gets an instance without it.
        for expected in [[false, true], [false, true]] {
            let lease = take(true);
            assert!(lease.is_extended);
            pool.give_back(lease);
            assert_eq!(kinds(), expected);
        }
        // Others get their own kind first, and then any.
        let leases = [take(false), take(false)];
        assert_eq!(leases.each_ref().map(|lease| lease.is_extended), [false, true]);
        for lease in leases {
            pool.give_back(lease);
        }
        pool.expect_extended();
        pool.fill(|| false);
        assert_eq!(pool.stats().made_in_slots, 3);
        let leases = [take(true), take(true)];
        for lease in leases {
            pool.give_back(lease);
        }
        assert_eq!((kinds(), pool.stats().retired), (vec![true, true], 2));
    }

    #[test]
    fn many_threads_share_it() {
        let pool = pool(4, 4, 50);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        use_once(&pool);
                    }
                });
            }
        });
        let stats = pool.stats();
        assert!(stats.ready <= 4 && stats.slots <= 4 && stats.taken == 600, "{stats:?}");
    }
}
