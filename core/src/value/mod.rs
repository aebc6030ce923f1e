//! Values that cross the sandbox's boundary.
//!
//! In: any value that one side hands over. Out: a [`Value`], an owned, flat, engine-free message that either side can
//! read. This is the only form in which data enters or leaves an isolate, so it keeps the contract's part on
//! marshaling: which values can cross, and that identity within one message is kept.
//!
//! # The format
//!
//! A message is a run of tagged nodes in pre-order plus *blobs*, the bytes of its buffers, kept
//! beside the nodes so that they can be moved instead of copied. Numbers are little-endian;
//! `varint` is LEB128 without a sign; `str` is a nested [`tag::STRING`] or [`tag::STRING16`] node.
//!
//! | tag | after it |
//! |---|---|
//! | `UNDEFINED` `NULL` `TRUE` `FALSE` | |
//! | `INT` | zigzag varint of an `i32`; never used for `-0` |
//! | `DOUBLE` | `f64`, 8 bytes |
//! | `BIGINT` | sign byte (1 is negative), varint *n*, *n* bytes of magnitude, no leading zero byte |
//! | `STRING` | varint *n*, *n* bytes of well-formed UTF-8 |
//! | `STRING16` | varint *n*, *n* UTF-16 code units; only for strings with a lone surrogate |
//! | `HOLE` | only as an element of `ARRAY` |
//! | `REF` | varint: index of an earlier object of this message |
//! | `OBJECT` | entries, then the end mark: each a *key* and a node |
//! | `ARRAY` | varint length, then that many nodes |
//! | `SPARSE_ARRAY` | varint length; entries of varint (index + 1) and a node; varint 0 |
//! | `MAP` | varint *n*, then 2*n* nodes |
//! | `SET` | varint *n*, then *n* nodes |
//! | `DATE` | `f64`, epoch milliseconds, NaN when invalid |
//! | `REGEXP` | `str` source, `str` flags |
//! | `ERROR` | class byte, `str` name, `str` message, `str` or `UNDEFINED` stack, `str`/`INT`/`DOUBLE`/`UNDEFINED` code |
//! | `BUFFER` | `u32` blob |
//! | `VIEW` | kind byte, `u32` blob, `u64` byte offset, `u64` length in elements |
//! | `HOST_FUNCTION` | `u32` number, on its way in with `ASYNC_FUNCTION` in it if asynchronous; `str` name |
//! | `SANDBOX_FUNCTION` | `u32` number, `str` name |
//! | `HOST_PROMISE` | `u32` number |
//! | `SANDBOX_PROMISE` | `u32` number |
//!
//! Every node from `OBJECT` on takes the next object index, counted from 0 in order of tags; `REF` names one. A *key*
//! is a varint: 0 ends the object, 1 is a new key (varint *n*, *n* bytes of UTF-8), 2 is a new key with a lone
//! surrogate (varint *n*, *n* code units), *k* ≥ 3 is the key *k* − 3 of those that were new in this message, in order.
//! All nodes that name the same blob share one `ArrayBuffer`. Functions and promises cross as numbers that the side
//! which owns them gave out: no closure and no engine object is ever part of a message. A promise of the sandbox has
//! its number until its host is notified of the outcome, and no number is given out twice. So a host names one only in
//! the answer to a call that the sandbox waits for: otherwise it sends back a promise of its own.

mod check;
mod copy;
mod in_flight;
mod kinds;
mod objects;
pub(crate) mod path;
mod reader;
pub(crate) mod serde;
mod weight;
mod writer;

pub use self::kinds::{Kinds, LARGE_COLLECTION};
pub use self::reader::{Event, Malformed, Reader, Str, Unchecked};
pub use self::writer::Writer;

pub(crate) use self::check::{Purpose, check};
pub(crate) use self::copy::{copy_message, keep_number, walk};
pub use self::in_flight::Charge;
pub(crate) use self::in_flight::InFlight;
pub(crate) use self::serde::cursor::Links;
pub(crate) use self::serde::de::{Arguments, from_value};
pub(crate) use self::serde::fault::Fault;
pub(crate) use self::serde::ser::{LOCAL, Message, Thrown, to_message, to_outcome};
pub(crate) use self::weight::{EXPORTED_BYTES, HOST_PROMISE_BYTES};

use std::sync::Arc;

use self::in_flight::Toll;
use crate::error::{Error, ErrorKind};

/// The most entries of a Map, and members of a Set, that cross. A host's engine moves all of them when it makes room
/// for one more, and its event loop stands still meanwhile.
pub(crate) const MOST_ENTRIES: usize = 1 << 20;

/// The most properties of an object, and elements of an array with holes, that cross, for the same reason.
pub(crate) const MOST_PROPERTIES: usize = 1 << 19;

/// The most elements of any other array that cross, for the same reason.
pub(crate) const MOST_ELEMENTS: usize = 1 << 23;

/// The most UTF-16 units of a property key that crosses. V8 hashes longer texts by their length alone, and has to
/// compare each key with all others of that length.
pub const MOST_KEY_UNITS: usize = 16_383;

/// Bytes that a block of memory takes beyond its size.
const BLOCK_OVERHEAD: usize = 16;

/// Bytes that a blob of a message takes beyond its own.
const BLOB_OVERHEAD: usize = size_of::<Vec<u8>>() + BLOCK_OVERHEAD;

/// The kinds of nodes: the first byte of each node of a message.
pub mod tag {
    #![expect(missing_docs, reason = "the table in the module's documentation describes them")]
    pub const UNDEFINED: u8 = 0x00;
    pub const NULL: u8 = 0x01;
    pub const TRUE: u8 = 0x02;
    pub const FALSE: u8 = 0x03;
    pub const INT: u8 = 0x04;
    pub const DOUBLE: u8 = 0x05;
    pub const BIGINT: u8 = 0x06;
    pub const STRING: u8 = 0x07;
    pub const STRING16: u8 = 0x08;
    pub const HOLE: u8 = 0x0F;
    pub const REF: u8 = 0x10;
    pub const OBJECT: u8 = 0x11;
    pub const ARRAY: u8 = 0x12;
    pub const SPARSE_ARRAY: u8 = 0x13;
    pub const MAP: u8 = 0x14;
    pub const SET: u8 = 0x15;
    pub const DATE: u8 = 0x16;
    pub const REGEXP: u8 = 0x17;
    pub const ERROR: u8 = 0x18;
    pub const BUFFER: u8 = 0x19;
    pub const VIEW: u8 = 0x1A;
    pub const HOST_FUNCTION: u8 = 0x1B;
    pub const SANDBOX_FUNCTION: u8 = 0x1C;
    pub const HOST_PROMISE: u8 = 0x1D;
    pub const SANDBOX_PROMISE: u8 = 0x1E;
}

/// How a key of an object is written: the varint in front of it. From `KNOWN` on it is the number of an earlier key.
pub mod key {
    #![expect(missing_docs, reason = "the module's documentation describes them")]
    pub const END: u64 = 0;
    pub const NEW: u64 = 1;
    pub const NEW16: u64 = 2;
    pub const KNOWN: u64 = 3;
}

/// The class of an error, so that `instanceof` holds on the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "named like the classes")]
pub enum ErrorClass {
    Error = 0,
    RangeError = 1,
    ReferenceError = 2,
    SyntaxError = 3,
    TypeError = 4,
    URIError = 5,
    EvalError = 6,
}

/// The kind of a view over a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "named like the classes")]
pub enum ViewKind {
    DataView = 0,
    Int8Array = 1,
    Uint8Array = 2,
    Uint8ClampedArray = 3,
    Int16Array = 4,
    Uint16Array = 5,
    Int32Array = 6,
    Uint32Array = 7,
    BigInt64Array = 8,
    BigUint64Array = 9,
    Float16Array = 10,
    Float32Array = 11,
    Float64Array = 12,
}

impl ErrorClass {
    /// The class with that number; the plain `Error` for an unknown number.
    #[must_use]
    pub fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::RangeError,
            2 => Self::ReferenceError,
            3 => Self::SyntaxError,
            4 => Self::TypeError,
            5 => Self::URIError,
            6 => Self::EvalError,
            _ => Self::Error,
        }
    }

    /// The class's own name, the default of `error.name`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::RangeError => "RangeError",
            Self::ReferenceError => "ReferenceError",
            Self::SyntaxError => "SyntaxError",
            Self::TypeError => "TypeError",
            Self::URIError => "URIError",
            Self::EvalError => "EvalError",
        }
    }
}

impl ViewKind {
    /// The kind with that number.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::DataView,
            1 => Self::Int8Array,
            2 => Self::Uint8Array,
            3 => Self::Uint8ClampedArray,
            4 => Self::Int16Array,
            5 => Self::Uint16Array,
            6 => Self::Int32Array,
            7 => Self::Uint32Array,
            8 => Self::BigInt64Array,
            9 => Self::BigUint64Array,
            10 => Self::Float16Array,
            11 => Self::Float32Array,
            12 => Self::Float64Array,
            _ => return None,
        })
    }

    /// Bytes of one element.
    #[must_use]
    pub fn element_bytes(self) -> usize {
        match self {
            Self::DataView | Self::Int8Array | Self::Uint8Array | Self::Uint8ClampedArray => 1,
            Self::Int16Array | Self::Uint16Array | Self::Float16Array => 2,
            Self::Int32Array | Self::Uint32Array | Self::Float32Array => 4,
            Self::BigInt64Array | Self::BigUint64Array | Self::Float64Array => 8,
        }
    }
}

/// One message: an owned value that can cross the boundary, in the format described above.
///
/// Cloning copies all its bytes. Built with a [`Writer`], read with a [`Reader`].
#[derive(Debug, Default)]
pub struct Value {
    nodes: Vec<u8>,
    blobs: Vec<Vec<u8>>,
    /// Bytes that it takes beyond those of the message once it is read.
    weight: usize,
    /// The kinds in it that some host may be unable to hold.
    kinds: Kinds,
    /// Held while the message is in flight.
    toll: Option<Toll>,
}

impl Clone for Value {
    fn clone(&self) -> Self {
        Self {
            nodes: self.nodes.clone(),
            blobs: self.blobs.clone(),
            weight: self.weight,
            kinds: self.kinds,
            toll: None,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        (&self.nodes, &self.blobs) == (&other.nodes, &other.blobs)
    }
}

impl Eq for Value {}

impl Value {
    /// The value `undefined`.
    #[must_use]
    pub fn undefined() -> Self {
        Self { kinds: Kinds::NONE, ..Self::from_parts(vec![tag::UNDEFINED], Vec::new()) }
    }

    /// A message from its nodes and blobs, as another writer of the format made them.
    ///
    /// Nothing is checked here: each reader of the message checks it, and reports a malformed one as [`Malformed`].
    #[must_use]
    pub fn from_parts(nodes: Vec<u8>, blobs: Vec<Vec<u8>>) -> Self {
        Self { nodes, blobs, weight: 0, kinds: Kinds::ALL, toll: None }
    }

    /// A message from parts of which nothing is known, such as those that a hostile process sent. It has neither functions
    /// nor promises, and with the weight for its reader it holds at most `most_bytes`, as [`Value::held_bytes`] counts. Costs
    /// one pass over the nodes.
    ///
    /// # Errors
    /// The parts are no message that a [`Writer`] can have written, or one that is too large.
    pub fn from_untrusted(
        nodes: Vec<u8>,
        blobs: Vec<Vec<u8>>,
        most_bytes: usize,
    ) -> Result<Self, Malformed> {
        check(nodes, blobs, Purpose::Data, most_bytes)
    }

    /// The same message, with that weight for its reader.
    fn weighing(self, weight: usize) -> Self {
        Self { weight, ..self }
    }

    #[cfg(test)]
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// The same message, for a reader whose results are all counted elsewhere.
    pub(crate) fn weightless(self) -> Self {
        self.weighing(0)
    }

    /// The same message, counted as in flight until it is read or dropped.
    pub(crate) fn sent(self, in_flight: &Arc<InFlight>) -> Self {
        let toll = Toll::new(in_flight, self.held_bytes());
        Self { toll: Some(toll), ..self }
    }

    /// Ends the count as in flight: the message has arrived.
    pub(crate) fn arrive(&mut self) {
        self.toll = None;
    }

    /// The kinds in it that some host may be unable to hold; all kinds where nobody has checked. A host validates only
    /// messages with kinds in its [`validated_kinds`].
    ///
    /// [`validated_kinds`]: crate::Host::validated_kinds
    #[must_use]
    pub fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// Whether there may be a function or a promise of the sandbox in it. Most messages have none, and a scan of the
    /// bytes shows that.
    pub(crate) fn may_lend(&self) -> bool {
        let is_lent = |byte: &u8| matches!(*byte, tag::SANDBOX_FUNCTION | tag::SANDBOX_PROMISE);
        self.nodes.iter().any(is_lent)
    }

    /// The number of the host's promise if this message is one.
    pub(crate) fn host_promise(&self) -> Option<u32> {
        match self.reader().event() {
            Ok(Event::HostPromise(number)) => Some(number),
            _ => None,
        }
    }

    /// The nodes and the blobs, without copying.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, Vec<Vec<u8>>) {
        (self.nodes, self.blobs)
    }

    /// The nodes, as the format describes them.
    #[must_use]
    pub fn nodes(&self) -> &[u8] {
        &self.nodes
    }

    /// The bytes of the message's buffers.
    #[must_use]
    pub fn blobs(&self) -> &[Vec<u8>] {
        &self.blobs
    }

    /// Bytes that this message holds in memory, plus those that it will take once it is read: they count against a
    /// run's limit. In a list of many small ones each also takes a place in that list and a block of the allocator.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        const PLACE: usize = 2 * size_of::<Value>();
        let blobs: usize = self.blobs.iter().map(|blob| blob.capacity() + BLOB_OVERHEAD).sum();
        PLACE + BLOCK_OVERHEAD + self.nodes.capacity() + blobs + self.weight
    }

    /// A message from anything that serde can write.
    ///
    /// Integers become numbers where a number holds them exactly, bigints elsewhere; strings and characters strings;
    /// bytes a `Uint8Array`; sequences and tuples arrays; structs, and maps whose keys are strings, plain objects in
    /// their order; other maps a `Map`. `None` is `null`, `()` and unit structs are `undefined`. A variant without data
    /// is its name; one with data an object whose only key is the name. A [`Value`] in it is kept as it is, with its
    /// sharing.
    ///
    /// # Errors
    /// A refusal by the type itself, nesting deeper than 128, or a function: functions belong into an `Input`. The
    /// message names the path.
    ///
    /// ```
    /// let value = isolane::Value::serialize(&("a", 1, [true, false]))?;
    /// let back: (String, u8, Vec<bool>) = value.deserialize()?;
    /// assert_eq!(back, ("a".to_owned(), 1, vec![true, false]));
    /// # Ok::<(), isolane::Error>(())
    /// ```
    pub fn serialize<T: ::serde::Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        let message = to_message(value).map_err(|fault| fault.into_error("value"))?;
        if message.links.is_empty() {
            Ok(message.value)
        } else {
            let text = "value: a function or a promise needs an `Input` to cross";
            Err(Error::new(ErrorKind::Serialization, text))
        }
    }

    /// Reads the message as any type that serde can read.
    ///
    /// The reverse of [`Value::serialize`], and besides: `undefined` and holes read as `null` does, a struct takes its
    /// default for a field that is `undefined`; numbers that are whole and safe read as integers too, as do bigints
    /// that fit; a Set and a typed array read as sequences, views and buffers also as bytes; a Date as its epoch
    /// milliseconds; a RegExp as its text; an Error as a map of `name`, `message` and, if it has one, `code`. Lone
    /// surrogates are replaced by U+FFFD. A value that is shared in the message is read anew at each place.
    ///
    /// # Errors
    /// A value that does not fit the type, with its path; a cycle; nesting deeper than 128; a function or a promise; a
    /// message whose sharing or holes blow up to far more than it holds.
    pub fn deserialize<T: ::serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        from_value(self, None).map_err(|fault| fault.into_error("value"))
    }

    /// Reads the message from its start.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.nodes)
    }
}
