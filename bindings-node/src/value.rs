//! Messages, and the frames that carry them between the two halves of the package.
//!
//! A frame is little-endian. A text is its length in bytes as a `u32`, then UTF-8. A message is its length in bytes
//! as a `u32`, the number of its blobs as a `u32`, then its nodes. A large message is [`LARGE`] and its number
//! (`large.rs`). Blobs are beside the frame: moved on their way to JavaScript, and copied once on their way from it,
//! because Rust cannot take over JavaScript's memory.

use isolane::{inspect, inspect_limit, value::Value};
use napi::{Either, Env, Result, bindgen_prelude::Uint8ArraySlice};
use napi_derive::napi;

use crate::{
    error::{Misuse, broken_frame},
    large::Large,
    wire::LARGE,
};

/// Below this, copying bytes into JavaScript's memory is cheaper than lending it ours.
const LENT_BYTES: usize = 64 * 1024;

/// A larger message is not part of a frame; JavaScript reads it in slices.
const LARGE_BYTES: usize = 64 * 1024;

/// The most blobs that JavaScript gets at once.
pub(crate) const MANY_BLOBS: usize = 256;

/// A value as a console shows it, in at most that many bytes; the value is a message.
///
/// # Errors
/// When `length` is beyond the frame.
#[napi(catch_unwind)]
pub fn describe(
    frame: &[u8],
    length: u32,
    blobs: Option<Vec<&[u8]>>,
    limit: Option<f64>,
) -> Result<Either<String, Misuse>> {
    let message = Cursor::new(frame, length)?.message(blobs);
    Ok(match inspect_limit(limit) {
        Ok(limit) => Either::A(inspect(&message, limit)),
        Err(error) => Either::B(Misuse::from(error)),
    })
}

/// A frame being written.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    pub(crate) blobs: Vec<Vec<u8>>,
    /// The number of the first of `larges`; the others have the numbers after it.
    first_large: u32,
    pub(crate) larges: Vec<Large>,
}

impl Frame {
    /// A frame whose large messages have the numbers from `first_large` on.
    pub(crate) fn new(first_large: u32) -> Self {
        Self { first_large, ..Self::default() }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn f64(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn count(&mut self, value: usize) {
        self.u32(u32::try_from(value).unwrap_or(u32::MAX));
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn message(&mut self, value: Value) {
        if value.nodes().len() > LARGE_BYTES || value.blobs().len() > MANY_BLOBS {
            self.u32(LARGE);
            let number = u32::try_from(self.larges.len()).unwrap_or_default();
            self.u32(self.first_large.wrapping_add(number));
            self.larges.push(Large::from(value));
        } else {
            self.whole_message(value);
        }
    }

    /// Writes a message that is read at once, whatever its size.
    pub(crate) fn whole_message(&mut self, value: Value) {
        let (nodes, mut blobs) = value.into_parts();
        self.count(nodes.len());
        self.count(blobs.len());
        self.bytes.extend_from_slice(&nodes);
        self.blobs.append(&mut blobs);
    }

    /// Whether the frame reaches `end`, or has as many blobs or large messages as JavaScript takes at once.
    pub(crate) fn is_full(&self, end: usize) -> bool {
        const MANY_LARGES: usize = 16;
        self.bytes.len() >= end
            || self.blobs.len() >= MANY_BLOBS
            || self.larges.len() >= MANY_LARGES
    }

    /// Calls `write` and puts the number of its bytes in front of them, as a `u32`.
    pub(crate) fn measured(&mut self, write: impl FnOnce(&mut Self)) {
        let place = self.bytes.len();
        self.u32(0);
        write(self);
        let length = u32::try_from(self.bytes.len() - place - 4).unwrap_or(u32::MAX);
        self.bytes[place..place + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// A frame being read.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// The first `length` bytes of `frame`.
    pub(crate) fn new(frame: &'a [u8], length: u32) -> Result<Self> {
        Ok(Self { rest: frame.get(..length as usize).ok_or_else(broken_frame)? })
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn f64(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        let length = self.u32()? as usize;
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| broken_frame())
    }

    pub(crate) fn units(&mut self) -> Result<Vec<u16>> {
        let length = self.u32()? as usize;
        let bytes = self.take(length.checked_mul(2).ok_or_else(broken_frame)?)?;
        Ok(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect())
    }

    /// A count of items of at least one byte each.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count = self.u32()? as usize;
        if count > self.rest.len() { Err(broken_frame()) } else { Ok(count) }
    }

    /// The rest of the frame, as a message.
    pub(crate) fn message(self, blobs: Option<Vec<&[u8]>>) -> Value {
        let blobs = blobs.unwrap_or_default().into_iter().map(<[u8]>::to_vec).collect();
        Value::from_parts(self.rest.to_vec(), blobs)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| broken_frame())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(broken_frame)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Bytes as a JavaScript array. Many bytes are lent, and freed when JavaScript has collected the array.
pub(crate) fn into_javascript(env: &Env, bytes: Vec<u8>) -> Result<Uint8ArraySlice<'_>> {
    if bytes.len() < LENT_BYTES {
        return Uint8ArraySlice::copy_from(env, bytes);
    }
    Uint8ArraySlice::from_data(env, bytes)
}
