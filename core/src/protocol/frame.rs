//! Frames: messages between a host and a worker, as bytes.
//!
//! In: a [`Frame`] that was written field by field, or bytes of a socket. Out: bytes for the socket, or frames. A frame
//! has a *head*, its short fields, and *chunks*: the nodes and the blobs of the values in it, which are moved and not
//! copied. Numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | length of the head |
//! | 4 | number of chunks |
//! | 8 each | lengths of the chunks |
//! | | the head |
//! | | the chunks |
//!
//! The reader does not trust the writer: it checks each length against a limit before it stores anything.

use std::collections::VecDeque;

use crate::value::{Purpose, Value, check};

/// The version of the whole protocol, on which host and worker must agree.
pub(crate) const VERSION: u32 = 7;

/// The longest head that a worker may send: the texts of an error, with a margin.
const LONGEST_HEAD: usize = 512 << 10;

/// The cost of a chunk beyond its bytes.
const CHUNK_OVERHEAD: usize = 64;

/// Frames up to this size are sent in one piece: copying them costs less than another system call.
const ONE_PIECE_BYTES: usize = 16 << 10;

/// The bytes before the table of lengths.
const PREFIX: usize = 8;

/// The bytes are not a frame, or not one that is allowed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// They break the protocol.
    Broken,
    /// They are more than the run may hold.
    TooLarge,
}

/// One message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    head: Vec<u8>,
    chunks: Vec<Vec<u8>>,
}

impl Frame {
    /// A frame of that kind, with no fields yet.
    pub(crate) fn new(kind: u8) -> Self {
        Self { head: vec![kind], chunks: Vec::new() }
    }

    pub(crate) fn u8(mut self, value: u8) -> Self {
        self.head.push(value);
        self
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.head.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.head.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn f64(self, value: f64) -> Self {
        self.u64(value.to_bits())
    }

    pub(crate) fn text(mut self, text: &str) -> Self {
        self = self.u64(text.len() as u64);
        self.head.extend(text.as_bytes());
        self
    }

    /// A field that may be absent.
    pub(crate) fn option<T>(self, value: Option<T>, write: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.u8(0),
            Some(value) => write(self.u8(1), value),
        }
    }

    pub(crate) fn list<T>(
        self,
        items: impl ExactSizeIterator<Item = T>,
        write: impl Fn(Self, T) -> Self,
    ) -> Self {
        let count = items.len() as u64;
        items.fold(self.u64(count), write)
    }

    /// A value. Its chunks are in the order of the fields.
    pub(crate) fn value(mut self, value: Value) -> Self {
        let (nodes, blobs) = value.into_parts();
        self = self.u32(u32::try_from(blobs.len()).unwrap_or(u32::MAX));
        self.chunks.push(nodes);
        self.chunks.extend(blobs);
        self
    }

    /// Bytes that the reader does not copy.
    pub(crate) fn chunk(mut self, bytes: Vec<u8>) -> Self {
        self.chunks.push(bytes);
        self
    }

    /// The work of checking a worker's value, in bytes: its nodes, and a constant for each chunk. A frame has one
    /// value.
    pub(crate) fn nodes_bytes(&self) -> usize {
        let nodes_bytes = self.chunks.first().map_or(0, Vec::len);
        nodes_bytes.saturating_add(self.chunks.len().saturating_mul(CHUNK_OVERHEAD))
    }

    fn chunk_bytes(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// The bytes for a socket, in order of sending: in one piece if they are few.
    pub(crate) fn into_bytes(self) -> impl Iterator<Item = Vec<u8>> {
        let chunk_bytes = self.chunk_bytes();
        let first_bytes = PREFIX + 8 * self.chunks.len() + self.head.len();
        let few = first_bytes + chunk_bytes <= ONE_PIECE_BYTES;
        let mut first = Vec::with_capacity(first_bytes + if few { chunk_bytes } else { 0 });
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
        first.extend(count(self.head.len()));
        first.extend(count(self.chunks.len()));
        for chunk in &self.chunks {
            first.extend((chunk.len() as u64).to_le_bytes());
        }
        first.extend(self.head);
        let (joined, apart) =
            if few { (self.chunks, Vec::new()) } else { (Vec::new(), self.chunks) };
        first.extend(joined.into_iter().flatten());
        std::iter::once(first).chain(apart).filter(|bytes| !bytes.is_empty())
    }

    /// Reads the frame: its kind, and its fields.
    pub(crate) fn read(self) -> Result<(u8, Fields), Unreadable> {
        let mut fields = Fields { head: self.head, at: 0, chunks: self.chunks.into() };
        let kind = fields.u8()?;
        Ok((kind, fields))
    }
}

/// The fields of a frame, read in the order in which they were written.
#[derive(Debug)]
pub(crate) struct Fields {
    head: Vec<u8>,
    at: usize,
    chunks: VecDeque<Vec<u8>>,
}

impl Fields {
    fn take(&mut self, length: usize) -> Result<&[u8], Unreadable> {
        let end = self.at.checked_add(length).ok_or(Unreadable::Broken)?;
        let taken = self.head.get(self.at..end).ok_or(Unreadable::Broken)?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        self.take(N)?.try_into().map_err(|_| Unreadable::Broken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Unreadable> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Unreadable> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Unreadable> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Result<f64, Unreadable> {
        self.u64().map(f64::from_bits)
    }

    fn length(&mut self) -> Result<usize, Unreadable> {
        usize::try_from(self.u64()?).map_err(|_| Unreadable::Broken)
    }

    pub(crate) fn text(&mut self) -> Result<String, Unreadable> {
        let length = self.length()?;
        let bytes = self.take(length)?.to_vec();
        String::from_utf8(bytes).map_err(|_| Unreadable::Broken)
    }

    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<Option<T>, Unreadable> {
        match self.u8()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(Unreadable::Broken),
        }
    }

    /// A list whose items have at least one byte each, so a count that exceeds the rest of the head is refused.
    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<Vec<T>, Unreadable> {
        let count = self.length()?;
        if count > self.head.len() - self.at {
            return Err(Unreadable::Broken);
        }
        (0..count).map(|_| read(self)).collect()
    }

    /// The nodes and the blobs of a value, unchecked.
    fn parts(&mut self) -> Result<(Vec<u8>, Vec<Vec<u8>>), Unreadable> {
        let blobs = self.u32()? as usize;
        let nodes = self.chunks.pop_front().ok_or(Unreadable::Broken)?;
        if blobs > self.chunks.len() {
            return Err(Unreadable::Broken);
        }
        Ok((nodes, self.chunks.drain(..blobs).collect()))
    }

    /// Bytes of any content.
    pub(crate) fn chunk(&mut self) -> Result<Vec<u8>, Unreadable> {
        self.chunks.pop_front().ok_or(Unreadable::Broken)
    }

    /// A value of a trusted writer.
    pub(crate) fn value(&mut self) -> Result<Value, Unreadable> {
        self.parts().map(|(nodes, blobs)| Value::from_parts(nodes, blobs))
    }

    /// A value of a worker: one that an isolate could have made for that purpose.
    pub(crate) fn checked_value(
        &mut self,
        purpose: Purpose,
        most_bytes: usize,
    ) -> Result<Value, Unreadable> {
        let (nodes, blobs) = self.parts()?;
        check(nodes, blobs, purpose, most_bytes).map_err(|_| Unreadable::Broken)
    }

    /// Fails if any field is left.
    pub(crate) fn end(self) -> Result<(), Unreadable> {
        let empty = self.at == self.head.len() && self.chunks.is_empty();
        if empty { Ok(()) } else { Err(Unreadable::Broken) }
    }
}

/// Reassembles frames from the bytes of a stream.
#[derive(Debug)]
pub(crate) struct Inlet {
    /// The limit of the chunks of one frame.
    most_bytes: usize,
    longest_head: usize,
    /// The frame's first part: prefix, lengths and head.
    first: Vec<u8>,
    lengths: Vec<usize>,
    chunks: Vec<Vec<u8>>,
}

impl Inlet {
    /// An inlet for the frames of a worker, with that limit for each.
    pub(crate) fn hostile(most_bytes: usize) -> Self {
        Self { most_bytes, longest_head: LONGEST_HEAD, ..Self::trusting() }
    }

    /// An inlet for the frames of the host.
    pub(crate) fn trusting() -> Self {
        Self {
            most_bytes: usize::MAX,
            longest_head: usize::MAX,
            first: Vec::new(),
            lengths: Vec::new(),
            chunks: Vec::new(),
        }
    }

    /// Sets the limit of all later frames.
    pub(crate) fn set_most_bytes(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
    }

    /// Whether a frame has begun and is not complete.
    pub(crate) fn is_amid(&self) -> bool {
        !self.first.is_empty()
    }

    /// The chunk that is being filled, if at least `missing` bytes of it are missing. The next bytes can be read into
    /// its spare capacity.
    pub(crate) fn open(&mut self, missing: usize) -> Option<&mut Vec<u8>> {
        let length = self.chunks.len().checked_sub(1).and_then(|opened| self.lengths.get(opened));
        let (chunk, length) = self.chunks.last_mut().zip(length)?;
        // A chunk with too much capacity would take bytes of the next one.
        let fits = chunk.capacity() == *length && length - chunk.len() >= missing.max(1);
        fits.then_some(chunk)
    }

    /// Takes bytes up to the end of a frame, which it returns, or all of them.
    pub(crate) fn feed(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame>, Unreadable> {
        if self.first.len() < PREFIX {
            if !fill(&mut self.first, PREFIX, bytes) {
                return Ok(None);
            }
            self.check_prefix()?;
        }
        let table = PREFIX + 8 * self.chunk_count();
        let whole = table + self.head_length();
        if self.first.len() < whole {
            if !fill(&mut self.first, whole, bytes) {
                return Ok(None);
            }
            self.read_lengths(table)?;
        }
        while let Some(opened) = self.chunks.len().checked_sub(1) {
            let chunk = &mut self.chunks[opened];
            let length = self.lengths.get(opened).copied().unwrap_or(0);
            if !fill(chunk, length, bytes) {
                return Ok(None);
            }
            if self.chunks.len() == self.lengths.len() {
                break;
            }
            self.open_chunk()?;
        }
        let head = self.first.split_off(table);
        self.first.clear();
        self.lengths.clear();
        Ok(Some(Frame { head, chunks: std::mem::take(&mut self.chunks) }))
    }

    fn word(&self, at: usize) -> usize {
        let bytes = self.first.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, |bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn head_length(&self) -> usize {
        self.word(0)
    }

    fn chunk_count(&self) -> usize {
        self.word(4)
    }

    fn check_prefix(&self) -> Result<(), Unreadable> {
        if self.head_length() == 0 || self.head_length() > self.longest_head {
            return Err(Unreadable::Broken);
        }
        if self.chunk_count().saturating_mul(CHUNK_OVERHEAD) > self.most_bytes {
            return Err(Unreadable::TooLarge);
        }
        Ok(())
    }

    fn read_lengths(&mut self, table: usize) -> Result<(), Unreadable> {
        let mut bytes = 0_usize;
        for length in self.first[PREFIX..table].chunks_exact(8) {
            let length = length.try_into().map(u64::from_le_bytes);
            let length = length.ok().and_then(|length| usize::try_from(length).ok());
            let length = length.ok_or(Unreadable::TooLarge)?;
            bytes = bytes.saturating_add(length).saturating_add(CHUNK_OVERHEAD);
            self.lengths.push(length);
        }
        if bytes > self.most_bytes {
            return Err(Unreadable::TooLarge);
        }
        if self.lengths.is_empty() { Ok(()) } else { self.open_chunk() }
    }

    /// Allocates the next chunk. Its length is below the limit, and reserved addresses take no memory yet.
    fn open_chunk(&mut self) -> Result<(), Unreadable> {
        let length = self.lengths.get(self.chunks.len()).copied().unwrap_or(0);
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(length).map_err(|_| Unreadable::TooLarge)?;
        self.chunks.push(chunk);
        Ok(())
    }
}

/// Fills `part` up to that length. Returns whether it is full.
fn fill(part: &mut Vec<u8>, length: usize, bytes: &mut &[u8]) -> bool {
    let missing = length.saturating_sub(part.len()).min(bytes.len());
    let (taken, rest) = bytes.split_at(missing);
    part.extend_from_slice(taken);
    *bytes = rest;
    part.len() >= length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        let blobs = Value::from_parts(vec![1, 2, 3], vec![vec![9; 1000], Vec::new()]);
        let frame = Frame::new(7).u32(5).text("text").option(Some(2.5), Frame::f64);
        frame
            .option(None, Frame::u64)
            .list(["a", "b"].iter(), |frame, text| frame.text(text))
            .value(blobs)
    }

    fn bytes(frame: Frame) -> Vec<u8> {
        frame.into_bytes().flatten().collect()
    }

    #[test]
    fn a_frame_comes_out_as_it_went_in_however_it_is_cut() {
        let sent: Vec<u8> = [bytes(frame()), bytes(Frame::new(1)), bytes(frame())].concat();
        for step in [1, 2, 7, 8, 9, 100, sent.len()] {
            let mut inlet = Inlet::hostile(4096);
            let mut came = Vec::new();
            for mut part in sent.chunks(step) {
                while !part.is_empty() {
                    came.extend(inlet.feed(&mut part).expect("readable"));
                }
            }
            assert!(!inlet.is_amid());
            assert_eq!(came, [frame(), Frame::new(1), frame()], "in steps of {step}");
        }
    }

    #[test]
    fn a_chunk_can_be_filled_as_it_is() {
        let sent = bytes(frame());
        let mut inlet = Inlet::hostile(4096);
        let (first, mut rest) = sent.split_at(sent.len() - 500);
        assert_eq!(inlet.feed(&mut &*first), Ok(None));
        assert_eq!(inlet.open(501), None);
        while let Some(chunk) = inlet.open(1) {
            let (taken, left) = rest.split_at(250);
            chunk.extend_from_slice(taken);
            rest = left;
            assert!(rest.is_empty() || inlet.is_amid());
        }
        assert!(rest.is_empty());
        assert_eq!(inlet.feed(&mut &*rest), Ok(Some(frame())));
        assert_eq!(inlet.open(0), None);
    }

    #[test]
    fn its_fields_are_read_in_order() {
        let (kind, mut fields) = frame().read().expect("a kind");
        assert_eq!((kind, fields.u32(), fields.text()), (7, Ok(5), Ok("text".to_owned())));
        assert_eq!(fields.option(Fields::f64), Ok(Some(2.5)));
        assert_eq!(fields.option(Fields::u64), Ok(None));
        assert_eq!(fields.list(Fields::text), Ok(vec!["a".to_owned(), "b".to_owned()]));
        let value = fields.value().expect("a message");
        assert_eq!((value.nodes(), value.blobs().len()), (&[1, 2, 3][..], 2));
        assert_eq!(fields.u8(), Err(Unreadable::Broken));
        assert_eq!(fields.end(), Ok(()));
    }

    #[test]
    fn what_claims_too_much_is_refused_before_it_is_kept() {
        let refused =
            |bytes: &[u8]| Inlet::hostile(1 << 20).feed(&mut &*bytes).expect_err("no frame");
        let prefix = |head: u32, chunks: u32| [head.to_le_bytes(), chunks.to_le_bytes()].concat();
        assert_eq!(refused(&prefix(0, 0)), Unreadable::Broken);
        assert_eq!(refused(&prefix(u32::MAX, 0)), Unreadable::Broken);
        assert_eq!(refused(&prefix(1, u32::MAX)), Unreadable::TooLarge);
        for length in [1 << 20, u64::MAX] {
            let claims =
                [prefix(1, 2), length.to_le_bytes().to_vec(), vec![0; 8], vec![0]].concat();
            assert_eq!(refused(&claims), Unreadable::TooLarge);
        }
    }

    #[test]
    fn counts_that_the_head_cannot_hold_are_not_believed() {
        let read = |frame: Frame| frame.read().expect("a kind").1;
        assert_eq!(read(Frame::new(1).u64(u64::MAX)).list(Fields::u8), Err(Unreadable::Broken));
        assert_eq!(read(Frame::new(1).u64(1 << 40)).text(), Err(Unreadable::Broken));
        assert!(read(Frame::new(1).u32(7)).value().is_err());
        assert_eq!(read(Frame::new(1).u8(2)).option(Fields::u8), Err(Unreadable::Broken));
        assert_eq!(read(Frame::new(1).u8(2)).end(), Err(Unreadable::Broken));
    }
}
