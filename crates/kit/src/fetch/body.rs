//! The body of an answer, whole.
//!
//! In: the answer as it comes. Out: its bytes, without encodings, in which secrets are placeholders again. They are
//! counted and charged as they come, and encodings are undone as they come: a limit stops an answer before more of it
//! exists.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    body::{Body as _, Incoming},
    header::{CONTENT_ENCODING, HeaderMap},
};
use url::Url;

use super::{
    encoding::{Decoders, Stop},
    failure,
    run_limits::RunLimits,
    shared_room::SharedRoom,
};
use crate::{error::KitError, redaction::Redaction, secrets::Snapshot};

/// The most bytes that are reserved because a server announces them.
const MOST_ANNOUNCED: u64 = 256 << 10;

/// Bytes of an encoded body that are decoded at a time.
const SLICE_BYTES: usize = 2 << 10;

/// Bytes after which other requests have their turn on the thread.
const TURN_BYTES: u64 = 256 << 10;

/// Counts the bytes of one answer.
pub(super) struct Count<'c> {
    pub(super) limits: &'c RunLimits,
    /// The limit of one answer.
    pub(super) most_bytes: u64,
    /// Bytes of the answer as they came.
    came_bytes: u64,
    /// Bytes that they stand for, between encodings too.
    made_bytes: u64,
    counted_bytes: u64,
}

impl<'c> Count<'c> {
    pub(super) fn new(limits: &'c RunLimits, most_bytes: u64) -> Self {
        Self { limits, most_bytes, came_bytes: 0, made_bytes: 0, counted_bytes: 0 }
    }

    /// The larger one of the bytes that came, and of those that they stand for.
    pub(super) fn bytes(&self) -> u64 {
        self.came_bytes.max(self.made_bytes)
    }

    /// Counts bytes that came.
    pub(super) fn came(&mut self, bytes: usize) -> Result<(), KitError> {
        self.came_bytes += bytes as u64;
        self.check()
    }

    fn made(&mut self, bytes: usize) -> Result<(), KitError> {
        self.made_bytes += bytes as u64;
        self.check()
    }

    fn check(&mut self) -> Result<(), KitError> {
        let bytes = self.bytes();
        if bytes > self.most_bytes {
            let message = format!("the response is larger than {} bytes", self.most_bytes);
            return Err(failure::limit(message));
        }
        let more = bytes - self.counted_bytes;
        self.counted_bytes = bytes;
        self.limits.bytes(more)
    }
}

/// Bytes that are charged before they are held.
struct Collected {
    bytes: Vec<u8>,
    room: SharedRoom,
    redaction: Redaction,
}

impl Collected {
    /// Makes room for so many more bytes.
    fn reserve(&mut self, more: usize) -> Result<(), KitError> {
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        if more > capacity - length {
            let grown = (length + more).max(capacity + capacity / 2);
            self.room.need(grown - capacity)?;
            self.bytes.reserve_exact(grown - length);
        }
        Ok(())
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), KitError> {
        self.reserve(bytes.len() + self.redaction.held_bytes())?;
        let before = self.bytes.capacity();
        self.redaction.push(bytes, &mut self.bytes);
        // A placeholder is longer than a short value. Pieces are short.
        self.room.need(self.bytes.capacity() - before)
    }
}

/// Reads a body to its end.
pub(super) async fn read(
    mut body: Incoming,
    headers: &HeaderMap,
    url: &Url,
    secrets: &Snapshot,
    room: &SharedRoom,
    count: &mut Count<'_>,
) -> Result<Vec<u8>, KitError> {
    let told = |stop| match stop {
        Stop::Invalid => failure::no_valid_answer(url),
        Stop::Told(error) => error,
    };
    let mut collected = Collected {
        bytes: Vec::new(),
        room: room.clone(),
        redaction: Redaction::new(secrets.responses_of(url)),
    };
    if body.is_end_stream() {
        return Ok(collected.bytes);
    }
    let mut decoders = Decoders::new(&content_encoding(headers), room).map_err(told)?;
    if let (true, Some(announced)) = (decoders.is_empty(), body.size_hint().exact()) {
        let announced = announced.min(MOST_ANNOUNCED).min(count.most_bytes);
        collected.reserve(usize::try_from(announced).unwrap_or(0))?;
    }
    let mut turn_bytes = count.bytes();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| failure::of_exchange(&error, url))?;
        let Ok(data) = frame.into_data() else { continue };
        count.came(data.len())?;
        for slice in slices(&data, decoders.is_empty()) {
            decode(&mut decoders, Some(slice), count, &mut collected).map_err(told)?;
            if count.bytes() - turn_bytes > TURN_BYTES {
                turn_bytes = count.bytes();
                tokio::task::yield_now().await;
            }
        }
    }
    decode(&mut decoders, None, count, &mut collected).map_err(told)?;
    let Collected { mut bytes, redaction, room } = collected;
    let rest = redaction.held_bytes();
    let before = bytes.capacity();
    room.need(rest)?;
    redaction.finish(&mut bytes);
    room.need((bytes.capacity() - before).saturating_sub(rest))?;
    bytes.shrink_to_fit();
    Ok(bytes)
}

/// A body that is not encoded is copied as it is.
fn slices(data: &Bytes, is_plain: bool) -> impl Iterator<Item = &[u8]> {
    data.chunks(if is_plain { data.len().max(1) } else { SLICE_BYTES })
}

/// Decodes the next bytes, or the end.
fn decode(
    decoders: &mut Decoders,
    bytes: Option<&[u8]>,
    count: &mut Count<'_>,
    collected: &mut Collected,
) -> Result<(), Stop> {
    let count = std::cell::RefCell::new(count);
    let mut between = |bytes| Ok(count.borrow_mut().made(bytes)?);
    let mut emit = |piece: &[u8]| {
        count.borrow_mut().made(piece.len())?;
        Ok(collected.push(piece)?)
    };
    match bytes {
        Some(bytes) => decoders.push(bytes, &mut between, &mut emit),
        None => decoders.finish(&mut between, &mut emit),
    }
}

/// All values of `Content-Encoding`, as if they were one.
fn content_encoding(headers: &HeaderMap) -> String {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    values.join(",")
}
