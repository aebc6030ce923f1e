//! Rust's own types from messages.
//!
//! In: a message, perhaps of a hostile writer. Out: anything that serde can read, or a [`Fault`] with the path.
//! [`Value::deserialize`] says which value reads as which type. Serde recurses, so depth is bounded, and repeated reads
//! through references count against the cursor's budget.

use std::cell::RefCell;

use serde::{
    de::{
        Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _,
        IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
        value::{MapDeserializer, StrDeserializer, UnitDeserializer},
    },
    forward_to_deserialize_any,
    ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer},
};

use super::{
    cursor::{Cursor, Links},
    host_object::{self, Cargo, HOST_OBJECT, MESSAGE},
    ser::MAX_DEPTH,
};
use crate::value::{
    Event, Fault, Malformed, Str, Value, ViewKind,
    copy::{extract, pass},
    path::Step,
    reader::Jump,
    tag,
};

/// Reads a whole message.
pub(crate) fn from_value<T: DeserializeOwned>(
    message: &Value,
    links: Option<&dyn Links>,
) -> Result<T, Fault> {
    T::deserialize(Node(&mut Reading::new(message, links)))
}

/// The arguments of a call, one after the other, each as its own type.
pub(crate) struct Arguments<'a> {
    reading: Reading<'a>,
    left: u32,
    index: usize,
}

impl<'a> Arguments<'a> {
    /// The arguments in a message that is an array.
    pub(crate) fn new(message: &'a Value, links: Option<&'a dyn Links>) -> Result<Self, Fault> {
        let mut reading = Reading::new(message, links);
        let (event, _) = reading.cursor.event()?;
        let Event::Array(left) = event else { return Err(Malformed.into()) };
        Ok(Self { reading, left, index: 0 })
    }

    /// The number of arguments left.
    pub(crate) fn left(&self) -> u32 {
        self.left
    }

    /// The next argument; one that is missing reads as `undefined`.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<T, Fault> {
        let index = self.index;
        self.index += 1;
        let read = match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                T::deserialize(Node(&mut self.reading))
            }
            None => from_value(&Value::undefined(), None),
        };
        read.map_err(|fault| fault.at(Step::Index(index)))
    }
}

/// Writes a message with any serializer, as plain data.
pub(in crate::value) fn transcode<S: Serializer>(
    message: &Value,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    Plain(&RefCell::new(Reading::new(message, None))).serialize(serializer)
}

/// A message being read.
struct Reading<'a> {
    cursor: Cursor<'a>,
    /// The objects that contain the cursor: a reference to one of them is a cycle.
    open: Vec<u32>,
    depth: usize,
    /// Something failed, so the place of the cursor is unknown.
    lost: bool,
}

/// Changes to undo when a node has been read.
struct Entered<'a> {
    jump: Option<Jump<'a>>,
    opened: bool,
}

impl<'a> Reading<'a> {
    fn new(message: &'a Value, links: Option<&'a dyn Links>) -> Self {
        let cursor = Cursor::new(message, links);
        Self { cursor, open: Vec::new(), depth: 0, lost: false }
    }

    /// The next node; if it is a reference, the node behind it.
    fn enter(&mut self) -> Result<(Event<'a>, Entered<'a>), Fault> {
        if self.lost {
            return Err(Fault::new("an earlier part of the value did not fit its type"));
        }
        let (mut event, mut index) = self.cursor.event()?;
        let mut jump = None;
        if let Event::Ref(object) = event {
            if self.open.contains(&object) {
                return Err(Fault::new("a cycle cannot be read"));
            }
            jump = Some(self.cursor.jump(object)?);
            (event, index) = self.cursor.event()?;
        }
        if self.depth >= MAX_DEPTH {
            return Err(Fault::new(format!("nests deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        self.open.extend(index);
        Ok((event, Entered { jump, opened: index.is_some() }))
    }

    fn leave(&mut self, entered: Entered<'a>) {
        self.depth -= 1;
        if entered.opened {
            self.open.pop();
        }
        if let Some(jump) = entered.jump {
            self.cursor.reader.come_back(jump);
        }
    }

    fn read<T>(
        &mut self,
        body: impl FnOnce(&mut Self, Event<'a>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let done = self.enter().and_then(|(event, entered)| {
            let value = body(self, event)?;
            self.leave(entered);
            Ok(value)
        });
        self.lost |= done.is_err();
        done
    }

    fn key(&mut self) -> Result<Option<String>, Fault> {
        Ok(self.cursor.reader.key()?.map(|key| key.text.to_string_lossy()))
    }

    fn text(&mut self) -> Result<String, Fault> {
        Ok(self.cursor.reader.text()?.to_string_lossy())
    }

    fn pass(&mut self) -> Result<(), Fault> {
        pass(&mut self.cursor, &mut |_| ())
    }

    fn regexp(&mut self) -> Result<String, Fault> {
        Ok(format!("/{}/{}", self.text()?, self.text()?))
    }

    /// The parts of an Error that serde reads.
    fn error(&mut self) -> Result<Vec<(&'static str, Scalar)>, Fault> {
        let (name, message) = (self.text()?, self.text()?);
        self.pass()?;
        let code = match self.cursor.event()?.0 {
            Event::Int(code) => Some(Scalar::Number(f64::from(code))),
            Event::Double(code) => Some(Scalar::Number(code)),
            Event::String(code) => Some(Scalar::Text(code.to_string_lossy())),
            _ => None,
        };
        let mut fields = vec![("name", Scalar::Text(name)), ("message", Scalar::Text(message))];
        fields.extend(code.map(|code| ("code", code)));
        Ok(fields)
    }

    /// The bytes of a buffer or of a view.
    fn bytes(&self, event: &Event<'_>) -> Option<&'a [u8]> {
        match *event {
            Event::Buffer(blob) => self.cursor.blobs.get(blob as usize).map(Vec::as_slice),
            Event::View { kind, blob, byte_offset, length } => {
                let start = usize::try_from(byte_offset).ok()?;
                let length = usize::try_from(length).ok()?.checked_mul(kind.element_bytes())?;
                let blob = self.cursor.blobs.get(blob as usize)?;
                blob.get(start..start.checked_add(length)?)
            }
            _ => None,
        }
    }
}

/// A number or a text.
enum Scalar {
    Number(f64),
    Text(String),
}

impl IntoDeserializer<'_, Fault> for Scalar {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Scalar {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self {
            Self::Number(number) => visit_number(number, visitor),
            Self::Text(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serialize_number(*number, serializer),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// A number, as an integer if it is a safe one.
enum Number {
    Natural(u64),
    Negative(i64),
    Other(f64),
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        if number.fract() != 0.0 || number.abs() > MAX_SAFE || number.to_bits() == (-0f64).to_bits()
        {
            Self::Other(number)
        } else if number < 0.0 {
            Self::Negative(number as i64)
        } else {
            Self::Natural(number as u64)
        }
    }
}

fn visit_number<'de, V: Visitor<'de>>(number: f64, visitor: V) -> Result<V::Value, Fault> {
    match Number::from(number) {
        Number::Natural(number) => visitor.visit_u64(number),
        Number::Negative(number) => visitor.visit_i64(number),
        Number::Other(number) => visitor.visit_f64(number),
    }
}

fn serialize_number<S: Serializer>(number: f64, serializer: S) -> Result<S::Ok, S::Error> {
    match Number::from(number) {
        Number::Natural(number) => serializer.serialize_u64(number),
        Number::Negative(number) => serializer.serialize_i64(number),
        Number::Other(number) => serializer.serialize_f64(number),
    }
}

/// A bigint, as far as Rust has a type for it.
enum Big {
    U64(u64),
    I64(i64),
    U128(u128),
    I128(i128),
}

fn big(negative: bool, magnitude: &[u8]) -> Result<Big, Fault> {
    let mut bytes = [0; 16];
    let too_big = || Fault::new("the bigint is too big for any integer type");
    bytes.get_mut(..magnitude.len()).ok_or_else(too_big)?.copy_from_slice(magnitude);
    let magnitude = u128::from_le_bytes(bytes);
    if !negative {
        return Ok(u64::try_from(magnitude).map_or(Big::U128(magnitude), Big::U64));
    }
    let number = if magnitude == i128::MIN.unsigned_abs() {
        i128::MIN
    } else {
        -i128::try_from(magnitude).map_err(|_| too_big())?
    };
    Ok(i64::try_from(number).map_or(Big::I128(number), Big::I64))
}

struct Node<'c, 'a>(&'c mut Reading<'a>);

/// The type's request, where that makes a difference.
#[derive(Clone, Copy, PartialEq)]
enum Wish {
    Anything,
    Bytes,
    Struct,
}

impl Node<'_, '_> {
    fn visit<'de, V: Visitor<'de>>(self, wish: Wish, visitor: V) -> Result<V::Value, Fault> {
        self.0.read(|reading, event| match event {
            Event::Undefined | Event::Null | Event::Hole => visitor.visit_unit(),
            Event::Bool(value) => visitor.visit_bool(value),
            Event::Int(value) => visit_number(f64::from(value), visitor),
            Event::Double(value) => visit_number(value, visitor),
            Event::BigInt { negative, magnitude } => match big(negative, magnitude)? {
                Big::U64(value) => visitor.visit_u64(value),
                Big::I64(value) => visitor.visit_i64(value),
                Big::U128(value) => visitor.visit_u128(value),
                Big::I128(value) => visitor.visit_i128(value),
            },
            Event::String(Str::Utf8(text)) => visitor.visit_str(text),
            Event::String(text) => visitor.visit_string(text.to_string_lossy()),
            Event::Date(time) => visitor.visit_f64(time),
            Event::RegExp => visitor.visit_string(reading.regexp()?),
            Event::Object => {
                let mut entries = Properties {
                    reading,
                    struct_like: wish == Wish::Struct,
                    key: None,
                    ended: false,
                };
                let value = visitor.visit_map(&mut entries)?;
                entries.finish()?;
                Ok(value)
            }
            Event::Array(left) => elements(reading, left, Step::Index, visitor),
            Event::Set(left) => elements(reading, left, Step::Member, visitor),
            Event::SparseArray(length) => {
                let next = reading.cursor.reader.sparse_index()?;
                let mut sparse = Sparse { reading, next, index: 0, length };
                let value = visitor.visit_seq(&mut sparse)?;
                sparse.finish()?;
                Ok(value)
            }
            Event::Map(left) => {
                let mut entries = Entries { reading, left, index: 0, pending: false };
                let value = visitor.visit_map(&mut entries)?;
                entries.finish()?;
                Ok(value)
            }
            Event::Error(_) => {
                let fields = reading.error()?;
                let mut map = MapDeserializer::new(fields.into_iter());
                visitor.visit_map(&mut map)
            }
            Event::Buffer(_) | Event::View { .. } => {
                let bytes = reading.bytes(&event).ok_or(Malformed)?;
                reading.cursor.spend_bytes(bytes.len())?;
                if wish == Wish::Bytes {
                    return visitor.visit_bytes(bytes);
                }
                let kind = match event {
                    Event::View { kind, .. } => kind,
                    _ => ViewKind::Uint8Array,
                };
                visitor.visit_seq(Numbers { bytes: bytes.chunks_exact(kind.element_bytes()), kind })
            }
            Event::Ref(_) => Err(Malformed.into()),
            Event::HostFunction(_) | Event::SandboxFunction(_) => {
                Err(Fault::invalid_type(Unexpected::Other("a function"), &visitor))
            }
            Event::HostPromise(_) | Event::SandboxPromise(_) => {
                Err(Fault::invalid_type(Unexpected::Other("a promise"), &visitor))
            }
        })
    }

    /// Hands over a function or a promise through the slot.
    fn visit_link<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.0.read(|reading, event| {
            let found = reading.cursor.links.and_then(|links| links.link(&event));
            if matches!(event, Event::HostFunction(_) | Event::SandboxFunction(_)) {
                reading.text()?;
            }
            match found {
                Some(found) => {
                    host_object::offer(Cargo::HostObject(found), || visitor.visit_unit())
                }
                None => Err(Fault::invalid_type(unexpected(&event), &visitor)),
            }
        })
    }
}

/// The name of a node in serde's messages.
fn unexpected<'e>(event: &'e Event<'_>) -> Unexpected<'e> {
    match event {
        Event::Undefined => Unexpected::Other("undefined"),
        Event::Null => Unexpected::Other("null"),
        Event::Hole => Unexpected::Other("a hole"),
        Event::Bool(value) => Unexpected::Bool(*value),
        Event::Int(value) => Unexpected::Signed(i64::from(*value)),
        Event::Double(value) => Unexpected::Float(*value),
        Event::BigInt { .. } => Unexpected::Other("a bigint"),
        Event::String(Str::Utf8(text)) => Unexpected::Str(text),
        Event::String(_) => Unexpected::Other("a string"),
        Event::Object | Event::Map(_) | Event::Error(_) => Unexpected::Map,
        Event::HostFunction(_) | Event::SandboxFunction(_) => {
            Unexpected::Other("a function that is no longer there")
        }
        Event::HostPromise(_) | Event::SandboxPromise(_) => {
            Unexpected::Other("a promise that is no longer there")
        }
        _ => Unexpected::Seq,
    }
}

impl<'de> Deserializer<'de> for Node<'_, '_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.visit(Wish::Anything, visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.visit(Wish::Bytes, visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.visit(Wish::Bytes, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.cursor.reader.peek() {
            Some(tag::UNDEFINED | tag::NULL | tag::HOLE) => {
                self.0.cursor.event()?;
                visitor.visit_none()
            }
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match name {
            HOST_OBJECT => self.visit_link(visitor),
            MESSAGE if self.0.lost => Err(Malformed.into()),
            MESSAGE => {
                let value = extract(&mut self.0.cursor)?;
                host_object::offer(Cargo::Value(value), || visitor.visit_unit())
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.visit(Wish::Struct, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.0.read(|reading, event| match event {
            Event::String(text) => visitor.visit_enum(text.to_string_lossy().into_deserializer()),
            Event::Object => {
                let one = "a string or an object of one key";
                let Some(name) = reading.key()? else {
                    return Err(Fault::invalid_value(Unexpected::Map, &one));
                };
                let value = visitor.visit_enum(Variant { reading, name })?;
                match reading.key()? {
                    None => Ok(value),
                    Some(_) => Err(Fault::invalid_value(Unexpected::Map, &one)),
                }
            }
            event => Err(Fault::invalid_type(unexpected(&event), &visitor)),
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.0.pass()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct seq
        tuple tuple_struct map identifier
    }
}

/// The properties of an object.
struct Properties<'c, 'a> {
    reading: &'c mut Reading<'a>,
    /// Whether a property that is `undefined` counts as absent.
    struct_like: bool,
    /// The key whose value has not been read.
    key: Option<String>,
    ended: bool,
}

impl Properties<'_, '_> {
    /// Passes over the rest, which the visitor did not read.
    fn finish(&mut self) -> Result<(), Fault> {
        if self.key.take().is_some() {
            self.reading.pass()?;
        }
        while !self.ended {
            match self.reading.key()? {
                Some(_) => self.reading.pass()?,
                None => self.ended = true,
            }
        }
        Ok(())
    }
}

impl<'de> MapAccess<'de> for &mut Properties<'_, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        loop {
            if self.ended {
                return Ok(None);
            }
            let Some(key) = self.reading.key()? else {
                self.ended = true;
                return Ok(None);
            };
            if self.struct_like && self.reading.cursor.reader.peek() == Some(tag::UNDEFINED) {
                self.reading.pass()?;
                continue;
            }
            let read = seed.deserialize(key.as_str().into_deserializer());
            self.key = Some(key);
            return read.map(Some);
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let key = self.key.take().unwrap_or_default();
        seed.deserialize(Node(self.reading)).map_err(|fault| fault.at(Step::Key(key)))
    }
}

/// The entries of a Map.
struct Entries<'c, 'a> {
    reading: &'c mut Reading<'a>,
    left: u32,
    index: usize,
    /// Whether the value of the last key has not been read.
    pending: bool,
}

impl Entries<'_, '_> {
    fn finish(&mut self) -> Result<(), Fault> {
        if self.pending {
            self.reading.pass()?;
        }
        for _ in 0..self.left {
            self.reading.pass()?;
            self.reading.pass()?;
        }
        Ok(())
    }
}

impl<'de> MapAccess<'de> for &mut Entries<'_, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        self.pending = true;
        let key = seed.deserialize(Node(self.reading));
        key.map(Some).map_err(|fault| fault.at(Step::MapKey(self.index)))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let index = self.index;
        self.index += 1;
        self.pending = false;
        seed.deserialize(Node(self.reading)).map_err(|fault| fault.at(Step::Member(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left as usize)
    }
}

/// The elements of an array or the members of a Set.
struct Elements<'c, 'a> {
    reading: &'c mut Reading<'a>,
    left: u32,
    index: usize,
    step: fn(usize) -> Step,
}

fn elements<'de, V: Visitor<'de>>(
    reading: &mut Reading<'_>,
    left: u32,
    step: fn(usize) -> Step,
    visitor: V,
) -> Result<V::Value, Fault> {
    let mut elements = Elements { reading, left, index: 0, step };
    let value = visitor.visit_seq(&mut elements)?;
    for _ in 0..elements.left {
        elements.reading.pass()?;
    }
    Ok(value)
}

impl<'de> SeqAccess<'de> for &mut Elements<'_, '_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        let index = self.index;
        self.index += 1;
        let read = seed.deserialize(Node(self.reading));
        read.map(Some).map_err(|fault| fault.at((self.step)(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left as usize)
    }
}

/// The elements of a sparse array, holes included.
struct Sparse<'c, 'a> {
    reading: &'c mut Reading<'a>,
    /// The next index that has an element.
    next: Option<u32>,
    index: u32,
    length: u32,
}

impl Sparse<'_, '_> {
    fn finish(&mut self) -> Result<(), Fault> {
        while self.next.is_some() {
            self.reading.pass()?;
            self.next = self.reading.cursor.reader.sparse_index()?;
        }
        Ok(())
    }
}

impl<'de> SeqAccess<'de> for &mut Sparse<'_, '_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        if self.index >= self.length {
            return Ok(None);
        }
        let index = self.index;
        self.index += 1;
        let read = if self.next == Some(index) {
            let value = seed.deserialize(Node(self.reading));
            if value.is_ok() {
                self.next = self.reading.cursor.reader.sparse_index()?;
            }
            value
        } else {
            self.reading.cursor.spend(1)?;
            seed.deserialize(UnitDeserializer::new())
        };
        read.map(Some).map_err(|fault| fault.at(Step::Index(index as usize)))
    }
}

/// The elements of a typed array.
struct Numbers<'a> {
    bytes: std::slice::ChunksExact<'a, u8>,
    kind: ViewKind,
}

impl<'de> SeqAccess<'de> for Numbers<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(bytes) = self.bytes.next() else { return Ok(None) };
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let unsigned = u64::from_le_bytes(wide);
        let unused = 64 - 8 * bytes.len();
        let signed = (unsigned << unused).cast_signed() >> unused;
        #[expect(clippy::cast_possible_truncation, reason = "an element's own width")]
        let float = match self.kind {
            ViewKind::Float16Array => Some(f16_to_f64(unsigned as u16)),
            ViewKind::Float32Array => Some(f64::from(f32::from_bits(unsigned as u32))),
            ViewKind::Float64Array => Some(f64::from_bits(unsigned)),
            _ => None,
        };
        let element = match (self.kind, float) {
            (_, Some(float)) => seed.deserialize(Scalar::Number(float)),
            (
                ViewKind::Int8Array
                | ViewKind::Int16Array
                | ViewKind::Int32Array
                | ViewKind::BigInt64Array,
                None,
            ) => seed.deserialize(signed.into_deserializer()),
            _ => seed.deserialize(unsigned.into_deserializer()),
        };
        element.map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.bytes.len())
    }
}

fn f16_to_f64(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1F);
    let fraction = f64::from(bits & 0x3FF);
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        0x1F if fraction == 0.0 => f64::INFINITY,
        0x1F => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// A variant that is an object of one key.
struct Variant<'c, 'a> {
    reading: &'c mut Reading<'a>,
    name: String,
}

impl<'de> EnumAccess<'de> for Variant<'_, '_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        let name: StrDeserializer<'_, Fault> = self.name.as_str().into_deserializer();
        let value = seed.deserialize(name)?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, '_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        <()>::deserialize(Node(self.reading)).map_err(|fault| fault.at(Step::Key(self.name)))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Fault> {
        seed.deserialize(Node(self.reading)).map_err(|fault| fault.at(Step::Key(self.name)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Fault> {
        let read = Node(self.reading).visit(Wish::Anything, visitor);
        read.map_err(|fault| fault.at(Step::Key(self.name)))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let read = Node(self.reading).visit(Wish::Struct, visitor);
        read.map_err(|fault| fault.at(Step::Key(self.name)))
    }
}

/// The next node of a message, for any serializer.
struct Plain<'c, 'a>(&'c RefCell<Reading<'a>>);

impl<'a> Plain<'_, 'a> {
    fn step<T, E: serde::ser::Error>(
        &self,
        body: impl FnOnce(&mut Reading<'a>) -> Result<T, Fault>,
    ) -> Result<T, E> {
        body(&mut self.0.borrow_mut()).map_err(E::custom)
    }
}

impl Serialize for Plain<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entered = self.0.borrow_mut().enter();
        let (event, entered) = entered.map_err(S::Error::custom)?;
        let done = self.write(&event, serializer)?;
        self.0.borrow_mut().leave(entered);
        Ok(done)
    }
}

impl Plain<'_, '_> {
    fn write<S: Serializer>(&self, event: &Event<'_>, serializer: S) -> Result<S::Ok, S::Error> {
        match *event {
            Event::Undefined | Event::Null | Event::Hole => serializer.serialize_unit(),
            Event::Bool(value) => serializer.serialize_bool(value),
            Event::Int(value) => serialize_number(f64::from(value), serializer),
            Event::Double(value) | Event::Date(value) => serialize_number(value, serializer),
            Event::BigInt { negative, magnitude } => {
                match big(negative, magnitude).map_err(S::Error::custom)? {
                    Big::U64(value) => serializer.serialize_u64(value),
                    Big::I64(value) => serializer.serialize_i64(value),
                    Big::U128(value) => serializer.serialize_u128(value),
                    Big::I128(value) => serializer.serialize_i128(value),
                }
            }
            Event::String(text) => serializer.serialize_str(&text.to_string_lossy()),
            Event::RegExp => serializer.serialize_str(&self.step(Reading::regexp)?),
            Event::Error(_) => serializer.collect_map(self.step::<_, S::Error>(Reading::error)?),
            Event::Object => {
                let mut map = serializer.serialize_map(None)?;
                while let Some(key) = self.step(Reading::key)? {
                    if self.0.borrow().cursor.reader.peek() == Some(tag::UNDEFINED) {
                        self.step::<_, S::Error>(Reading::pass)?;
                    } else {
                        map.serialize_entry(&key, &Plain(self.0))?;
                    }
                }
                map.end()
            }
            Event::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries as usize))?;
                for _ in 0..entries {
                    map.serialize_entry(&Plain(self.0), &Plain(self.0))?;
                }
                map.end()
            }
            Event::Array(length) | Event::Set(length) => {
                let mut seq = serializer.serialize_seq(Some(length as usize))?;
                for _ in 0..length {
                    seq.serialize_element(&Plain(self.0))?;
                }
                seq.end()
            }
            Event::SparseArray(length) => self.write_sparse(length, serializer),
            Event::Buffer(_) | Event::View { .. } => {
                let bytes = self.0.borrow().bytes(event);
                let bytes = bytes.ok_or(Malformed).map_err(S::Error::custom)?;
                self.step::<_, S::Error>(|reading| reading.cursor.spend_bytes(bytes.len()))?;
                serializer.serialize_bytes(bytes)
            }
            Event::Ref(_) => Err(S::Error::custom(Malformed)),
            Event::HostFunction(_) | Event::SandboxFunction(_) => {
                Err(S::Error::custom("a function is no data"))
            }
            Event::HostPromise(_) | Event::SandboxPromise(_) => {
                Err(S::Error::custom("a promise is no data"))
            }
        }
    }

    fn write_sparse<S: Serializer>(&self, length: u32, serializer: S) -> Result<S::Ok, S::Error> {
        let next = |reading: &mut Reading<'_>| Ok(reading.cursor.reader.sparse_index()?);
        let mut seq = serializer.serialize_seq(Some(length as usize))?;
        let mut index = self.step(next)?;
        for at in 0..length {
            if index == Some(at) {
                seq.serialize_element(&Plain(self.0))?;
                index = self.step(next)?;
            } else {
                self.step::<_, S::Error>(|reading| reading.cursor.spend(1))?;
                seq.serialize_element(&())?;
            }
        }
        seq.end()
    }
}

/// Takes a part of a message as it is.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(MESSAGE, Taken)
    }
}

struct Taken;

impl Visitor<'_> for Taken {
    type Value = Value;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a value of the sandbox")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        match host_object::take() {
            Some(Cargo::Value(value)) => Ok(value),
            _ => Err(E::custom("only a value of the sandbox can be read as one")),
        }
    }
}
