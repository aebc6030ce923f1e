//! Tests of blocks: their sizes, their content, and the pages that free ones give back.

use super::*;
use crate::testing::backed::backed_bytes;

#[test]
fn zeroed_blocks_are_zero_wherever_they_come_from() {
    let range = Range::reserve(64 << 20).expect("64 MiB of addresses");
    let arena = Arena::new(&range).expect("an arena");
    let mut kept = Vec::new();
    for round in 0..400_usize {
        let bytes = 1 + round * 977 % 150_000;
        let block = NonNull::new(arena.allocate_zeroed(bytes)).expect("memory");
        // SAFETY: the block is `bytes` long and ours.
        unsafe {
            assert!(std::slice::from_raw_parts(block.as_ptr(), bytes).iter().all(|b| *b == 0));
            block.write_bytes(0xff, Arena::usable_bytes(block));
        }
        kept.push(block);
        if round % 3 != 0 {
            let old = kept.swap_remove(round * 31 % kept.len());
            // SAFETY: in use until now, and forgotten here.
            unsafe { arena.free(old) };
        }
    }
}

#[test]
fn what_was_freed_fits_the_next_of_its_size() {
    let range = Range::reserve(64 << 20).expect("64 MiB of addresses");
    let arena = Arena::new(&range).expect("an arena");
    for bytes in (1..300_000).step_by(997) {
        let block = |()| NonNull::new(arena.allocate(bytes)).expect("memory");
        let (first, wall) = (block(()), block(()));
        // SAFETY: in use until now, and forgotten here.
        unsafe { arena.free(first) };
        let again = block(());
        assert_eq!(again, first, "{bytes} bytes");
        // SAFETY: as above.
        unsafe {
            arena.free(again);
            arena.free(wall);
        }
    }
}

#[test]
fn blocks_of_a_chunks_size_keep_their_content() {
    let range = Range::reserve(64 << 20).expect("64 MiB of addresses");
    let arena = Arena::new(&range).expect("an arena");
    let mut kept: Vec<(NonNull<u8>, u8, usize)> = Vec::new();
    let mut shifted = 0;
    for round in 0..2000_usize {
        let bytes = CHUNK_BYTES - 200 + round * 37 % 400;
        let mark = u8::try_from(round % 251).expect("below 251");
        let cost = arena.next_cost_bytes(bytes);
        let block = NonNull::new(arena.allocate(bytes)).expect("memory");
        assert!(block.addr().get().is_multiple_of(ENGINE_ALIGN));
        shifted += usize::from(placed(block) != block);
        // SAFETY: each block is in use and as long as it is said to be.
        unsafe {
            assert_eq!(Arena::cost_bytes(block), cost);
            assert!(Arena::usable_bytes(block) >= bytes);
            block.write_bytes(mark, Arena::usable_bytes(block));
            kept.push((block, mark, bytes));
            let (old, mark, bytes) = kept.swap_remove(round * 31 % kept.len());
            let all = |block: NonNull<u8>, bytes| {
                std::slice::from_raw_parts(block.as_ptr(), bytes).iter().all(|b| *b == mark)
            };
            assert!(all(old, bytes));
            if round % 2 == 0 {
                let new_bytes = [100, bytes - 8, bytes + 8, 20_000][round / 2 % 4];
                let moved = NonNull::new(arena.resize(old, new_bytes)).expect("memory");
                assert!(all(moved, bytes.min(new_bytes)));
                assert!(Arena::usable_bytes(moved) >= new_bytes);
                moved.write_bytes(mark, new_bytes);
                kept.push((moved, mark, new_bytes));
            } else {
                arena.free(old);
            }
        }
    }
    assert!(shifted > 100, "{shifted}");
    let most = range.bytes() - (4 << 20);
    for (block, ..) in kept {
        // SAFETY: in use until now, and forgotten here.
        unsafe { arena.free(block) };
    }
    assert!(!arena.allocate(most).is_null(), "all of it is one free block again");
}

#[test]
fn holes_are_given_back_and_large_blocks_keep_their_content() {
    const MIB: usize = 1 << 20;
    let range = Range::reserve(64 * MIB).expect("64 MiB of addresses");
    let arena = Arena::new(&range).expect("an arena");
    arena.expect(5 * MIB);
    let block = |bytes: usize| NonNull::new(arena.allocate(bytes)).expect("memory");
    let (grows, hole, last) = (block(3 * MIB), block(3 * MIB), block(64));
    // SAFETY: blocks in use, each as long as it was asked for.
    unsafe {
        for at in 0..3 * MIB {
            grows.add(at).write(at.to_le_bytes()[1]);
        }
        hole.write_bytes(0xff, 3 * MIB);
        arena.free(hole);
        let inside = hole.add(MIB).as_ptr();
        assert_eq!(inside.read(), 0, "free memory above the expected need is given back");
        let old = grows.add(MIB).as_ptr();
        let grown = NonNull::new(arena.resize(grows, 5 * MIB)).expect("memory");
        assert_ne!(grown, grows);
        assert!((0..3 * MIB).all(|at| grown.add(at).read() == at.to_le_bytes()[1]));
        assert_eq!(old.read(), 0, "nothing of a block that has moved stays");
        arena.free(last);
    }
}

#[test]
fn holes_of_any_size_hold_no_more_than_a_quarter_more() {
    const LIMIT: usize = 16 << 20;
    let range = Range::reserve(256 << 20).expect("256 MiB of addresses");
    let arena = Arena::new(&range).expect("an arena");
    arena.expect(LIMIT);
    let mut kept: Vec<NonNull<u8>> = Vec::new();
    let (mut used, mut bytes, mut most) = (0, 500, 0);
    'full: loop {
        let mut round = Vec::new();
        while used + bytes < LIMIT {
            let Some(block) = NonNull::new(arena.allocate(bytes)) else { break 'full };
            // SAFETY: the block is that long.
            unsafe { block.write_bytes(1, bytes) };
            // SAFETY: in use.
            used += unsafe { Arena::cost_bytes(block) };
            round.push(block);
            most = most.max(touched_bytes(&range));
            assert!(arena.held_bytes() <= most_held_bytes(LIMIT));
        }
        if round.is_empty() {
            break;
        }
        for (index, block) in round.into_iter().enumerate() {
            if index % 4 == 0 {
                kept.push(block);
            } else {
                // SAFETY: in use until now.
                unsafe {
                    used -= Arena::cost_bytes(block);
                    arena.free(block);
                }
            }
        }
        bytes = bytes * 5 / 4;
    }
    assert!(most > LIMIT, "there were holes: {most}");
    assert!(most <= most_held_bytes(LIMIT) + (256 << 10), "{most} bytes for {LIMIT}");
}

/// The bytes that were touched and not given back, as the system reports them, read every now and then.
fn touched_bytes(range: &Range) -> usize {
    thread_local!(static CALLS: Cell<usize> = const { Cell::new(0) });
    if !CALLS.replace(CALLS.get() + 1).is_multiple_of(500) {
        return 0;
    }
    backed_bytes(range.start().addr(), range.bytes())
}

/// A block that is to be zero is not cleared where the memory is zero anyway.
#[cfg(target_os = "linux")]
#[test]
fn untouched_memory_is_not_cleared() {
    let range = Range::reserve(512 << 20).expect("512 MiB of addresses");
    let arena = Arena::new(&range).expect("an arena");
    assert!(!arena.allocate_zeroed(256 << 20).is_null());
    let touched = backed_bytes(range.start().addr(), range.bytes());
    assert!(touched < 8 << 20, "{touched} bytes");
}

#[test]
fn large_blocks_begin_with_a_large_page() {
    const KIB: usize = 1 << 10;
    let range = Range::reserve(64 << 20).expect("64 MiB of addresses");
    let arena = Arena::new(&range).expect("an arena");
    let from = (range.start().addr() + (2 << 20)).next_multiple_of(LARGE_PAGE_BYTES);
    arena.start_large_at(2 << 20);
    let small = arena.allocate(64 * KIB).addr();
    let large = arena.allocate_zeroed(1 << 20).addr();
    assert!(small + 64 * KIB < from && (from..from + 128 * KIB).contains(&large));
    // Small blocks go on above: none is left below.
    assert!(arena.allocate(64 * KIB).addr() > large);
}

#[test]
fn nothing_above_the_ceiling() {
    let range = Range::reserve(64 << 20).expect("64 MiB of addresses");
    let arena = Arena::new(&range).expect("an arena");
    arena.set_ceiling(1 << 20);
    assert!(arena.allocate(2 << 20).is_null());
    assert!(!arena.allocate(1 << 19).is_null());
}

#[test]
fn more_than_there_is_fails() {
    let range = Range::reserve(1 << 20).expect("a MiB of addresses");
    let arena = Arena::new(&range).expect("an arena");
    assert!(arena.allocate(2 << 20).is_null());
    assert!(arena.allocate(usize::MAX).is_null());
}
