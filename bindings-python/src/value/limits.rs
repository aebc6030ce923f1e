//! Refusals of messages that Python cannot represent.
//!
//! In: a message on its way out, on the thread that computes the run, without the interpreter's lock. Out: the first
//! value in it that Python cannot represent; the crossing then fails inside the sandbox. This module has the
//! contract's list of refused values. It also bounds the cost of small messages: lists of holes, copies of one buffer,
//! and keys that collide in a dict (`probes.rs`). Its own tables hash with a secret.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use isolane::{
    Collection, MessageVisitor, Refusal, Refused, Value,
    value::{Event, Str, ViewKind},
};

use pyo3::{prelude::*, types::PyBytes};

use super::{classes::MEMORYVIEW, decode::format, probes::Probes};

/// Bytes of a message that pay for one hole. An element of a list takes as many.
const BYTES_PER_HOLE: usize = 8;

/// The most numbers in one dict or set that share a hash.
const MOST_COLLISIONS: u32 = 64;

/// The most bytes of a text or a buffer that is a key. Python hashes it in one step, with up to 4 bytes for each of
/// these.
const MOST_KEY_BYTES: usize = 64 << 20;

/// The first and the last millisecond of `datetime`.
const FIRST_MS: f64 = -62_135_596_800_000.0;
const LAST_MS: f64 = 253_402_300_799_999.0;

/// Whether a memoryview of this interpreter supports the format of a `Float16Array`.
static HALF_FLOATS: AtomicBool = AtomicBool::new(false);

/// Finds out whether this interpreter supports `Float16Array`. Before that call it counts as unsupported.
pub(crate) fn detect_half_floats(py: Python<'_>) {
    let view = MEMORYVIEW.get(py).and_then(|class| class.call1((PyBytes::new(py, &[0, 0]),)));
    let format = format(ViewKind::Float16Array);
    let read = view.and_then(|view| view.call_method1("cast", (format,))?.get_item(0));
    HALF_FLOATS.store(read.is_ok(), Ordering::Relaxed);
}

/// The growth of all messages of one run that their size does not pay for. It is counted for the whole run, because
/// reports and logs are held until its end.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// Elements that holes become.
    holes: AtomicUsize,
    /// Bytes of parts of buffers. Each part becomes a `bytes` of its own.
    copies: AtomicUsize,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { holes: AtomicUsize::new(1 << 16), copies: AtomicUsize::new(1 << 19) }
    }
}

/// The first value of a message that Python cannot represent. Subtracts the message's growth from `left`.
pub(crate) fn refusal(message: &Value, left: &Allowance) -> Option<Refusal> {
    let paid = message.nodes().len() / BYTES_PER_HOLE;
    let paid_bytes: usize = message.blobs().iter().map(Vec::len).sum();
    // Only the thread that computes the run changes the allowance.
    let unpaid = left.holes.load(Ordering::Relaxed);
    let unpaid_bytes = left.copies.load(Ordering::Relaxed);
    let mut limits = Limits {
        blobs: message.blobs(),
        open: Vec::new(),
        objects: 0,
        hashable: Vec::new(),
        holes: paid + unpaid,
        copies: paid_bytes + unpaid_bytes,
    };
    let refusal = isolane::refusal(message, &mut limits);
    if refusal.is_none() {
        left.holes.store(unpaid.min(limits.holes), Ordering::Relaxed);
        left.copies.store(unpaid_bytes.min(limits.copies), Ordering::Relaxed);
    }
    refusal
}

/// A key of a dict, or a member of a set, as Python compares them.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    None,
    Text(&'a str),
    /// Text with a lone surrogate.
    Text16(&'a [u8]),
    /// A whole number: whether it is negative, and its magnitude, least byte first.
    Int(bool, Cow<'a, [u8]>),
    /// Any other number, by its bits.
    Float(u64),
    Bytes(&'a [u8]),
    /// A date by its epoch milliseconds.
    Date(u64),
    /// An object that Python compares by identity.
    Object(u32),
}

impl Key<'_> {
    /// Whether Python takes too long for its hash.
    fn is_long(&self) -> bool {
        let bytes = match self {
            Self::Text(text) => text.len(),
            Self::Text16(bytes) | Self::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        bytes > MOST_KEY_BYTES
    }
}

/// The key that an object of the message makes.
#[derive(Clone, Copy)]
enum Hashable {
    Identity,
    Date(u64),
    Bytes { blob: u32, start: u64, length: u64 },
}

/// The keys of one dict, or the members of one set, so far.
struct Keys<'a> {
    collection: Collection,
    known: HashSet<Key<'a>>,
    hashes: HashMap<u64, u32>,
    probes: Probes,
}

struct Limits<'a> {
    blobs: &'a [Vec<u8>],
    /// The collections that are open, innermost last.
    open: Vec<Keys<'a>>,
    /// The number of objects so far.
    objects: u32,
    /// Those that can be keys, by their index. They are few, because most objects are containers.
    hashable: Vec<(u32, Hashable)>,
    /// The number of holes that are still allowed.
    holes: usize,
    /// The bytes of parts of buffers that are still allowed.
    copies: usize,
}

impl<'a> MessageVisitor<'a> for Limits<'a> {
    fn node(&mut self, event: &Event<'a>) -> Result<(), Refused> {
        if event.is_object() {
            self.hashable.extend(hashable(event).map(|hashable| (self.objects, hashable)));
            self.objects += 1;
        }
        match *event {
            Event::RegExp => return Err("a RegExp"),
            Event::Date(time) if time.is_nan() => return Err("an invalid Date"),
            Event::Date(time) if !(FIRST_MS..=LAST_MS).contains(&time) => {
                return Err("a Date outside of the years 1 to 9999");
            }
            Event::View { kind: ViewKind::Float16Array, .. }
                if !HALF_FLOATS.load(Ordering::Relaxed) =>
            {
                return Err("a Float16Array");
            }
            Event::View { kind, blob, length, .. } if format(kind).is_none() => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if self.blobs.get(blob as usize).is_none_or(|blob| blob.len() != length) {
                    let left = self.copies.checked_sub(length);
                    self.copies = left.ok_or("a buffer that so many others share")?;
                }
            }
            Event::SparseArray(length) => {
                let left = self.holes.checked_sub(length as usize);
                self.holes = left.ok_or("an array of so many holes")?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, collection: Collection, _entries: u32) {
        self.open.push(Keys::new(collection));
    }

    /// A key has to be hashable and differ from all others.
    fn key(&mut self, event: &Event<'a>) -> Result<(), Refused> {
        let key = self.hashed(event);
        let Some(keys) = self.open.last_mut() else { return Ok(()) };
        let (unhashable, colliding, long) = match keys.collection {
            Collection::Map => (
                "a Map with an unhashable key",
                "a Map whose keys collide",
                "a Map with a key of more than 64 MiB",
            ),
            Collection::Set => (
                "a Set with an unhashable member",
                "a Set whose members collide",
                "a Set with a member of more than 64 MiB",
            ),
        };
        if key.as_ref().is_some_and(Key::is_long) {
            return Err(long);
        }
        match key.map(|key| keys.take(key)) {
            Some(true) => Ok(()),
            Some(false) => Err(colliding),
            None => Err(unhashable),
        }
    }

    fn end(&mut self) {
        self.open.pop();
    }
}

impl<'a> Limits<'a> {
    /// The key that a value makes; `None` if it is not hashable.
    fn hashed(&self, event: &Event<'a>) -> Option<Key<'a>> {
        let object = |index: u32| match self.hashable_at(index)? {
            Hashable::Identity => Some(Key::Object(index)),
            Hashable::Date(bits) => Some(Key::Date(bits)),
            Hashable::Bytes { blob, start, length } => {
                let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
                let bytes = self.blobs.get(blob as usize)?;
                let end = start.checked_add(length)?.min(bytes.len());
                Some(Key::Bytes(bytes.get(start..end)?))
            }
        };
        match *event {
            Event::Undefined | Event::Null | Event::Hole => Some(Key::None),
            // Python's booleans are the numbers 0 and 1.
            Event::Bool(value) => Some(whole(f64::from(u8::from(value)))),
            Event::Int(value) => Some(whole(f64::from(value))),
            Event::Double(value) if value.fract() == 0.0 => Some(whole(value)),
            Event::Double(value) => Some(Key::Float(value.to_bits())),
            Event::BigInt { negative, magnitude } => Some(Key::Int(negative, magnitude.into())),
            Event::String(Str::Utf8(text)) => Some(Key::Text(text)),
            Event::String(Str::Utf16(units)) => Some(Key::Text16(units)),
            Event::Ref(index) => object(index),
            _ => object(self.objects.checked_sub(1)?),
        }
    }

    fn hashable_at(&self, object: u32) -> Option<Hashable> {
        let place = self.hashable.binary_search_by_key(&object, |(index, _)| *index).ok()?;
        self.hashable.get(place).map(|(_, hashable)| *hashable)
    }
}

impl<'a> Keys<'a> {
    fn new(collection: Collection) -> Self {
        let probes = Probes::new(collection == Collection::Set);
        Self { collection, known: HashSet::new(), hashes: HashMap::new(), probes }
    }

    /// Keeps a key; false if it is not new or if too many keys collide.
    fn take(&mut self, key: Key<'a>) -> bool {
        let hash = match &key {
            Key::Int(negative, magnitude) => Some(signed(*negative, hash_whole(magnitude))),
            Key::Float(bits) => Some(hash_fraction(*bits)),
            _ => None,
        };
        if let Some(hash) = hash {
            let sharing = self.hashes.entry(hash).or_insert(0);
            *sharing += 1;
            if *sharing > MOST_COLLISIONS {
                return false;
            }
        }
        if !self.probes.take(hash) {
            return false;
        }
        self.known.insert(key)
    }
}

fn hashable(event: &Event<'_>) -> Option<Hashable> {
    Some(match *event {
        Event::Date(time) => Hashable::Date(time.to_bits()),
        Event::Buffer(blob) => Hashable::Bytes { blob, start: 0, length: usize::MAX as u64 },
        Event::View { kind, blob, byte_offset, length } if format(kind).is_none() => {
            Hashable::Bytes { blob, start: byte_offset, length }
        }
        Event::Error(_) | Event::SandboxFunction(_) | Event::SandboxPromise(_) => {
            Hashable::Identity
        }
        // Objects of the caller are not hashable here: their hash is code that may raise.
        _ => return None,
    })
}

/// A whole or infinite number as a key.
fn whole(value: f64) -> Key<'static> {
    const FRACTION_BITS: u64 = 52;
    if !value.is_finite() {
        return Key::Float(value.to_bits());
    }
    let magnitude = value.abs();
    let bits = magnitude.to_bits();
    let exponent = bits >> FRACTION_BITS;
    // The only whole number below 1 is 0.
    let shift = exponent.saturating_sub(1023 + FRACTION_BITS);
    let fraction = (bits & ((1 << FRACTION_BITS) - 1)) | (1 << FRACTION_BITS);
    let small = if shift == 0 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^53")]
        {
            magnitude as u64
        }
    } else {
        fraction
    };
    let mut bytes = vec![0; usize::try_from(shift / 8).unwrap_or_default()];
    bytes.extend((u128::from(small) << (shift % 8)).to_le_bytes());
    bytes.truncate(bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1));
    Key::Int(value < 0.0, bytes.into())
}

/// Python hashes a number modulo this prime.
const MODULUS: u128 = (1 << MODULUS_BITS) - 1;
const MODULUS_BITS: i64 = 61;

/// Python's hash of a number, from that of its magnitude.
fn signed(negative: bool, hash: u64) -> u64 {
    const RESERVED: u64 = u64::MAX;
    let hash = if negative { hash.wrapping_neg() } else { hash };
    if hash == RESERVED { RESERVED - 1 } else { hash }
}

/// Python's hash of a whole number without its sign.
fn hash_whole(magnitude: &[u8]) -> u64 {
    // Eight bytes at a time, from the last ones on: 2^64 is 8 modulo the prime.
    let hash = magnitude.chunks(8).rev().fold(0u128, |hash, chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        (hash * 8 + u128::from(u64::from_le_bytes(bytes))) % MODULUS
    });
    u64::try_from(hash).unwrap_or_default()
}

/// Python's hash of any other number. Modulo the prime, 2^61 is 1, so exponents count modulo 61.
fn hash_fraction(bits: u64) -> u64 {
    const FRACTION_BITS: u64 = 52;
    const SIGN: u64 = 1 << 63;
    const LEAST_EXPONENT: i64 = -1074;
    const NOT_FINITE: i64 = 0x7FF;
    const HASH_OF_INFINITY: u64 = 314_159;
    let exponent = i64::try_from((bits >> FRACTION_BITS) & 0x7FF).unwrap_or_default();
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    let (mantissa, power) = match exponent {
        NOT_FINITE => return signed(bits & SIGN != 0, HASH_OF_INFINITY),
        0 => (fraction, LEAST_EXPONENT),
        _ => (fraction | (1 << FRACTION_BITS), LEAST_EXPONENT + exponent - 1),
    };
    let hash = (u128::from(mantissa) << power.rem_euclid(MODULUS_BITS)) % MODULUS;
    signed(bits & SIGN != 0, u64::try_from(hash).unwrap_or_default())
}
