//! The memory of SQLite, counted for each call.
//!
//! In: SQLite's requests for memory. Out: blocks of Rust's allocator, or none. SQLite itself counts memory only for the
//! whole process. So this is its allocator: it counts the blocks of the call that runs on the same thread, and refuses
//! one that exceeds the call's limit, or that a stopped call asks for. SQLite takes a refusal as an error of the
//! statement.
//!
//! A block counts for the call that asked for it, until that call ends. So the pages that a statement reads count, too,
//! where the page cache has no room that can be used again.

#![expect(unsafe_code, reason = "an allocator for C code")]

use std::{
    alloc::{Layout, alloc, dealloc, realloc},
    cell::RefCell,
    ffi::{c_int, c_void},
    ptr,
    sync::Arc,
};

use rusqlite::ffi::sqlite3_mem_methods;

use crate::stop::Stop;

/// Room in front of each block for its size. It keeps the alignment of 16 bytes.
const HEAD: usize = 16;

/// The size in front of a block.
type Size = [u8; size_of::<usize>()];

thread_local! {
    /// The call that runs on this thread.
    static CALL: RefCell<Option<Account>> = const { RefCell::new(None) };
}

/// The memory of one call.
struct Account {
    stop: Arc<Stop>,
    held_bytes: isize,
    most_bytes: isize,
    /// Whether a request was refused because of the limit.
    exceeded: bool,
}

impl Account {
    /// Whether the call may have so many bytes more.
    fn admits(&mut self, bytes: isize) -> bool {
        if self.stop.is_stopped() {
            return false;
        }
        if self.held_bytes.saturating_add(bytes) > self.most_bytes {
            self.exceeded = true;
            return false;
        }
        self.held_bytes += bytes;
        true
    }
}

/// Counts what SQLite takes on this thread until `work` is done; returns whether it was refused memory for the limit.
pub fn bounded<T>(stop: &Arc<Stop>, most_bytes: usize, work: impl FnOnce() -> T) -> (T, bool) {
    /// Forgets the account, also when `work` panics.
    struct Opened;
    impl Drop for Opened {
        fn drop(&mut self) {
            CALL.take();
        }
    }
    let most_bytes = isize::try_from(most_bytes).unwrap_or(isize::MAX);
    let account = Account { stop: Arc::clone(stop), held_bytes: 0, most_bytes, exceeded: false };
    CALL.replace(Some(account));
    let opened = Opened;
    let done = work();
    let exceeded = CALL.with_borrow(|call| call.as_ref().is_some_and(|account| account.exceeded));
    drop(opened);
    (done, exceeded)
}

/// Whether the call that runs on this thread must stop, because of its time, the end of its run or its memory: some
/// functions of SQLite go on for long after they were refused memory. Looks at the clock.
#[must_use]
pub fn is_stopped() -> bool {
    CALL.with_borrow(|call| call.as_ref().is_some_and(|call| call.exceeded || call.stop.check()))
}

/// Whether the call that runs on this thread may commit; see [`Stop::commit`].
#[must_use]
pub fn may_commit() -> bool {
    CALL.with_borrow(|call| call.as_ref().is_none_or(|call| call.stop.commit()))
}

/// Whether a call runs on this thread.
#[must_use]
pub fn is_bounded() -> bool {
    CALL.with_borrow(Option::is_some)
}

/// Whether the call that runs on this thread must not wait.
#[must_use]
pub fn is_short() -> bool {
    CALL.with_borrow(|call| call.as_ref().is_some_and(|call| call.stop.is_short()))
}

fn admits(bytes: isize) -> bool {
    // A thread that ends has no call any more.
    let admitted = CALL.try_with(|call| {
        call.try_borrow_mut()
            .map_or(true, |mut call| call.as_mut().is_none_or(|account| account.admits(bytes)))
    });
    admitted.unwrap_or(true)
}

fn release(bytes: usize) {
    let released = CALL.try_with(|call| {
        if let Ok(mut call) = call.try_borrow_mut()
            && let Some(account) = call.as_mut()
        {
            account.held_bytes -= signed(bytes);
        }
    });
    // A thread that ends has no account any more.
    released.unwrap_or_default();
}

/// The methods that SQLite is configured with.
pub(crate) const METHODS: sqlite3_mem_methods = sqlite3_mem_methods {
    xMalloc: Some(allocate),
    xFree: Some(free),
    xRealloc: Some(resize),
    xSize: Some(size),
    xRoundup: Some(round_up),
    xInit: Some(begin),
    xShutdown: Some(end),
    pAppData: ptr::null_mut(),
};

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.checked_add(HEAD)?, HEAD).ok()
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}

extern "C" fn allocate(bytes: c_int) -> *mut c_void {
    let Ok(bytes) = usize::try_from(bytes) else { return ptr::null_mut() };
    let Some(layout) = layout(bytes).filter(|layout| admits(signed(layout.size()))) else {
        return ptr::null_mut();
    };
    // SAFETY: the layout is not empty, because it has the head.
    let block = unsafe { alloc(layout) };
    if block.is_null() {
        release(layout.size());
        return ptr::null_mut();
    }
    // SAFETY: the block has room for the head, is aligned for it, and goes on behind it.
    unsafe {
        block.cast::<Size>().write(bytes.to_ne_bytes());
        block.add(HEAD).cast()
    }
}

/// The start of a block of [`allocate`], and the bytes that were asked for.
///
/// # Safety
/// The block is one of [`allocate`] or [`resize`] that has not been freed.
unsafe fn head(block: *mut c_void) -> (*mut u8, usize) {
    // SAFETY: such a block stands behind its head.
    unsafe {
        let start = block.cast::<u8>().sub(HEAD);
        (start, usize::from_ne_bytes(start.cast::<Size>().read()))
    }
}

extern "C" fn free(block: *mut c_void) {
    if block.is_null() {
        return;
    }
    // SAFETY: SQLite frees only blocks that it was given.
    let (start, bytes) = unsafe { head(block) };
    let layout = layout(bytes).expect("the layout that the block was allocated with");
    release(layout.size());
    // SAFETY: the block was allocated with this layout.
    unsafe { dealloc(start, layout) };
}

extern "C" fn resize(block: *mut c_void, bytes: c_int) -> *mut c_void {
    let Ok(bytes) = usize::try_from(bytes) else { return ptr::null_mut() };
    // SAFETY: SQLite resizes only blocks that it was given.
    let (start, before) = unsafe { head(block) };
    let old = layout(before).expect("the layout that the block was allocated with");
    let grown = signed(bytes) - signed(before);
    let Some(new) = layout(bytes).filter(|_| grown <= 0 || admits(grown)) else {
        return ptr::null_mut();
    };
    // SAFETY: the block was allocated with the old layout; the new size is not zero, because it has the head.
    let moved = unsafe { realloc(start, old, new.size()) };
    if moved.is_null() {
        release(grown.max(0).unsigned_abs());
        return ptr::null_mut();
    }
    release(grown.min(0).unsigned_abs());
    // SAFETY: as in `allocate`.
    unsafe {
        moved.cast::<Size>().write(bytes.to_ne_bytes());
        moved.add(HEAD).cast()
    }
}

extern "C" fn size(block: *mut c_void) -> c_int {
    if block.is_null() {
        return 0;
    }
    // SAFETY: SQLite asks only for blocks that it was given.
    let (_, bytes) = unsafe { head(block) };
    c_int::try_from(bytes).unwrap_or(c_int::MAX)
}

extern "C" fn round_up(bytes: c_int) -> c_int {
    bytes.checked_add(7).map_or(bytes, |bytes| bytes & !7)
}

extern "C" fn begin(_: *mut c_void) -> c_int {
    rusqlite::ffi::SQLITE_OK
}

extern "C" fn end(_: *mut c_void) {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::stop::Reason;

    fn filled(bytes: c_int) -> *mut c_void {
        let block = allocate(bytes);
        if !block.is_null() {
            // SAFETY: the block has that many bytes.
            unsafe { block.cast::<u8>().write_bytes(7, bytes.unsigned_abs() as usize) };
        }
        block
    }

    #[test]
    fn blocks_count_for_their_call() {
        let stop = Arc::new(Stop::new(Duration::MAX));
        let (blocks, exceeded) = bounded(&stop, 4_096, || {
            let first = filled(1_000);
            let grown = resize(first, 3_000);
            assert!(filled(1_500).is_null());
            let shrunk = resize(grown, 10);
            assert_eq!(size(shrunk), 10);
            // SAFETY: it has ten bytes, which are those of the first block.
            assert_eq!(unsafe { shrunk.cast::<u8>().add(9).read() }, 7);
            [shrunk, filled(1_500)]
        });
        assert!(exceeded);
        assert!(!blocks[1].is_null());
        for block in blocks {
            free(block);
        }
        assert!(!bounded(&stop, 0, || ()).1);
    }

    #[test]
    fn a_stopped_call_gets_no_memory() {
        let stop = Arc::new(Stop::new(Duration::MAX));
        let (refused, exceeded) = bounded(&stop, 4_096, || {
            stop.stop(Reason::End);
            assert!(is_stopped());
            allocate(1).is_null()
        });
        assert!(refused && !exceeded);
        let block = allocate(1);
        assert!(!block.is_null() && !is_stopped());
        free(block);
    }
}
