//! A reader of messages, node after node.
//!
//! In: the nodes of a message, which may come from a hostile writer. Out: [`Event`]s in the order in which they were
//! written, or [`Malformed`]. The reader keeps no stack: it hands out one node at a time. Its caller calls
//! [`Reader::key`] for the keys of an object, and counts the elements of an array. Lengths are checked against the rest
//! of the message before anything is returned.

use super::{
    ErrorClass, ViewKind, key,
    path::{KEY_UNITS, Step},
    tag,
};

/// The bytes are no message: they end too early or break the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("malformed message")
    }
}

impl std::error::Error for Malformed {}

/// Text as it stands in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Str<'a> {
    /// Well-formed text.
    Utf8(&'a str),
    /// UTF-16 code units, two bytes each, with a lone surrogate among them.
    Utf16(&'a [u8]),
}

impl Str<'_> {
    /// The text with every lone surrogate replaced by U+FFFD.
    #[must_use]
    pub fn to_string_lossy(&self) -> String {
        match self {
            Self::Utf8(text) => (*text).to_owned(),
            Self::Utf16(_) => String::from_utf16_lossy(&self.units()),
        }
    }

    /// The text as UTF-16 code units.
    #[must_use]
    pub fn units(&self) -> Vec<u16> {
        match self {
            Self::Utf8(text) => text.encode_utf16().collect(),
            Self::Utf16(bytes) => {
                bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
            }
        }
    }

    /// The step of a path for a property with this key. The key is cut to the part that a path shows before it is
    /// copied.
    #[must_use]
    pub fn to_step(&self) -> Step {
        let shown = match *self {
            Self::Utf8(text) => Str::Utf8(&text[..text.floor_char_boundary(KEY_UNITS)]),
            Self::Utf16(bytes) => Str::Utf16(&bytes[..bytes.len().min(2 * KEY_UNITS)]),
        };
        Step::Key(shown.to_string_lossy())
    }
}

/// The bytes of a text that has not been checked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchecked<'a> {
    /// UTF-8, if the message is one.
    Utf8(&'a [u8]),
    /// UTF-16 code units, two bytes each.
    Utf16(&'a [u8]),
}

/// One node, without its nested nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "named like the tags that the format's table describes")]
pub enum Event<'a> {
    Undefined,
    Null,
    Bool(bool),
    Int(i32),
    Double(f64),
    BigInt { negative: bool, magnitude: &'a [u8] },
    String(Str<'a>),
    Hole,
    Ref(u32),
    Object,
    Array(u32),
    SparseArray(u32),
    Map(u32),
    Set(u32),
    Date(f64),
    RegExp,
    Error(ErrorClass),
    Buffer(u32),
    View { kind: ViewKind, blob: u32, byte_offset: u64, length: u64 },
    HostFunction(u32),
    SandboxFunction(u32),
    HostPromise(u32),
    SandboxPromise(u32),
}

impl Event<'_> {
    /// Whether this node takes an object index.
    #[must_use]
    pub fn is_object(&self) -> bool {
        !matches!(
            self,
            Self::Undefined
                | Self::Null
                | Self::Bool(_)
                | Self::Int(_)
                | Self::Double(_)
                | Self::BigInt { .. }
                | Self::String(_)
                | Self::Hole
                | Self::Ref(_)
        )
    }
}

/// A key of an object, by its place among the keys of the message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key<'a> {
    /// The place of the key among the distinct keys of the message: the same text has the same number.
    pub number: u32,
    /// The key itself.
    pub text: Str<'a>,
}

/// A cursor over the nodes of one message.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    keys: Vec<Str<'a>>,
    /// Whether any number so far took more bytes than it needs.
    padded: bool,
}

/// A place in a message to come back to, and the number of keys known there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark<'a> {
    rest: &'a [u8],
    keys: usize,
}

impl Mark<'_> {
    /// Bytes from here to the end of the message: fewer for a later place.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }
}

/// The place where a jump started, and the reader's keys there.
#[derive(Debug)]
pub(super) struct Jump<'a> {
    from: &'a [u8],
    /// Keys known at the target.
    kept: usize,
    /// Keys known beyond that.
    set_aside: Vec<Str<'a>>,
}

impl Jump<'_> {
    /// The number of keys that had to be set aside: the cost of the jump.
    pub(super) fn cost(&self) -> usize {
        self.set_aside.len()
    }
}

impl<'a> Reader<'a> {
    /// A reader at the first node.
    #[must_use]
    pub fn new(nodes: &'a [u8]) -> Self {
        Self { rest: nodes, keys: Vec::new(), padded: false }
    }

    /// The current place.
    pub(super) fn mark(&self) -> Mark<'a> {
        Mark { rest: self.rest, keys: self.keys.len() }
    }

    /// Goes back to a place that was passed, to read it again.
    pub(super) fn jump(&mut self, to: Mark<'a>) -> Jump<'a> {
        let kept = to.keys.min(self.keys.len());
        let set_aside = self.keys.split_off(kept);
        Jump { from: std::mem::replace(&mut self.rest, to.rest), kept, set_aside }
    }

    /// Goes on where a jump started.
    pub(super) fn come_back(&mut self, jump: Jump<'a>) {
        self.rest = jump.from;
        self.keys.truncate(jump.kept);
        self.keys.extend(jump.set_aside);
    }

    /// The tag of the next node.
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Whether the next node is a value without identity and without nodes of its own.
    pub(crate) fn is_at_plain(&self) -> bool {
        let plain = [
            tag::UNDEFINED,
            tag::NULL,
            tag::TRUE,
            tag::FALSE,
            tag::INT,
            tag::DOUBLE,
            tag::BIGINT,
            tag::STRING,
            tag::STRING16,
        ];
        self.peek().is_some_and(|tag| plain.contains(&tag))
    }

    /// Bytes that have not been read.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Whether each number so far had its shortest form.
    pub(super) fn is_shortest(&self) -> bool {
        !self.padded
    }

    /// Whether everything has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next node.
    ///
    /// # Errors
    /// [`Malformed`] where the message ends or is none.
    pub fn event(&mut self) -> Result<Event<'a>, Malformed> {
        Ok(match self.byte()? {
            tag::UNDEFINED => Event::Undefined,
            tag::NULL => Event::Null,
            tag::TRUE => Event::Bool(true),
            tag::FALSE => Event::Bool(false),
            tag::INT => {
                let zigzag = u32::try_from(self.varint()?).map_err(|_| Malformed)?;
                Event::Int((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
            }
            tag::DOUBLE => Event::Double(self.double()?),
            tag::BIGINT => {
                let negative = self.byte()? != 0;
                let length = self.count()?;
                Event::BigInt { negative, magnitude: self.take(length)? }
            }
            tag::STRING => Event::String(self.utf8()?),
            tag::STRING16 => Event::String(self.utf16()?),
            tag::HOLE => Event::Hole,
            tag::REF => Event::Ref(self.small()?),
            tag::OBJECT => Event::Object,
            tag::ARRAY => Event::Array(self.small()?),
            tag::SPARSE_ARRAY => Event::SparseArray(self.small()?),
            tag::MAP => Event::Map(self.small()?),
            tag::SET => Event::Set(self.small()?),
            tag::DATE => Event::Date(self.double()?),
            tag::REGEXP => Event::RegExp,
            tag::ERROR => Event::Error(ErrorClass::from_byte(self.byte()?)),
            tag::BUFFER => Event::Buffer(self.u32()?),
            tag::VIEW => Event::View {
                kind: ViewKind::from_byte(self.byte()?).ok_or(Malformed)?,
                blob: self.u32()?,
                byte_offset: self.u64()?,
                length: self.u64()?,
            },
            tag::HOST_FUNCTION => Event::HostFunction(self.u32()?),
            tag::SANDBOX_FUNCTION => Event::SandboxFunction(self.u32()?),
            tag::HOST_PROMISE => Event::HostPromise(self.u32()?),
            tag::SANDBOX_PROMISE => Event::SandboxPromise(self.u32()?),
            _ => return Err(Malformed),
        })
    }

    /// Passes the next node if it is a text of more than `most` bytes, and returns these unchecked. For callers that
    /// read a long text in pieces, and check each of them.
    ///
    /// # Errors
    /// [`Malformed`] where the message ends.
    pub fn long_text(&mut self, most: usize) -> Result<Option<Unchecked<'a>>, Malformed> {
        let Some(kind @ (tag::STRING | tag::STRING16)) = self.peek() else { return Ok(None) };
        let (rest, padded) = (self.rest, self.padded);
        self.byte()?;
        let units = self.count()?;
        let bytes = if kind == tag::STRING { Some(units) } else { units.checked_mul(2) };
        let bytes = bytes.ok_or(Malformed)?;
        if bytes <= most {
            (self.rest, self.padded) = (rest, padded);
            return Ok(None);
        }
        let text = self.take(bytes)?;
        Ok(Some(if kind == tag::STRING { Unchecked::Utf8(text) } else { Unchecked::Utf16(text) }))
    }

    /// The next key of the object being read, `None` at its end.
    ///
    /// # Errors
    /// [`Malformed`] where the message ends or is none.
    pub fn key(&mut self) -> Result<Option<Key<'a>>, Malformed> {
        let text = match self.varint()? {
            key::END => return Ok(None),
            key::NEW => self.utf8()?,
            key::NEW16 => self.utf16()?,
            known => {
                let number = u32::try_from(known - key::KNOWN).map_err(|_| Malformed)?;
                let text = *self.keys.get(number as usize).ok_or(Malformed)?;
                return Ok(Some(Key { number, text }));
            }
        };
        self.keys.push(text);
        let number = u32::try_from(self.keys.len() - 1).map_err(|_| Malformed)?;
        Ok(Some(Key { number, text }))
    }

    /// The index of the next element of the sparse array being read, `None` at its end.
    ///
    /// # Errors
    /// [`Malformed`] where the message ends or is none.
    pub fn sparse_index(&mut self) -> Result<Option<u32>, Malformed> {
        match self.varint()? {
            0 => Ok(None),
            index => Ok(Some(u32::try_from(index - 1).map_err(|_| Malformed)?)),
        }
    }

    /// A node that must be text, as inside an error or a RegExp.
    ///
    /// # Errors
    /// [`Malformed`] where it is something else.
    pub fn text(&mut self) -> Result<Str<'a>, Malformed> {
        match self.event()? {
            Event::String(text) => Ok(text),
            _ => Err(Malformed),
        }
    }

    fn utf8(&mut self) -> Result<Str<'a>, Malformed> {
        let length = self.count()?;
        std::str::from_utf8(self.take(length)?).map(Str::Utf8).map_err(|_| Malformed)
    }

    fn utf16(&mut self) -> Result<Str<'a>, Malformed> {
        let bytes = self.count()?.checked_mul(2).ok_or(Malformed)?;
        self.take(bytes).map(Str::Utf16)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.rest.split_first().ok_or(Malformed)?;
        self.rest = rest;
        Ok(first)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    fn double(&mut self) -> Result<f64, Malformed> {
        self.array().map(f64::from_le_bytes)
    }

    fn small(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed)
    }

    fn count(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.varint()?).map_err(|_| Malformed)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        /// The shift of the tenth byte, which has room for one bit.
        const LAST_SHIFT: u32 = 63;
        let mut value = 0u64;
        for shift in (0..=LAST_SHIFT).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                if shift == LAST_SHIFT && byte > 1 {
                    return Err(Malformed);
                }
                self.padded |= byte == 0 && shift > 0;
                return Ok(value);
            }
        }
        Err(Malformed)
    }
}
