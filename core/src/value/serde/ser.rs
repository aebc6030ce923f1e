//! Messages from Rust's own types.
//!
//! In: anything that serde can write. Out: a [`Message`], or a [`Fault`] with the path. [`Value::serialize`] says which
//! type becomes which value.

use rustc_hash::FxHashMap;
use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::host_object::{self, Cargo, HOST_OBJECT, HostObject, MESSAGE};
use crate::value::{Event, Fault, Value, ViewKind, Writer, copy::copy_message, path::Step};

/// The deepest nesting of Rust's types: serde recurses.
pub(in crate::value) const MAX_DEPTH: usize = 128;

/// The greatest integer up to which numbers hold each one exactly.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// A value with functions and promises of the host in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    /// Each link is written as the host function of the number [`LOCAL`] + its index.
    pub(crate) value: Value,
    pub(crate) links: Vec<HostObject>,
}

/// Numbers from here on are indices into [`Message::links`]; those below are a run's own.
pub(crate) const LOCAL: u32 = 1 << 31;

/// The value that a function threw, on its way to the sandbox.
pub(crate) struct Thrown(pub(crate) Message);

pub(crate) fn to_message<T: Serialize + ?Sized>(value: &T) -> Result<Message, Fault> {
    let mut sink = Sink::default();
    value.serialize(Node(&mut sink))?;
    Ok(sink.finish())
}

/// As [`to_message`], but a `Result` at the root is the result or the exception of a function.
pub(crate) fn to_outcome<T: Serialize + ?Sized>(
    value: &T,
) -> Result<Result<Message, Thrown>, Fault> {
    let mut sink = Sink { root_is_outcome: true, ..Sink::default() };
    value.serialize(Node(&mut sink))?;
    let threw = sink.threw;
    let message = sink.finish();
    Ok(if threw { Err(Thrown(message)) } else { Ok(message) })
}

/// The message in the making.
#[derive(Default)]
struct Sink {
    writer: Writer,
    links: Vec<HostObject>,
    known: FxHashMap<usize, u32>,
    depth: usize,
    /// The key of the next value: a function's name.
    key: String,
    /// The next unit is no value but the answer of a type that left its object in the slot.
    muted: bool,
    root_is_outcome: bool,
    threw: bool,
}

impl Sink {
    fn finish(self) -> Message {
        Message { value: self.writer.finish(), links: self.links }
    }

    /// Writes a nested value, within the bound of depth.
    fn nested(
        &mut self,
        step: impl FnOnce() -> Step,
        write: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::new(format!("nests deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let done = write(self);
        self.depth -= 1;
        done.map_err(|fault| fault.at(step()))
    }

    fn element<T: Serialize + ?Sized>(&mut self, index: usize, value: &T) -> Result<(), Fault> {
        self.key.clear();
        self.nested(|| Step::Index(index), |sink| value.serialize(Node(sink)))
    }

    fn property<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Fault> {
        self.writer.key(key);
        self.key.clear();
        self.key.push_str(key);
        self.nested(|| Step::Key(key.to_owned()), |sink| value.serialize(Node(sink)))
    }

    /// Begins an object of one key, the name of a variant.
    fn variant(&mut self, name: &str) {
        self.writer.object();
        self.writer.key(name);
    }

    fn link(&mut self, link: HostObject) {
        let address = std::sync::Arc::as_ptr(&link).addr();
        let next = u32::try_from(self.links.len()).unwrap_or(LOCAL - 1);
        let number = *self.known.entry(address).or_insert(next);
        if number == next {
            self.links.push(link);
        }
        self.writer.host_function(LOCAL | number);
        self.writer.string(&self.key);
    }

    fn message(&mut self, message: &Message) -> Result<(), Fault> {
        let name = std::mem::take(&mut self.key);
        let mut writer = std::mem::take(&mut self.writer);
        let done = copy_message(&message.value, &mut writer, &name, &mut |writer, event, name| {
            self.key.clear();
            self.key.push_str(name);
            std::mem::swap(writer, &mut self.writer);
            match event {
                Event::HostFunction(number) if number >= LOCAL => {
                    let link = message.links.get((number - LOCAL) as usize);
                    self.link(link.cloned().ok_or(crate::value::Malformed)?);
                }
                Event::HostFunction(number) => {
                    self.writer.host_function(number);
                    self.writer.string(name);
                }
                Event::SandboxFunction(number) => {
                    self.writer.sandbox_function(number);
                    self.writer.string(name);
                }
                Event::HostPromise(number) => self.writer.host_promise(number),
                Event::SandboxPromise(number) => self.writer.sandbox_promise(number),
                _ => {}
            }
            std::mem::swap(writer, &mut self.writer);
            Ok(())
        });
        self.writer = writer;
        done
    }

    fn integer(&mut self, negative: bool, magnitude: u128) {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "exact within the safe range"
        )]
        if magnitude <= u128::from(MAX_SAFE) {
            let number = magnitude as u64 as f64;
            self.writer.number(if negative { -number } else { number });
        } else {
            self.writer.bigint(negative, &magnitude.to_le_bytes());
        }
    }
}

struct Node<'s>(&'s mut Sink);

impl<'s> Serializer for Node<'s> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Elements<'s>;
    type SerializeTuple = Elements<'s>;
    type SerializeTupleStruct = Elements<'s>;
    type SerializeTupleVariant = Elements<'s>;
    type SerializeMap = Entries<'s>;
    type SerializeStruct = Fields<'s>;
    type SerializeStructVariant = Fields<'s>;

    fn serialize_bool(self, value: bool) -> Result<(), Fault> {
        self.0.writer.bool(value);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Fault> {
        self.serialize_i64(i64::from(value))
    }

    fn serialize_i16(self, value: i16) -> Result<(), Fault> {
        self.serialize_i64(i64::from(value))
    }

    fn serialize_i32(self, value: i32) -> Result<(), Fault> {
        self.0.writer.int(value);
        Ok(())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Fault> {
        self.0.integer(value < 0, u128::from(value.unsigned_abs()));
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result<(), Fault> {
        self.0.integer(value < 0, value.unsigned_abs());
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Fault> {
        self.serialize_u64(u64::from(value))
    }

    fn serialize_u16(self, value: u16) -> Result<(), Fault> {
        self.serialize_u64(u64::from(value))
    }

    fn serialize_u32(self, value: u32) -> Result<(), Fault> {
        self.serialize_u64(u64::from(value))
    }

    fn serialize_u64(self, value: u64) -> Result<(), Fault> {
        self.0.integer(false, u128::from(value));
        Ok(())
    }

    fn serialize_u128(self, value: u128) -> Result<(), Fault> {
        self.0.integer(false, value);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Fault> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Fault> {
        self.0.writer.number(value);
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Fault> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Fault> {
        self.0.writer.string(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Fault> {
        let blob = self.0.writer.blob(value.to_vec());
        self.0.writer.view(ViewKind::Uint8Array, blob, 0, value.len() as u64);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Fault> {
        self.0.writer.null();
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Fault> {
        if !self.0.muted {
            self.0.writer.undefined();
        }
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Fault> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Fault> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        if name != HOST_OBJECT && name != MESSAGE {
            return value.serialize(self);
        }
        let sink = self.0;
        let before = std::mem::replace(&mut sink.muted, true);
        let cargo = host_object::ask(|| value.serialize(Node(sink)));
        sink.muted = before;
        match cargo? {
            Some(Cargo::HostObject(link)) => sink.link(link),
            Some(Cargo::Message(message)) => sink.message(&message)?,
            Some(Cargo::Value(value)) => sink.message(&Message { value, links: Vec::new() })?,
            None => return Err(Fault::custom("a function or a promise is missing")),
        }
        Ok(())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        let sink = self.0;
        if sink.root_is_outcome && sink.depth == 0 && name == "Result" {
            sink.root_is_outcome = false;
            sink.threw = variant == "Err";
            return value.serialize(Node(sink));
        }
        sink.writer.object();
        sink.property(variant, value)?;
        sink.writer.end_object();
        Ok(())
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Elements<'s>, Fault> {
        Ok(Elements::new(self.0, false))
    }

    fn serialize_tuple(self, length: usize) -> Result<Elements<'s>, Fault> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        length: usize,
    ) -> Result<Elements<'s>, Fault> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Elements<'s>, Fault> {
        self.0.variant(variant);
        Ok(Elements::new(self.0, true))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Entries<'s>, Fault> {
        Ok(Entries { sink: self.0, shape: Shape::Unknown, key: None, count: 0 })
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Fields<'s>, Fault> {
        self.0.writer.object();
        Ok(Fields { sink: self.0, in_variant: false })
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Fields<'s>, Fault> {
        self.0.variant(variant);
        self.0.writer.object();
        Ok(Fields { sink: self.0, in_variant: true })
    }
}

/// An array in the making.
struct Elements<'s> {
    sink: &'s mut Sink,
    place: usize,
    count: usize,
    in_variant: bool,
}

impl<'s> Elements<'s> {
    fn new(sink: &'s mut Sink, in_variant: bool) -> Self {
        let place = sink.writer.open_array();
        Self { sink, place, count: 0, in_variant }
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.sink.element(self.count, value)?;
        self.count += 1;
        Ok(())
    }

    fn finish(self) -> Result<(), Fault> {
        let count = u32::try_from(self.count).map_err(|_| Fault::new("too many elements"))?;
        self.sink.writer.close(self.place, count);
        if self.in_variant {
            self.sink.writer.end_object();
        }
        Ok(())
    }
}

macro_rules! elements {
    ($($interface:ident $method:ident),*) => {$(
        impl $interface for Elements<'_> {
            type Ok = ();
            type Error = Fault;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
                self.push(value)
            }

            fn end(self) -> Result<(), Fault> {
                self.finish()
            }
        }
    )*};
}

elements!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

/// A struct's object in the making.
struct Fields<'s> {
    sink: &'s mut Sink,
    in_variant: bool,
}

impl Fields<'_> {
    fn finish(self) {
        self.sink.writer.end_object();
        if self.in_variant {
            self.sink.writer.end_object();
        }
    }
}

macro_rules! fields {
    ($($interface:ident),*) => {$(
        impl $interface for Fields<'_> {
            type Ok = ();
            type Error = Fault;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Fault> {
                self.sink.property(key, value)
            }

            fn end(self) -> Result<(), Fault> {
                self.finish();
                Ok(())
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

/// A map in the making: its first key decides whether it becomes an object or a Map.
struct Entries<'s> {
    sink: &'s mut Sink,
    shape: Shape,
    /// The key of an object whose value has not come yet.
    key: Option<String>,
    count: u32,
}

enum Shape {
    Unknown,
    Object,
    /// The place for the number of entries.
    Map(usize),
}

impl SerializeMap for Entries<'_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        let text = if matches!(self.shape, Shape::Map(_)) { None } else { text_of(key)? };
        match (&self.shape, &text) {
            (Shape::Unknown, Some(_)) => {
                self.sink.writer.object();
                self.shape = Shape::Object;
            }
            (Shape::Unknown, None) => self.shape = Shape::Map(self.sink.writer.open_map()),
            (Shape::Object, None) => {
                return Err(Fault::new("a map's keys must all be strings, or its first one none"));
            }
            (Shape::Object, Some(_)) | (Shape::Map(_), _) => {}
        }
        if matches!(self.shape, Shape::Map(_)) {
            let index = self.count as usize;
            self.sink.key.clear();
            self.sink.nested(|| Step::MapKey(index), |sink| key.serialize(Node(sink)))?;
        }
        self.key = text;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        let index = self.count as usize;
        self.count = self.count.checked_add(1).ok_or_else(|| Fault::new("too many entries"))?;
        match self.key.take() {
            Some(key) => self.sink.property(&key, value),
            None => {
                self.sink.key.clear();
                self.sink.nested(|| Step::Member(index), |sink| value.serialize(Node(sink)))
            }
        }
    }

    fn end(self) -> Result<(), Fault> {
        match self.shape {
            Shape::Map(place) => self.sink.writer.close(place, self.count),
            Shape::Unknown => {
                self.sink.writer.object();
                self.sink.writer.end_object();
            }
            Shape::Object => self.sink.writer.end_object(),
        }
        Ok(())
    }
}

/// The text of a key if it is one, found by writing the key on its own.
fn text_of<T: Serialize + ?Sized>(key: &T) -> Result<Option<String>, Fault> {
    let message = to_message(key)?;
    let event = message.value.reader().event()?;
    Ok(match event {
        Event::String(text) => Some(text.to_string_lossy()),
        _ => None,
    })
}

/// A value inside another type is kept as it is; any other serializer sees its plain data.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(MESSAGE, &Payload(self))
    }
}

struct Payload<'v>(&'v Value);

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if host_object::answer(|| Cargo::Value(self.0.clone())) {
            serializer.serialize_unit()
        } else {
            super::transcode::transcode(self.0, serializer)
        }
    }
}
