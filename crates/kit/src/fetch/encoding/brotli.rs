//! Brotli.
//!
//! In: a stream of Brotli, with a window of 16 MiB at most. Out: the bytes. Its tables are charged as it asks for them,
//! because a short body needs few.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use brotli_decompressor::{
    Allocator, BrotliDecompressStream, BrotliResult, BrotliState, SliceWrapper, StandardAlloc,
};

use super::{Decoder, Emit, PIECE_BYTES, Stop};
use crate::fetch::{failure, shared_room::SharedRoom};

/// The bytes of the state itself.
const STATE_BYTES: usize = 16 << 10;

/// Charges each block before it is made. A run without room ends, and its decoder is not called again.
#[derive(Clone)]
struct Charged {
    room: SharedRoom,
    /// Bytes that were charged for blocks that are free again.
    spare_bytes: Arc<AtomicUsize>,
}

impl<T: Clone + Default> Allocator<T> for Charged
where
    StandardAlloc: Allocator<T>,
{
    type AllocatedMemory = <StandardAlloc as Allocator<T>>::AllocatedMemory;

    fn alloc_cell(&mut self, length: usize) -> Self::AllocatedMemory {
        let bytes = length.saturating_mul(size_of::<T>());
        let spare = self.spare_bytes.load(Ordering::Relaxed);
        self.spare_bytes.store(spare.saturating_sub(bytes), Ordering::Relaxed);
        // The decoder cannot go on without a block. One that is not granted is the last one, and at most 16 MiB.
        let _is_granted = self.room.take(bytes.saturating_sub(spare));
        StandardAlloc::default().alloc_cell(length)
    }

    fn free_cell(&mut self, block: Self::AllocatedMemory) {
        let bytes = size_of_val(block.slice());
        self.spare_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

pub(super) struct Brotli {
    state: BrotliState<Charged, Charged, Charged>,
    room: SharedRoom,
    piece: Vec<u8>,
    is_over: bool,
}

impl Brotli {
    pub(super) fn new(room: &SharedRoom) -> Result<Self, Stop> {
        room.need(STATE_BYTES + PIECE_BYTES)?;
        let charged = Charged { room: room.clone(), spare_bytes: Arc::default() };
        // Without the windows of up to a gigabyte that are no part of the standard.
        let state = BrotliState::new_strict(charged.clone(), charged.clone(), charged);
        Ok(Self { state, room: room.clone(), piece: vec![0; PIECE_BYTES], is_over: false })
    }
}

impl Decoder for Brotli {
    fn push(&mut self, bytes: &[u8], emit: Emit<'_>) -> Result<(), Stop> {
        let (mut offset, mut left, mut total) = (0, bytes.len(), 0);
        while !self.is_over {
            let (mut written, mut free) = (0, self.piece.len());
            let result = BrotliDecompressStream(
                &mut left,
                &mut offset,
                bytes,
                &mut free,
                &mut written,
                &mut self.piece,
                &mut total,
                &mut self.state,
            );
            if self.room.is_full() {
                return Err(failure::no_room().into());
            }
            emit(self.piece.get(..written).unwrap_or_default())?;
            match result {
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => return Ok(()),
                BrotliResult::ResultSuccess => self.is_over = true,
                BrotliResult::ResultFailure => return Err(Stop::Invalid),
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: Emit<'_>) -> Result<(), Stop> {
        if self.is_over { Ok(()) } else { Err(Stop::Invalid) }
    }
}
