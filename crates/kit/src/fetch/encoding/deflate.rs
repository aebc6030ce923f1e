//! gzip and deflate.
//!
//! In: a stream of gzip, of one or several members; or one of deflate, with zlib's header as the standard has it or
//! without, as some servers have it. Out: the bytes.

use std::io::Write;

use flate2::{Decompress, FlushDecompress, Status, write::MultiGzDecoder};

use super::{Decoder, Emit, PIECE_BYTES, Stop};
use crate::fetch::shared_room::SharedRoom;

/// The most bytes that stand for so many of gzip's.
const MOST_RATIO: usize = 1_040;

/// Bytes of gzip that are read at a time.
const SLICE_BYTES: usize = 256;

/// The bytes of a decoder: its window and its tables.
const STATE_BYTES: usize = 64 << 10;

/// The bytes of the texts that a gzip header may have.
const HEADER_BYTES: usize = 3 * (64 << 10);

pub(super) struct Gzip(MultiGzDecoder<Vec<u8>>);

impl Gzip {
    pub(super) fn new(room: &SharedRoom) -> Result<Self, Stop> {
        room.need(STATE_BYTES + HEADER_BYTES + SLICE_BYTES * MOST_RATIO)?;
        Ok(Self(MultiGzDecoder::new(Vec::new())))
    }

    fn emit(&mut self, emit: Emit<'_>) -> Result<(), Stop> {
        let piece = self.0.get_mut();
        if !piece.is_empty() {
            emit(piece)?;
            piece.clear();
        }
        Ok(())
    }
}

impl Decoder for Gzip {
    fn push(&mut self, bytes: &[u8], emit: Emit<'_>) -> Result<(), Stop> {
        for slice in bytes.chunks(SLICE_BYTES) {
            self.0.write_all(slice).map_err(|_| Stop::Invalid)?;
            self.emit(emit)?;
        }
        Ok(())
    }

    fn finish(&mut self, emit: Emit<'_>) -> Result<(), Stop> {
        self.0.try_finish().map_err(|_| Stop::Invalid)?;
        self.emit(emit)
    }
}

pub(super) struct Deflate {
    /// `None` until the first bytes tell whether there is a header.
    state: Option<Decompress>,
    head: Vec<u8>,
    piece: Vec<u8>,
    is_over: bool,
}

impl Deflate {
    pub(super) fn new(room: &SharedRoom) -> Result<Self, Stop> {
        room.need(STATE_BYTES + PIECE_BYTES)?;
        Ok(Self { state: None, head: Vec::new(), piece: vec![0; PIECE_BYTES], is_over: false })
    }

    fn inflate(&mut self, mut bytes: &[u8], emit: Emit<'_>) -> Result<(), Stop> {
        let Some(state) = &mut self.state else { return Ok(()) };
        // The standard's end is the end: bytes after it are none of the body's.
        while !self.is_over {
            let (read, written) = (state.total_in(), state.total_out());
            let status = state.decompress(bytes, &mut self.piece, FlushDecompress::None);
            let status = status.map_err(|_| Stop::Invalid)?;
            // Both are at most the lengths of the slices.
            let read = usize::try_from(state.total_in() - read).unwrap_or(usize::MAX);
            let written = usize::try_from(state.total_out() - written).unwrap_or(usize::MAX);
            bytes = bytes.get(read..).unwrap_or_default();
            emit(self.piece.get(..written).unwrap_or_default())?;
            self.is_over = status == Status::StreamEnd;
            // With room for more the decoder has given all that it has.
            if bytes.is_empty() && written < self.piece.len() || read == 0 && written == 0 {
                break;
            }
        }
        Ok(())
    }
}

impl Decoder for Deflate {
    fn push(&mut self, bytes: &[u8], emit: Emit<'_>) -> Result<(), Stop> {
        if self.state.is_some() {
            return self.inflate(bytes, emit);
        }
        let (first, rest) = bytes.split_at(bytes.len().min(2 - self.head.len()));
        self.head.extend_from_slice(first);
        let &[method, flags] = &self.head[..] else { return Ok(()) };
        let has_header =
            method & 0xF == 8 && u16::from_be_bytes([method, flags]).is_multiple_of(31);
        self.state = Some(Decompress::new(has_header));
        self.inflate(&[method, flags], emit)?;
        self.inflate(rest, emit)
    }

    fn finish(&mut self, emit: Emit<'_>) -> Result<(), Stop> {
        if self.state.is_none() {
            self.state = Some(Decompress::new(false));
            let head = std::mem::take(&mut self.head);
            self.inflate(&head, emit)?;
        }
        if self.is_over { Ok(()) } else { Err(Stop::Invalid) }
    }
}
