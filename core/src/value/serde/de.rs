//! Rust's own types from messages.
//!
//! In: a message, perhaps of a hostile writer. Out: anything that serde can read, or a [`Fault`] with the path.
//! [`Value::deserialize`] says which value reads as which type. Serde recurses, so depth is bounded, and repeated reads
//! through references count against the cursor's budget.

use serde::{
    de::{
        Deserialize, DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Unexpected,
        Visitor, value::MapDeserializer,
    },
    forward_to_deserialize_any,
};

use super::{
    cursor::Links,
    host_object::{self, Cargo, HOST_OBJECT, MESSAGE},
    members::{Entries, Numbers, Properties, Sparse, Variant, elements},
    reading::{Big, Reading, big, visit_number},
};
use crate::value::{Event, Fault, Malformed, Str, Value, ViewKind, copy::extract, path::Step, tag};

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

pub(super) struct Node<'c, 'a>(pub(super) &'c mut Reading<'a>);

/// The type's request, where that makes a difference.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Wish {
    Anything,
    Bytes,
    Struct,
}

impl Node<'_, '_> {
    pub(super) fn visit<'de, V: Visitor<'de>>(
        self,
        wish: Wish,
        visitor: V,
    ) -> Result<V::Value, Fault> {
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
