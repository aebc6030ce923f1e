//! Clones of messages in the engine.
//!
//! In: a [`Value`]. Out: the value that it describes, made of fresh objects of the realm, or an exception pending in
//! the sandbox (out of memory, a RegExp that the engine does not support). Keeps the contract's "Values" for values
//! that arrive in the sandbox: plain objects whose every key is an own property, identity within the message, functions
//! and promises by number. Nothing here reads anything that sandbox code could have changed, and the walk keeps a stack
//! of its own.

use crate::{
    isolate::{
        engine::{Atom, Elements, Local, Outcome, Thrown, int, sys, undefined},
        state::State,
    },
    value::{ErrorClass, Event, Malformed, Reader, Str, Value, ViewKind},
};

/// Nodes between two checks whether the run must end.
const NODES_PER_LOOK: u32 = 256;

/// The most elements that are put into an array at once.
const MOST_ELEMENTS: usize = 1024;

/// Clones a message into the sandbox.
pub(in crate::isolate) fn clone_in(state: &State, message: &Value) -> Outcome<Local> {
    let mut walk = Walk {
        state,
        reader: message.reader(),
        blobs: message.blobs(),
        buffers: vec![None; message.blobs().len()],
        objects: Vec::new(),
        keys: Vec::new(),
        frames: Vec::new(),
        elements: Elements::new(state.realm().cx),
        nodes: 0,
    };
    walk.run()
}

/// Clones the elements of a message that is an array into a list: the arguments of a call.
pub(in crate::isolate) fn clone_args_in(state: &State, message: &Value) -> Outcome<Vec<Local>> {
    let array = clone_in(state, message)?;
    let cx = state.realm().cx;
    let length = u32::try_from(cx.length(array.raw())?).map_err(|_| Thrown)?;
    (0..length).map(|index| cx.get_index(array.raw(), index)).collect()
}

/// An object that is being filled.
enum Frame {
    Object { object: Local, key: Option<u32> },
    Array { array: Local, next: u32, length: u32 },
    Sparse { array: Local, index: Option<u32> },
    Map { map: Local, left: u32, key: Option<Local> },
    Set { set: Local, left: u32 },
}

struct Walk<'m> {
    state: &'m State,
    reader: Reader<'m>,
    blobs: &'m [Vec<u8>],
    buffers: Vec<Option<Local>>,
    objects: Vec<Local>,
    keys: Vec<Atom>,
    frames: Vec<Frame>,
    /// The first elements of an array.
    elements: Elements,
    nodes: u32,
}

impl<'m> Walk<'m> {
    fn run(&mut self) -> Outcome<Local> {
        let Some(root) = self.node()? else { return self.malformed() };
        while let Some(mut frame) = self.frames.pop() {
            if self.wants_more(&mut frame)? {
                // The frame is pushed back before its next value is read, which may open a frame.
                let place = self.frames.len();
                self.frames.push(frame);
                let value = self.node()?;
                if let Some(frame) = self.frames.get_mut(place) {
                    put(self.state, &self.keys, frame, value)?;
                }
            }
        }
        Ok(root)
    }

    /// Whether the innermost object has another value; reads its key if it has one.
    fn wants_more(&mut self, frame: &mut Frame) -> Outcome<bool> {
        match frame {
            Frame::Object { key, .. } => {
                *key = self.key()?;
                Ok(key.is_some())
            }
            Frame::Array { next, length, .. } => Ok(next < length),
            Frame::Sparse { index, .. } => {
                *index = self.reader.sparse_index().or_else(|Malformed| self.malformed())?;
                Ok(index.is_some())
            }
            Frame::Map { left, .. } | Frame::Set { left, .. } => Ok(*left > 0),
        }
    }

    fn key(&mut self) -> Outcome<Option<u32>> {
        let Some(key) = self.reader.key().or_else(|Malformed| self.malformed())? else {
            return Ok(None);
        };
        if key.number as usize == self.keys.len() {
            let cx = self.state.realm().cx;
            let atom = match key.text {
                Str::Utf8(text) => cx.atom(text)?,
                Str::Utf16(_) => cx.atom_of(cx.string16(&key.text.units())?.raw())?,
            };
            self.keys.push(atom);
        }
        Ok(Some(key.number))
    }

    fn event(&mut self) -> Outcome<Event<'m>> {
        self.nodes += 1;
        if self.nodes.is_multiple_of(NODES_PER_LOOK) {
            self.state.still_running();
        }
        match self.reader.event() {
            Ok(event) => Ok(event),
            Err(Malformed) => self.malformed(),
        }
    }

    /// One node; its nested nodes come through the frame that this pushes. A hole is `None`.
    fn node(&mut self) -> Outcome<Option<Local>> {
        let cx = self.state.realm().cx;
        let intrinsics = self.state.realm().intrinsics;
        let event = self.event()?;
        if let Some(value) = self.plain(event)? {
            return Ok(Some(value));
        }
        let is_object = event.is_object();
        let value = match event {
            Event::Undefined
            | Event::Null
            | Event::Bool(_)
            | Event::Int(_)
            | Event::Double(_)
            | Event::BigInt { .. }
            | Event::String(_)
            | Event::Hole => return Ok(None),
            Event::Ref(index) => match self.objects.get(index as usize) {
                Some(object) => object.clone(),
                None => return self.malformed(),
            },
            Event::Object => {
                let object = cx.object()?;
                self.frames.push(Frame::Object { object: object.clone(), key: None });
                object
            }
            Event::Array(length) => {
                let (array, next) = self.array(length)?;
                if next < length {
                    self.frames.push(Frame::Array { array: array.clone(), next, length });
                }
                array
            }
            Event::SparseArray(length) => {
                let array = cx.array()?;
                cx.set_length(array.raw(), length)?;
                self.frames.push(Frame::Sparse { array: array.clone(), index: None });
                array
            }
            Event::Map(entries) => {
                let map = cx.construct(intrinsics.map, &[])?;
                let left = entries.checked_mul(2).ok_or(Thrown)?;
                self.frames.push(Frame::Map { map: map.clone(), left, key: None });
                map
            }
            Event::Set(left) => {
                let set = cx.construct(intrinsics.set, &[])?;
                self.frames.push(Frame::Set { set: set.clone(), left });
                set
            }
            Event::Date(time) => cx.date(time)?,
            Event::RegExp => self.regexp()?,
            Event::Error(class) => self.error(class)?,
            Event::Buffer(blob) => self.buffer(blob)?,
            Event::View { kind, blob, byte_offset, length } => {
                self.view(kind, blob, byte_offset, length)?
            }
            Event::HostFunction(number) => {
                let name = self.text()?;
                self.state.host_function(number, &name)?
            }
            Event::SandboxFunction(number) => {
                let _ = self.text()?;
                self.state.imported_function(number)?
            }
            Event::HostPromise(number) => self.state.host_promise(number)?,
            Event::SandboxPromise(number) => self.state.imported_promise(number)?,
        };
        if is_object {
            self.objects.push(value.clone());
        }
        Ok(Some(value))
    }

    /// A value without identity and without nodes of its own; `None` for any other node.
    fn plain(&self, event: Event<'m>) -> Outcome<Option<Local>> {
        let cx = self.state.realm().cx;
        Ok(Some(match event {
            Event::Undefined => cx.dup(undefined()),
            Event::Null => cx.dup(sys::JS_NULL),
            Event::Bool(value) => cx.dup(crate::isolate::engine::bool(value)),
            Event::Int(value) => cx.dup(int(value)),
            Event::Double(value) => cx.number(value),
            Event::BigInt { negative, magnitude } => self.bigint(negative, magnitude)?,
            Event::String(text) => string(self.state, text)?,
            _ => return Ok(None),
        }))
    }

    /// An array with its first elements, as far as they are plain, and their number: an array that grows one by one takes
    /// several times as long.
    fn array(&mut self, length: u32) -> Outcome<(Local, u32)> {
        let mut count = 0;
        while count < length && self.elements.len() < MOST_ELEMENTS && self.reader.is_at_plain() {
            let event = self.event()?;
            let Some(value) = self.plain(event)? else { return self.malformed() };
            self.elements.push(value);
            count += 1;
        }
        Ok((self.elements.take_array()?, count))
    }

    fn text(&mut self) -> Outcome<String> {
        match self.reader.text() {
            Ok(text) => Ok(text.to_string_lossy()),
            Err(Malformed) => self.malformed(),
        }
    }

    fn string(&mut self) -> Outcome<Local> {
        match self.reader.text() {
            Ok(text) => string(self.state, text),
            Err(Malformed) => self.malformed(),
        }
    }

    /// A bigint from its magnitude. A negative one goes through its two's complement: the engine reads a sign only in
    /// decimal, which would take quadratic time.
    fn bigint(&self, negative: bool, magnitude: &[u8]) -> Outcome<Local> {
        let realm = self.state.realm();
        let make = |bytes: &[u8]| -> Outcome<Local> {
            let digits = realm.cx.string(&hex(bytes))?;
            realm.cx.call(realm.intrinsics.bigint, undefined(), &[digits.raw()])
        };
        if !negative {
            return make(magnitude);
        }
        let complement = complement(magnitude);
        #[expect(clippy::cast_precision_loss, reason = "a count of bits is exact")]
        let bits = realm.cx.number((complement.len() * 8) as f64);
        let value = make(&complement)?;
        let args = [bits.raw(), value.raw()];
        realm.cx.call(realm.intrinsics.bigint_as_int_n, realm.intrinsics.bigint, &args)
    }

    fn regexp(&mut self) -> Outcome<Local> {
        let (source, flags) = (self.string()?, self.string()?);
        let realm = self.state.realm();
        realm.cx.construct(realm.intrinsics.regexp, &[source.raw(), flags.raw()])
    }

    fn error(&mut self, class: ErrorClass) -> Outcome<Local> {
        let (name, message) = (self.text()?, self.string()?);
        // The stack of the other side has no meaning here.
        let _ = self.event()?;
        let code = match self.event()? {
            Event::Undefined => None,
            Event::Int(code) => Some(self.state.realm().cx.dup(int(code))),
            Event::Double(code) => Some(self.state.realm().cx.number(code)),
            Event::String(code) => Some(string(self.state, code)?),
            _ => return self.malformed(),
        };
        let error = self.state.new_error(class, message)?;
        let cx = self.state.realm().cx;
        let hidden = sys::JS_PROP_WRITABLE | sys::JS_PROP_CONFIGURABLE;
        if name != class.name() {
            cx.define_str(error.raw(), "name", cx.string(&name)?, hidden)?;
        }
        if let Some(code) = code {
            cx.define_str(error.raw(), "code", code, sys::JS_PROP_C_W_E)?;
        }
        Ok(error)
    }

    fn buffer(&mut self, blob: u32) -> Outcome<Local> {
        let place = blob as usize;
        let (Some(bytes), Some(known)) = (self.blobs.get(place), self.buffers.get_mut(place))
        else {
            return self.malformed();
        };
        if let Some(buffer) = known {
            return Ok(buffer.clone());
        }
        let buffer = self.state.realm().cx.buffer(bytes)?;
        *known = Some(buffer.clone());
        Ok(buffer)
    }

    fn view(&mut self, kind: ViewKind, blob: u32, byte_offset: u64, length: u64) -> Outcome<Local> {
        #[expect(clippy::cast_precision_loss, reason = "offsets within a buffer are exact")]
        let numbers = (byte_offset as f64, length as f64);
        let buffer = self.buffer(blob)?;
        let realm = self.state.realm();
        let (offset, length) = (realm.cx.number(numbers.0), realm.cx.number(numbers.1));
        let args = [buffer.raw(), offset.raw(), length.raw()];
        match engine_kind(kind) {
            Some(kind) => realm.cx.typed_array(&args, kind),
            None => realm.cx.construct(realm.intrinsics.data_view, &args),
        }
    }

    fn malformed<T>(&self) -> Outcome<T> {
        Err(self.state.throw_serialization_error("a malformed message cannot be cloned"))
    }
}

/// Stores a value where the frame expects it.
fn put(state: &State, keys: &[Atom], frame: &mut Frame, value: Option<Local>) -> Outcome<()> {
    let realm = state.realm();
    let cx = realm.cx;
    match frame {
        Frame::Object { object, key } => {
            let (Some(key), Some(value)) = (key.and_then(|key| keys.get(key as usize)), value)
            else {
                return Err(Thrown);
            };
            cx.define(object.raw(), key.id, value, sys::JS_PROP_C_W_E)
        }
        Frame::Array { array, next, length } => {
            *next += 1;
            match value {
                Some(value) => cx.define_index(array.raw(), *next - 1, value),
                None => cx.set_length(array.raw(), (*next).min(*length)),
            }
        }
        Frame::Sparse { array, index } => match (*index, value) {
            (Some(index), Some(value)) => cx.define_index(array.raw(), index, value),
            _ => Ok(()),
        },
        Frame::Map { map, left, key } => {
            *left -= 1;
            let value = value.unwrap_or_else(|| cx.dup(undefined()));
            let Some(known) = key.take() else {
                *key = Some(value);
                return Ok(());
            };
            cx.call(realm.intrinsics.map_set, map.raw(), &[known.raw(), value.raw()]).map(drop)
        }
        Frame::Set { set, left } => {
            *left -= 1;
            let value = value.unwrap_or_else(|| cx.dup(undefined()));
            cx.call(realm.intrinsics.set_add, set.raw(), &[value.raw()]).map(drop)
        }
    }
}

pub(in crate::isolate) fn string(state: &State, text: Str<'_>) -> Outcome<Local> {
    let cx = state.realm().cx;
    match text {
        Str::Utf8(text) => cx.string(text),
        Str::Utf16(_) => cx.string16(&text.units()),
    }
}

/// `0x…` of a magnitude, least significant byte first.
fn hex(magnitude: &[u8]) -> String {
    use std::fmt::Write;
    let mut digits = String::with_capacity(magnitude.len() * 2 + 3);
    digits.push_str("0x0");
    for byte in magnitude.iter().rev() {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Two's complement of a magnitude, with a byte to spare for the sign.
fn complement(magnitude: &[u8]) -> Vec<u8> {
    let mut carry = true;
    magnitude
        .iter()
        .chain([&0])
        .map(|byte| {
            let (byte, overflow) = (!byte).overflowing_add(u8::from(carry));
            carry = overflow;
            byte
        })
        .collect()
}

fn engine_kind(kind: ViewKind) -> Option<u32> {
    Some(match kind {
        ViewKind::DataView => return None,
        ViewKind::Uint8ClampedArray => 0,
        ViewKind::Int8Array => 1,
        ViewKind::Uint8Array => 2,
        ViewKind::Int16Array => 3,
        ViewKind::Uint16Array => 4,
        ViewKind::Int32Array => 5,
        ViewKind::Uint32Array => 6,
        ViewKind::BigInt64Array => 7,
        ViewKind::BigUint64Array => 8,
        ViewKind::Float16Array => 9,
        ViewKind::Float32Array => 10,
        ViewKind::Float64Array => 11,
    })
}
