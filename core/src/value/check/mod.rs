//! A check whether bytes are a message that an isolate can have made.
//!
//! In: anything that a worker sent: its engine may have been taken over. Out: a [`Value`] that every reader accepts,
//! and whose weight is the one that its [`super::Writer`] counted; or [`Malformed`]. The check accepts only messages
//! that the isolate writes on its way out, so that no reader meets a message which it would not meet without a process
//! in between. It leaves out two properties on which no reader relies: that a key, or a member of a Map or a Set,
//! occurs only once, and that numbers of functions and promises were given out.
//!
//! The walk is one pass with a stack of its own, and holds nothing in proportion to a length that is only claimed. The
//! most that a message may weigh is given: it bounds the walk's stack too. On records it takes about a fifth of the
//! time that serde takes to read them (170 against 30 MB/s on a busy machine), on long texts next to nothing.

use super::{
    EXPORTED_BYTES, Event, Kinds, LARGE_COLLECTION, MOST_ELEMENTS, MOST_ENTRIES, MOST_KEY_UNITS,
    MOST_PROPERTIES, Malformed, Reader, Str, Value, ViewKind, objects::Objects, weight,
};

/// The purpose of a message, which decides about its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The arguments of a host call, an array: as [`Purpose::Live`].
    Arguments,
    /// The outcome of a function or a promise of the sandbox: it may contain functions and promises.
    Live,
    /// The result of the run, or a report: it may contain the host's own functions, but no other function and no
    /// promise.
    Final,
    /// The arguments of a log, an array: functions and promises are text.
    Log,
    /// Any value without functions and promises, from a process that runs no isolate.
    Data,
}

/// The most bytes of a bigint that the engine can make.
const BIGINT_BYTES: usize = 128 << 10;

/// The most milliseconds on either side of the epoch.
const DATE_MS: f64 = 8.64e15;

/// The flags of a RegExp, in the order in which they are written.
const FLAGS: &[u8] = b"dgimsuvy";

/// The last class of errors.
const LAST_CLASS: u8 = super::ErrorClass::EvalError as u8;

/// The last number of a host function: the bit above says how it crossed to the sandbox.
const LAST_HOST_FUNCTION: u32 = u32::MAX >> 1;

/// The message with these parts, if an isolate can have sent it for that purpose. It may hold at most `most_bytes`, the
/// most that its run may hold.
pub(crate) fn check(
    nodes: Vec<u8>,
    blobs: Vec<Vec<u8>>,
    purpose: Purpose,
    most_bytes: usize,
) -> Result<Value, Malformed> {
    let message = Value::from_parts(nodes, blobs);
    let room = most_bytes.checked_sub(message.held_bytes()).ok_or(Malformed)?;
    let mut walk = Walk {
        nodes: message.nodes(),
        blobs: message.blobs(),
        purpose,
        reader: message.reader(),
        frames: Vec::new(),
        objects: 0,
        functions: Vec::new(),
        keys: 0,
        at_then: false,
        weight: 0,
        properties: Objects::default(),
        lent: 0,
        room,
        named: vec![Named::Not; message.blobs().len()],
        views: 0,
        kinds: Kinds::NONE,
        long_text: false,
    };
    walk.whole()?;
    let Walk { weight, kinds, long_text, .. } = walk;
    let kinds = kinds.beside_long_text(long_text);
    Ok(Value { kinds, ..message.weighing(weight) })
}

/// A container whose end has not been read.
enum Frame {
    /// The properties so far.
    Object(usize),
    /// The elements left, which may be holes.
    Array(u64),
    /// The nodes left of a Map or a Set.
    Collection {
        left: u64,
        numbers: Numbers,
    },
    Sparse {
        length: u32,
        next: u32,
        entries: u32,
    },
}

/// The nodes of a collection that matter if they are numbers: see [`Kinds::LARGE_COLLECTIONS`].
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    No,
    Members,
    Keys,
}

/// Whether and by which kind of node a blob was named.
#[derive(Clone, Copy, PartialEq)]
enum Named {
    Not,
    ByViews,
    ByBuffer,
}

struct Walk<'a> {
    nodes: &'a [u8],
    blobs: &'a [Vec<u8>],
    purpose: Purpose,
    reader: Reader<'a>,
    frames: Vec<Frame>,
    objects: u32,
    /// The indices of objects that are functions, rising.
    functions: Vec<u32>,
    keys: u32,
    /// Whether the next node is the value of a key `then`. It must be no function, or a reader would take the object
    /// for a promise.
    at_then: bool,
    weight: usize,
    /// The weights of properties.
    properties: Objects,
    /// The charge for its functions and promises.
    lent: usize,
    /// The most that it may weigh.
    room: usize,
    named: Vec<Named>,
    views: usize,
    kinds: Kinds,
    /// Whether there is a text that a host may hash by its length.
    long_text: bool,
}

impl<'a> Walk<'a> {
    fn whole(&mut self) -> Result<(), Malformed> {
        let root = self.node(false)?;
        if matches!(self.purpose, Purpose::Arguments | Purpose::Log) {
            ensure(matches!(root, Event::Array(_)))?;
        }
        while let Some(frame) = self.frames.last_mut() {
            let holes = match frame {
                Frame::Array(0) | Frame::Collection { left: 0, .. } => {
                    self.frames.pop();
                    continue;
                }
                Frame::Array(left) => {
                    *left -= 1;
                    true
                }
                Frame::Collection { left, numbers } => {
                    let hashed = *numbers == Numbers::Members
                        || *numbers == Numbers::Keys && left.is_multiple_of(2);
                    *left -= 1;
                    let event = self.node(false)?;
                    if hashed
                        && matches!(event, Event::Int(_) | Event::Double(_) | Event::BigInt { .. })
                    {
                        self.kinds |= Kinds::LARGE_COLLECTIONS;
                    }
                    continue;
                }
                Frame::Object(count) => {
                    *count += 1;
                    ensure(*count <= MOST_PROPERTIES + 1)?;
                    if !self.key()? {
                        self.frames.pop();
                        continue;
                    }
                    false
                }
                Frame::Sparse { length, next, entries } => {
                    let Some(index) = self.reader.sparse_index()? else {
                        // With all its elements it would be an ordinary array.
                        ensure(entries < length)?;
                        self.frames.pop();
                        continue;
                    };
                    ensure(*next <= index && index < *length)?;
                    *next = index + 1;
                    *entries += 1;
                    ensure(*entries as usize <= MOST_PROPERTIES)?;
                    self.weigh(weight::SPARSE_ELEMENT)?;
                    false
                }
            };
            self.node(holes)?;
        }
        // A view that moved onto another blob leaves an empty one behind.
        let named = self.named.iter().zip(self.blobs);
        let unnamed = named.filter(|(named, _)| **named == Named::Not);
        let (count, bytes) =
            unnamed.fold((0, 0), |(count, bytes), (_, blob)| (count + 1, bytes + blob.len()));
        ensure(bytes == 0 && count <= self.views)?;
        ensure(self.reader.is_empty() && self.reader.is_shortest())
    }

    /// The next key of the innermost object; false at its end.
    fn key(&mut self) -> Result<bool, Malformed> {
        let Some(key) = self.reader.key()? else {
            self.properties.close();
            return Ok(false);
        };
        if key.number < self.keys {
            let weight = self.properties.known_key(key.number);
            self.weigh(weight)?;
        } else {
            self.keys += 1;
            ensure(is_well_put(key.text) && units(key.text) <= MOST_KEY_UNITS)?;
            let weight = self.properties.new_key(key.number, key.text);
            self.weigh(weight)?;
        }
        self.at_then = key.text == Str::Utf8("then");
        Ok(true)
    }

    /// One node, without its nested nodes.
    fn node(&mut self, holes: bool) -> Result<Event<'a>, Malformed> {
        let start = self.nodes.len() - self.reader.left();
        let at_then = std::mem::take(&mut self.at_then);
        let event = self.leaf()?;
        if event.is_object() {
            self.objects = self.objects.checked_add(1).ok_or(Malformed)?;
        }
        match event {
            Event::Hole => {
                self.kinds |= Kinds::HOLES;
                ensure(holes)?;
            }
            Event::Ref(object) => {
                ensure(object < self.objects)?;
                ensure(!at_then || self.functions.binary_search(&object).is_err())?;
            }
            Event::BigInt { .. } => ensure(self.byte_after(start) <= 1)?,
            Event::Object => {
                self.properties.open();
                self.frames.push(Frame::Object(0));
            }
            Event::Array(length) => {
                ensure(length as usize <= MOST_ELEMENTS)?;
                self.ensure_room(length.into())?;
                self.frames.push(Frame::Array(length.into()));
            }
            Event::SparseArray(length) => {
                self.kinds |= Kinds::HOLES;
                self.frames.push(Frame::Sparse { length, next: 0, entries: 0 });
            }
            Event::Map(entries) => {
                self.collection(entries, 2 * u64::from(entries), Numbers::Keys)?;
            }
            Event::Set(members) => {
                self.collection(members, members.into(), Numbers::Members)?;
            }
            Event::Date(time) => {
                self.kinds |= Kinds::DATES;
                ensure(time.is_nan() || is_time(time))?;
            }
            Event::RegExp => {
                self.kinds |= Kinds::REGEXPS;
                self.text()?;
                ensure(matches!(self.text()?, Str::Utf8(flags) if are_flags(flags.as_bytes())))?;
            }
            Event::Error(_) => {
                ensure(self.byte_after(start) <= LAST_CLASS)?;
                self.error()?;
            }
            Event::Buffer(blob) => {
                let named = self.named.get_mut(blob as usize).ok_or(Malformed)?;
                // A buffer that occurs twice is a reference the second time.
                ensure(*named != Named::ByBuffer)?;
                if *named != Named::Not {
                    self.kinds |= Kinds::SHARED_BYTES;
                }
                *named = Named::ByBuffer;
            }
            Event::View { kind, blob, byte_offset, length } => {
                self.view(kind, blob, byte_offset, length)?;
            }
            Event::HostFunction(number) => {
                ensure(!matches!(self.purpose, Purpose::Log | Purpose::Data))?;
                ensure(number <= LAST_HOST_FUNCTION && !at_then)?;
                self.functions.push(self.objects - 1);
                ensure(self.text()? == Str::Utf8(""))?;
            }
            Event::SandboxFunction(_) => {
                self.lend()?;
                ensure(!at_then)?;
                self.functions.push(self.objects - 1);
                ensure(matches!(self.text()?, Str::Utf8(_)))?;
            }
            Event::SandboxPromise(_) => self.lend()?,
            // The host only ever sees promises of the sandbox.
            Event::HostPromise(_) => return Err(Malformed),
            Event::Undefined
            | Event::Null
            | Event::Bool(_)
            | Event::Int(_)
            | Event::Double(_)
            | Event::String(_) => {}
        }
        Ok(event)
    }

    /// One node by itself, weighed.
    fn leaf(&mut self) -> Result<Event<'a>, Malformed> {
        let event = self.reader.event()?;
        match event {
            Event::String(text) => {
                self.long_text |= match text {
                    Str::Utf8(text) => text.len() > MOST_KEY_UNITS,
                    Str::Utf16(bytes) => bytes.len() > 2 * MOST_KEY_UNITS,
                };
                ensure(is_well_put(text))?;
            }
            Event::Double(number) => ensure(!is_int(number))?,
            Event::BigInt { negative, magnitude } => {
                let zero = magnitude.is_empty();
                ensure(magnitude.len() <= BIGINT_BYTES && !(zero && negative))?;
                ensure(magnitude.last() != Some(&0))?;
            }
            _ => {}
        }
        self.weigh(weight::of(&event))?;
        Ok(event)
    }

    fn text(&mut self) -> Result<Str<'a>, Malformed> {
        match self.leaf()? {
            Event::String(text) => Ok(text),
            _ => Err(Malformed),
        }
    }

    /// The parts of an Error.
    fn error(&mut self) -> Result<(), Malformed> {
        self.text()?;
        self.text()?;
        let stack = self.leaf()?;
        ensure(matches!(stack, Event::Undefined | Event::String(Str::Utf8(_))))?;
        let code = self.leaf()?;
        ensure(matches!(
            code,
            Event::Undefined | Event::Int(_) | Event::Double(_) | Event::String(_)
        ))
    }

    fn view(
        &mut self,
        kind: ViewKind,
        blob: u32,
        byte_offset: u64,
        length: u64,
    ) -> Result<(), Malformed> {
        self.views += 1;
        let named = self.named.get_mut(blob as usize).ok_or(Malformed)?;
        if *named == Named::Not {
            *named = Named::ByViews;
        } else {
            self.kinds |= Kinds::SHARED_BYTES;
        }
        if kind == ViewKind::Float16Array {
            self.kinds |= Kinds::HALF_FLOATS;
        }
        let element = kind.element_bytes() as u64;
        let bytes = self.blobs.get(blob as usize).map_or(0, Vec::len) as u64;
        let end = length.checked_mul(element).and_then(|length| length.checked_add(byte_offset));
        ensure(byte_offset.is_multiple_of(element) && end.is_some_and(|end| end <= bytes))
    }

    /// Begins a Map or a Set with that many entries and nodes; each node takes at least a byte.
    fn collection(&mut self, entries: u32, left: u64, numbers: Numbers) -> Result<(), Malformed> {
        self.kinds |= Kinds::COLLECTIONS;
        ensure(entries as usize <= MOST_ENTRIES)?;
        self.ensure_room(left)?;
        let numbers = if entries > LARGE_COLLECTION { numbers } else { Numbers::No };
        self.frames.push(Frame::Collection { left, numbers });
        Ok(())
    }

    /// Checks that the rest of the message is long enough for that many nodes.
    fn ensure_room(&self, nodes: u64) -> Result<(), Malformed> {
        ensure(nodes <= self.reader.left() as u64)
    }

    fn weigh(&mut self, weight: usize) -> Result<(), Malformed> {
        self.weight = self.weight.saturating_add(weight);
        ensure(self.weight.saturating_add(self.lent) <= self.room)
    }

    /// A function or a promise of the sandbox, which is charged for as long as its host has it.
    fn lend(&mut self) -> Result<(), Malformed> {
        ensure(matches!(self.purpose, Purpose::Arguments | Purpose::Live))?;
        self.lent = self.lent.saturating_add(EXPORTED_BYTES);
        ensure(self.weight.saturating_add(self.lent) <= self.room)
    }

    /// The byte after a node's tag.
    fn byte_after(&self, tag: usize) -> u8 {
        self.nodes.get(tag + 1).copied().unwrap_or(u8::MAX)
    }
}

fn ensure(holds: bool) -> Result<(), Malformed> {
    if holds { Ok(()) } else { Err(Malformed) }
}

/// Whether a text has the required form: UTF-16 only if it has a lone surrogate.
fn is_well_put(text: Str<'_>) -> bool {
    match text {
        Str::Utf8(_) => true,
        Str::Utf16(bytes) => {
            let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            char::decode_utf16(units).any(|unit| unit.is_err())
        }
    }
}

/// The UTF-16 units of a text.
fn units(text: Str<'_>) -> usize {
    match text {
        Str::Utf8(text) if text.len() <= MOST_KEY_UNITS => text.len(),
        Str::Utf8(text) => text.chars().map(char::len_utf16).sum(),
        Str::Utf16(bytes) => bytes.len() / 2,
    }
}

/// Whether a number would have been written as an integer.
fn is_int(number: f64) -> bool {
    #[expect(clippy::cast_possible_truncation, reason = "compared with the original")]
    let int = number as i32;
    f64::from(int).to_bits() == number.to_bits()
}

/// Whether a Date can have that time.
fn is_time(time: f64) -> bool {
    let is_negative_zero = time == 0.0 && time.is_sign_negative();
    time.fract() == 0.0 && time.abs() <= DATE_MS && !is_negative_zero
}

fn are_flags(flags: &[u8]) -> bool {
    flags.iter().all(|flag| FLAGS.contains(flag))
        && flags.is_sorted_by(|flag, next| flag < next)
        && !(flags.contains(&b'u') && flags.contains(&b'v'))
}

#[cfg(test)]
mod tests;
