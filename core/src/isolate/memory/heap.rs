//! The engine's heap, and the accounting of everything that a run makes anyone hold.
//!
//! In: the engine's requests for memory, bytes that the run makes others hold ([`Heap::charge`]: logs, reports,
//! messages, bytecode), a limit for the run, and a flag that asks it to end. Out: memory, or none. Keeps the contract's
//! `memory` status: one limit for all that counts, and a latch that records the hit, whatever the code caught
//! afterwards.
//!
//! A request that does not fit is not refused, because the engine does not survive that: it leaves the engine
//! (`escape`), and the run is over. The same holds for every request of a run that was asked to end.
#![expect(unsafe_code, reason = "the engine's C interface to its allocator")]

use super::{
    accounting::{Accounting, Blocks, LENT_BYTES},
    arena::Arena,
    countdown::Countdown,
    range::Range,
    system::System,
    termination::Termination,
};
use crate::isolate::engine::sys as qjs;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::mem::{self, ManuallyDrop};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// How far an arena may spread, for a limit: to twice as much by fragmentation, and the pristine realm besides.
const SPREAD: usize = 2;
const SPREAD_BYTES: usize = 4 << 20;

/// The highest end of a block that is made under this limit. A block that grows may end higher.
pub(in crate::isolate) fn ceiling_bytes(limit_bytes: usize) -> usize {
    limit_bytes.saturating_mul(SPREAD).saturating_add(SPREAD_BYTES)
}

/// The heap of one runtime.
pub(crate) struct Heap {
    /// Owned; at one address for life, because the engine keeps the address.
    accounting: NonNull<Accounting>,
}

// SAFETY: a heap moves between threads with its runtime, and one thread at a time uses both. The `termination` flag,
// which other threads may touch meanwhile, is made for that.
unsafe impl Send for Heap {}

/// The accounting of an arena at the time of its image.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    used_bytes: usize,
    high_bytes: usize,
}

impl Heap {
    /// A heap of the blocks of `range`, which must be kept for as long as the heap is.
    pub(crate) fn in_range(range: &Range) -> Option<Self> {
        Some(Self::over(Blocks::Arena(Arena::new(range)?)))
    }

    /// A heap of blocks from the process's own allocator.
    pub(crate) fn in_process() -> Self {
        Self::over(Blocks::System(System::new()))
    }

    fn over(blocks: Blocks) -> Self {
        let accounting = Box::new(Accounting {
            blocks,
            limit_bytes: Cell::new(usize::MAX),
            used_bytes: Cell::new(0),
            charged_bytes: Cell::new(0),
            peak_bytes: Cell::new(0),
            exhausted: Cell::new(false),
            leaves: Cell::new(false),
            defers: Cell::new(false),
            lent_bytes: Cell::new(0),
            termination: RefCell::new(None),
            countdown: Cell::new(Countdown::NONE),
        });
        Self { accounting: NonNull::from(Box::leak(accounting)) }
    }

    /// For `JS_NewRuntime2`, together with `opaque`.
    pub(crate) fn functions(&self) -> qjs::JSMallocFunctions {
        // SAFETY: the same functions; the engine may be unwound through.
        let (calloc, malloc, realloc) = unsafe {
            (
                mem::transmute::<qjs::AllocateZeroed, Option<qjs::PlainAllocateZeroed>>(calloc),
                mem::transmute::<qjs::Allocate, Option<qjs::PlainAllocate>>(malloc),
                mem::transmute::<qjs::Reallocate, Option<qjs::PlainReallocate>>(realloc),
            )
        };
        qjs::JSMallocFunctions {
            js_calloc: calloc,
            js_malloc: malloc,
            js_free: Some(free),
            js_realloc: realloc,
            js_malloc_usable_size: Some(match self.accounting().blocks {
                Blocks::Arena(_) => arena_usable_size,
                Blocks::System(_) => system_usable_size,
            }),
        }
    }

    pub(crate) fn opaque(&self) -> *mut c_void {
        self.accounting.as_ptr().cast()
    }

    /// Starts the accounting of a run. Allocates nothing and cannot fail: a limit below the use of the pristine realm
    /// has been hit already.
    pub(crate) fn arm(&self, limit_bytes: usize, termination: Arc<Termination>) {
        self.accounting().charged_bytes.set(0);
        self.rearm(limit_bytes, termination);
    }

    /// Starts the accounting of a further run in a heap with the remains of earlier ones, which stay charged.
    pub(crate) fn rearm(&self, limit_bytes: usize, termination: Arc<Termination>) {
        let accounting = self.accounting();
        let held = accounting.used_bytes.get() + accounting.charged_bytes.get();
        accounting.limit_bytes.set(limit_bytes);
        accounting.peak_bytes.set(held);
        accounting.exhausted.set(held > limit_bytes);
        accounting.defers.set(false);
        accounting.lent_bytes.set(LENT_BYTES);
        self.set_termination(Some(termination));
        if let Blocks::Arena(arena) = &accounting.blocks {
            arena.expect(limit_bytes);
            arena.set_ceiling(ceiling_bytes(limit_bytes));
        }
    }

    /// Replaces the flag that asks the run to end, and connects it with the engine.
    pub(super) fn set_termination(&self, termination: Option<Arc<Termination>>) {
        let accounting = self.accounting();
        accounting.part_with_termination();
        if let Some(termination) = &termination {
            // SAFETY: `set_countdown`'s caller vouches for the counter, and the heap detaches the flag
            // when the next one takes its place, when it is disarmed and when it is dropped.
            unsafe { termination.attach(accounting.countdown.get()) };
        }
        accounting.termination.replace(termination);
    }

    /// Ends the accounting of a run whose remains stay, and stay charged.
    pub(crate) fn rest(&self) {
        let accounting = self.accounting();
        accounting.part_with_termination();
        accounting.limit_bytes.set(usize::MAX);
        accounting.exhausted.set(false);
    }

    /// Makes large blocks of an arena begin with the first large page from that offset on.
    pub(crate) fn start_large_at(&self, offset: usize) {
        if let Blocks::Arena(arena) = &self.accounting().blocks {
            arena.start_large_at(offset);
        }
    }

    /// Counts `bytes` that the run makes others hold. If they do not fit, the limit is hit and the result is false: the
    /// caller then drops them.
    pub(crate) fn charge(&self, bytes: usize) -> bool {
        let accounting = self.accounting();
        #[cfg(test)]
        if crate::isolate::faults::refuses() {
            accounting.hit();
            return false;
        }
        if accounting.total_bytes().saturating_add(bytes) > accounting.limit_bytes.get() {
            accounting.hit();
            return false;
        }
        accounting.charged_bytes.set(accounting.charged_bytes.get().saturating_add(bytes));
        accounting.raise_peak();
        true
    }

    /// Records that the limit is hit.
    pub(crate) fn exhaust(&self) {
        self.accounting().hit();
    }

    /// Hits the limit if too much is in flight between the run and its host by now. Other threads add to that, while
    /// the code may request nothing.
    pub(crate) fn heed_in_flight(&self) {
        let accounting = self.accounting();
        if accounting.total_bytes() > accounting.limit_bytes.get() {
            self.note_peak(accounting.limit_bytes.get());
            accounting.hit();
        }
    }

    /// The bytes held, and the bytes left up to the limit.
    pub(crate) fn held_and_room_bytes(&self) -> (usize, usize) {
        let held = self.accounting().total_bytes();
        (held, self.limit_bytes().saturating_sub(held))
    }

    /// Counts bytes that were held for a moment outside of the accounting.
    pub(crate) fn note_peak(&self, bytes: usize) {
        let peak_bytes = &self.accounting().peak_bytes;
        peak_bytes.set(peak_bytes.get().max(bytes));
    }

    /// Takes back a charge.
    pub(crate) fn discharge(&self, bytes: usize) {
        let charged = &self.accounting().charged_bytes;
        debug_assert!(bytes <= charged.get(), "discharged what was not charged");
        charged.set(charged.get().saturating_sub(bytes));
    }

    /// Sets whether a refused request leaves the engine from now on: a caller waits in
    /// [`escape::catch`](super::escape::catch).
    pub(in crate::isolate) fn set_leaves(&self, leaves: bool) {
        self.accounting().leaves.set(leaves);
    }

    /// Whether there are blocks for noting the place of a run that must end, and a refused one leaves the engine.
    pub(crate) fn tells_places(&self) -> bool {
        let accounting = self.accounting();
        accounting.leaves.get() && accounting.lent_bytes.get() > 0
    }

    pub(crate) fn limit_bytes(&self) -> usize {
        self.accounting().limit_bytes.get()
    }

    /// Bytes that the engine holds, the pristine realm included.
    pub(crate) fn used_bytes(&self) -> usize {
        self.accounting().used_bytes.get()
    }

    /// Bytes that the run makes others hold.
    pub(crate) fn charged_bytes(&self) -> usize {
        self.accounting().charged_bytes.get()
    }

    /// Bytes that the engine holds according to the blocks themselves, where they are listed.
    #[cfg(test)]
    pub(crate) fn counted_bytes(&self) -> Option<usize> {
        match &self.accounting().blocks {
            Blocks::Arena(_) => None,
            Blocks::System(system) => Some(system.held_bytes()),
        }
    }

    /// The most that was used and charged at once since `arm`.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.accounting().peak_bytes.get()
    }

    /// Whether the limit was hit in this run before the run was asked to end.
    pub(crate) fn exhausted(&self) -> bool {
        let accounting = self.accounting();
        let termination = accounting.termination.borrow();
        accounting.exhausted.get()
            || termination.as_ref().is_some_and(|termination| termination.is_exhausted())
    }

    /// Whether the run has to end: it hit its limit, or was asked to.
    pub(crate) fn must_end(&self) -> bool {
        self.accounting().must_end()
    }

    /// Does something that only the limit ends: a request to end is heeded afterwards.
    pub(in crate::isolate) fn deferring_end<T>(&self, act: impl FnOnce() -> T) -> T {
        let accounting = self.accounting();
        accounting.defers.set(true);
        let done = act();
        accounting.defers.set(false);
        done
    }

    /// Sets where the engine counts the polls until it calls its interrupt handler. The heap shortens that count when a
    /// run must end.
    ///
    /// # Safety
    /// Valid for as long as the heap is used.
    pub(crate) unsafe fn set_countdown(&self, countdown: Countdown) {
        self.accounting().countdown.set(countdown);
    }

    /// A second handle of the same heap, for functions that the engine calls back.
    ///
    /// # Safety
    /// Not used after the heap is dropped.
    pub(crate) unsafe fn alias(&self) -> ManuallyDrop<Self> {
        ManuallyDrop::new(Self { accounting: self.accounting })
    }

    /// The accounting, for `rewind`. For an arena.
    pub(crate) fn mark(&self) -> Mark {
        let high_bytes = match &self.accounting().blocks {
            Blocks::Arena(arena) => arena.high_bytes(),
            Blocks::System(_) => 0,
        };
        Mark { used_bytes: self.used_bytes(), high_bytes }
    }

    /// Ends the accounting of a run: up to the next `arm` there is no limit, and no thread but this one reaches into
    /// the heap.
    pub(crate) fn disarm(&self) {
        let accounting = self.accounting();
        accounting.part_with_termination();
        accounting.limit_bytes.set(usize::MAX);
        accounting.charged_bytes.set(0);
        accounting.exhausted.set(false);
    }

    /// Restores the accounting, disarmed.
    ///
    /// # Safety
    /// The memory of the arena is as it was at the mark, and zero above.
    pub(crate) unsafe fn rewind(&self, mark: Mark) {
        let accounting = self.accounting();
        self.disarm();
        accounting.used_bytes.set(mark.used_bytes);
        if let Blocks::Arena(arena) = &accounting.blocks {
            arena.lower_high(mark.high_bytes);
        }
    }

    pub(super) fn accounting(&self) -> &Accounting {
        // SAFETY: allocated by `over`, freed by `drop`, and only ever shared.
        unsafe { self.accounting.as_ref() }
    }
}

/// A runtime whose every block comes from that heap, which has to outlive every use of it.
pub(in crate::isolate) fn new_runtime(heap: &Heap) -> Option<*mut qjs::JSRuntime> {
    let functions = heap.functions();
    // SAFETY: the functions are copied, and the accounting stays in place until the runtime is never used again.
    let runtime = unsafe { qjs::JS_NewRuntime2(&raw const functions, heap.opaque()) };
    Some(runtime).filter(|runtime| !runtime.is_null())
}

impl Drop for Heap {
    fn drop(&mut self) {
        self.disarm();
        // SAFETY: leaked by `over`; the runtime that used it is gone, or never reads it again.
        drop(unsafe { Box::from_raw(self.accounting.as_ptr()) });
    }
}

impl Mark {
    /// How many bytes of the range had been written.
    pub(crate) fn high_bytes(self) -> usize {
        self.high_bytes
    }
}

/// # Safety
/// `opaque` is the result of `Heap::opaque` for a heap that lives.
unsafe fn accounting<'a>(opaque: *mut c_void) -> &'a Accounting {
    // SAFETY: the caller vouches for it; the accounting is only ever shared.
    unsafe { &*opaque.cast::<Accounting>() }
}

/// The engine's sizes are C's.
fn bytes(size: qjs::size_t) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

unsafe extern "C-unwind" fn malloc(opaque: *mut c_void, size: qjs::size_t) -> *mut c_void {
    // SAFETY: the engine passes the pointer that `JS_NewRuntime2` was given.
    let accounting = unsafe { accounting(opaque) };
    let granted = accounting.grants(accounting.blocks.next_cost_bytes(bytes(size)));
    accounting.or_leave(if granted {
        accounting.take(accounting.blocks.allocate(bytes(size)))
    } else {
        ptr::null_mut()
    })
}

unsafe extern "C-unwind" fn calloc(
    opaque: *mut c_void,
    count: qjs::size_t,
    size: qjs::size_t,
) -> *mut c_void {
    // SAFETY: as in `malloc`.
    let accounting = unsafe { accounting(opaque) };
    let size = bytes(count).saturating_mul(bytes(size));
    let granted = accounting.grants(accounting.blocks.next_cost_bytes(size));
    accounting.or_leave(if granted {
        accounting.take(accounting.blocks.allocate_zeroed(size))
    } else {
        ptr::null_mut()
    })
}

unsafe extern "C-unwind" fn realloc(
    opaque: *mut c_void,
    block: *mut c_void,
    size: qjs::size_t,
) -> *mut c_void {
    let Some(block) = NonNull::new(block.cast::<u8>()) else {
        // SAFETY: as in `malloc`.
        return unsafe { malloc(opaque, size) };
    };
    // SAFETY: as in `malloc`.
    let accounting = unsafe { accounting(opaque) };
    let old = accounting.blocks.cost_bytes(block);
    let new = accounting.blocks.next_cost_bytes(bytes(size));
    if new > old && !accounting.grants(new - old) {
        return accounting.or_leave(ptr::null_mut());
    }
    let moved = accounting.blocks.resize(block, bytes(size));
    if !moved.is_null() {
        accounting.used_bytes.set(accounting.used_bytes.get() - old);
    }
    accounting.or_leave(accounting.take(moved))
}

unsafe extern "C" fn free(opaque: *mut c_void, block: *mut c_void) {
    if let Some(block) = NonNull::new(block.cast::<u8>()) {
        // SAFETY: as in `malloc`.
        let accounting = unsafe { accounting(opaque) };
        accounting
            .used_bytes
            .set(accounting.used_bytes.get() - accounting.blocks.cost_bytes(block));
        accounting.blocks.free(block);
    }
}

unsafe extern "C" fn arena_usable_size(block: *const c_void) -> qjs::size_t {
    NonNull::new(block.cast_mut().cast::<u8>())
        // SAFETY: the engine asks for blocks in use only.
        .map_or(0, |block| unsafe { Arena::usable_bytes(block) } as qjs::size_t)
}

unsafe extern "C" fn system_usable_size(block: *const c_void) -> qjs::size_t {
    NonNull::new(block.cast_mut().cast::<u8>())
        // SAFETY: the engine asks for blocks in use only.
        .map_or(0, |block| unsafe { System::usable_bytes(block) } as qjs::size_t)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn armed(limit_bytes: usize) -> (Heap, Arc<Termination>) {
        let heap = Heap::in_process();
        let termination = Arc::<Termination>::default();
        heap.arm(limit_bytes, Arc::clone(&termination));
        (heap, termination)
    }

    fn request(heap: &Heap, size: qjs::size_t) -> bool {
        // SAFETY: the heap lives.
        !unsafe { malloc(heap.opaque(), size) }.is_null()
    }

    #[test]
    fn the_limit_latches() {
        let (heap, _) = armed(1 << 20);
        assert!(request(&heap, 900 << 10) && !heap.exhausted());
        assert!(!request(&heap, 200 << 10), "more than there is left");
        assert!(heap.exhausted() && heap.must_end());
        assert!(!request(&heap, 1), "nothing more is granted");
        assert!(heap.peak_bytes() <= 1 << 20);
    }

    #[test]
    fn no_block_takes_more_than_there_is_left() {
        let range = Range::reserve(64 << 20).expect("64 MiB of addresses");
        for heap in [Heap::in_process(), Heap::in_range(&range).expect("a heap")] {
            for bytes in [1, 600, 4_081, 70_000] {
                let limit_bytes = heap.used_bytes() + bytes + 40;
                heap.arm(limit_bytes, Arc::default());
                while request(&heap, bytes as qjs::size_t) {}
                assert!(heap.exhausted() && heap.peak_bytes() <= limit_bytes, "{bytes} bytes");
            }
        }
    }

    #[test]
    fn what_others_hold_counts() {
        let (heap, _) = armed(1 << 20);
        assert!(heap.charge(600 << 10) && request(&heap, 300 << 10));
        heap.discharge(500 << 10);
        assert!(heap.peak_bytes() >= 900 << 10 && heap.charge(500 << 10));
        assert!(!heap.exhausted() && !heap.charge(500 << 10) && heap.exhausted());
    }

    #[test]
    fn a_run_that_is_asked_to_end_is_not_exhausted() {
        let (heap, termination) = armed(1 << 20);
        termination.raise();
        assert!(!request(&heap, 1) && heap.must_end() && !heap.exhausted());
    }

    #[test]
    fn a_limit_below_what_is_used_is_exhausted_at_once() {
        let (heap, _) = armed(usize::MAX);
        assert!(request(&heap, 1000));
        heap.arm(1, Arc::default());
        assert!(heap.exhausted() && !request(&heap, 1000));
    }
}
