//! The encodings of an answer's body: gzip, deflate, Brotli and Zstandard.
//!
//! In: the header `Content-Encoding`, and the body as it comes. Out: the bytes that it stands for, in pieces. Nothing
//! piles up here: each piece is handed on before the next is made, so a caller that stops at a limit has seen all bytes
//! that exist. The memory of a decoder is charged before.

mod brotli;
mod deflate;
mod zstandard;

use self::{
    brotli::Brotli,
    deflate::{Deflate, Gzip},
    zstandard::Zstandard,
};
use super::shared_room::SharedRoom;
use crate::error::KitError;

/// The most encodings on top of each other.
const MOST_LAYERS: usize = 3;

/// The bytes of a piece.
const PIECE_BYTES: usize = 32 << 10;

/// The reason why decoding stops.
#[derive(Debug)]
pub(super) enum Stop {
    /// The bytes are not of the encoding.
    Invalid,
    /// As the receiver of the pieces says.
    Told(KitError),
}

impl From<KitError> for Stop {
    fn from(error: KitError) -> Self {
        Self::Told(error)
    }
}

/// Receives pieces.
type Emit<'e> = &'e mut dyn FnMut(&[u8]) -> Result<(), Stop>;

/// A decoder of one encoding.
trait Decoder: Send {
    /// Reads the next bytes, and emits what they stand for.
    fn push(&mut self, bytes: &[u8], emit: Emit<'_>) -> Result<(), Stop>;

    /// The body is over. Fails if its encoding is not.
    fn finish(&mut self, emit: Emit<'_>) -> Result<(), Stop>;
}

/// The decoders of a body.
pub(super) struct Decoders {
    /// The outermost first.
    layers: Vec<Box<dyn Decoder>>,
    is_begun: bool,
}

impl Decoders {
    /// Those of a header; none for an encoding that is not known, whose bytes are handed on as they are.
    ///
    /// # Errors
    /// `Invalid` if there are too many, and without room for them.
    pub(super) fn new(content_encoding: &str, room: &SharedRoom) -> Result<Self, Stop> {
        let mut layers: Vec<Box<dyn Decoder>> = Vec::new();
        for name in content_encoding.split(',').rev().map(str::trim) {
            let layer: Box<dyn Decoder> = match name.to_ascii_lowercase().as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Box::new(Gzip::new(room)?),
                "deflate" => Box::new(Deflate::new(room)?),
                "br" => Box::new(Brotli::new(room)?),
                "zstd" => Box::new(Zstandard::new(room)?),
                _ => break,
            };
            if layers.len() == MOST_LAYERS {
                return Err(Stop::Invalid);
            }
            layers.push(layer);
        }
        Ok(Self { layers, is_begun: false })
    }

    /// Whether bytes are handed on as they are.
    pub(super) fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Reads the next bytes. `emit` receives the body, `between` counts the pieces between two encodings.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        between: &mut dyn FnMut(usize) -> Result<(), Stop>,
        emit: Emit<'_>,
    ) -> Result<(), Stop> {
        self.is_begun |= !bytes.is_empty();
        push(&mut self.layers, bytes, between, emit)
    }

    /// The body is over. One without any bytes is valid in every encoding.
    pub(super) fn finish(
        &mut self,
        between: &mut dyn FnMut(usize) -> Result<(), Stop>,
        emit: Emit<'_>,
    ) -> Result<(), Stop> {
        let mut layers = if self.is_begun { &mut self.layers[..] } else { &mut [] };
        while let Some((outer, inner)) = layers.split_first_mut() {
            outer.finish(&mut |piece| push(inner, piece, between, emit))?;
            layers = inner;
        }
        Ok(())
    }
}

fn push(
    layers: &mut [Box<dyn Decoder>],
    bytes: &[u8],
    between: &mut dyn FnMut(usize) -> Result<(), Stop>,
    emit: Emit<'_>,
) -> Result<(), Stop> {
    let Some((outer, inner)) = layers.split_first_mut() else { return emit(bytes) };
    if inner.is_empty() {
        return outer.push(bytes, emit);
    }
    outer.push(bytes, &mut |piece| {
        between(piece.len())?;
        push(inner, piece, between, emit)
    })
}
