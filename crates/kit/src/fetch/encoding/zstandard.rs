//! Zstandard.
//!
//! In: frames of Zstandard, each with a window of 8 MiB at most, as RFC 9659 has it for HTTP. Out: the bytes. The window
//! is read from a frame's header and charged before the decoder sees it.

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::{Decoder, Emit, PIECE_BYTES, Stop};
use crate::fetch::shared_room::SharedRoom;

/// The logarithm of the largest window.
const WINDOW_LOG: u32 = 23;

/// The bytes of a decoder beside its window: its state, and a block of 128 KiB each way.
const STATE_BYTES: usize = 512 << 10;

/// The most bytes of a frame's header.
const MOST_HEADER_BYTES: usize = 18;

pub(super) struct Zstandard {
    state: DCtx<'static>,
    room: SharedRoom,
    /// The beginning of a frame whose window is not known yet; `None` inside of a frame.
    header: Option<Vec<u8>>,
    /// The largest window that was charged.
    charged_bytes: usize,
    piece: Vec<u8>,
}

impl Zstandard {
    pub(super) fn new(room: &SharedRoom) -> Result<Self, Stop> {
        room.need(STATE_BYTES + PIECE_BYTES)?;
        let mut state = DCtx::try_create().ok_or(Stop::Invalid)?;
        state.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).map_err(|_| Stop::Invalid)?;
        Ok(Self {
            state,
            room: room.clone(),
            header: Some(Vec::with_capacity(MOST_HEADER_BYTES)),
            charged_bytes: 0,
            piece: vec![0; PIECE_BYTES],
        })
    }

    /// Charges the window of the frame that begins, if it is larger than those before.
    fn charge_window(&mut self) -> Result<(), Stop> {
        let window = self.header.as_deref().map_or(0, window_bytes);
        let window = usize::try_from(window).ok().filter(|bytes| *bytes <= 1 << WINDOW_LOG);
        let window = window.ok_or(Stop::Invalid)?;
        self.room.need(window.saturating_sub(self.charged_bytes))?;
        self.charged_bytes = self.charged_bytes.max(window);
        Ok(())
    }

    /// Has the decoder read bytes, until the end of a frame at most. Returns the rest.
    fn decode<'b>(&mut self, bytes: &'b [u8], emit: Emit<'_>) -> Result<&'b [u8], Stop> {
        let mut input = InBuffer::around(bytes);
        loop {
            let mut output = OutBuffer::around(&mut self.piece[..]);
            let result = self.state.decompress_stream(&mut output, &mut input);
            let (hint, written) = (result.map_err(|_| Stop::Invalid)?, output.pos());
            emit(self.piece.get(..written).unwrap_or_default())?;
            let rest = bytes.get(input.pos()..).unwrap_or_default();
            if hint == 0 {
                self.header = Some(Vec::with_capacity(MOST_HEADER_BYTES));
                return Ok(rest);
            }
            // With room for more the decoder has given all that it has.
            if rest.is_empty() && written < self.piece.len() {
                return Ok(rest);
            }
        }
    }
}

impl Decoder for Zstandard {
    fn push(&mut self, mut bytes: &[u8], emit: Emit<'_>) -> Result<(), Stop> {
        while !bytes.is_empty() {
            let Some(header) = &mut self.header else {
                bytes = self.decode(bytes, emit)?;
                continue;
            };
            let missing = header_bytes(header).saturating_sub(header.len());
            let (first, rest) = bytes.split_at(bytes.len().min(missing));
            header.extend_from_slice(first);
            bytes = rest;
            if header.len() >= header_bytes(header) {
                self.charge_window()?;
                let header = self.header.take().unwrap_or_default();
                self.decode(&header, emit)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: Emit<'_>) -> Result<(), Stop> {
        // After a frame another one's header is awaited.
        if self.header.as_ref().is_some_and(Vec::is_empty) { Ok(()) } else { Err(Stop::Invalid) }
    }
}

/// Whether a frame is one that is skipped.
fn is_skipped(header: &[u8]) -> bool {
    matches!(header, [first, 0x2A, 0x4D, 0x18, ..] if first & 0xF0 == 0x50)
}

/// The bytes of the header that begins so, as far as they are known.
fn header_bytes(header: &[u8]) -> usize {
    if is_skipped(header) {
        return 8;
    }
    let Some(descriptor) = header.get(4) else { return 5 };
    5 + usize::from(descriptor & SINGLE_SEGMENT == 0)
        + [0, 1, 2, 4][usize::from(descriptor & 3)]
        + size_bytes(*descriptor)
}

/// The flag of a frame without a window of its own: the whole content is the window.
const SINGLE_SEGMENT: u8 = 0x20;

/// The bytes of the field that tells the size of the content.
fn size_bytes(descriptor: u8) -> usize {
    match descriptor >> 6 {
        0 => usize::from(descriptor & SINGLE_SEGMENT != 0),
        flag => 1 << flag,
    }
}

/// The bytes of a frame's window. The decoder checks the header; this is as much of it as the charge needs.
fn window_bytes(header: &[u8]) -> u64 {
    let (false, Some(descriptor)) = (is_skipped(header), header.get(4)) else { return 0 };
    if descriptor & SINGLE_SEGMENT == 0 {
        let byte = header.get(5).copied().unwrap_or_default();
        let base = 1u64 << (10 + (byte >> 3));
        return base + base / 8 * u64::from(byte & 7);
    }
    let field = &header[header.len().saturating_sub(size_bytes(*descriptor))..];
    let size = field.iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
    // Two bytes count from 256 on.
    if field.len() == 2 { size + 256 } else { size }
}
