//! Copies of messages, node after node, into others.
//!
//! In: a message. Out: its nodes at the end of a writer, identity kept, with secrets taken out of all texts, numbers and
//! buffers if there is a redactor. Names that become equal by that are numbered. The copy recurses nowhere. Buffers are
//! moved.

mod names;

use std::{borrow::Cow, sync::Arc};

use isolane::{
    Value,
    value::{Event, MOST_KEY_UNITS, Malformed, Reader, Str, Writer},
};

use self::names::Names;
use crate::{
    json_form::json_form,
    redaction::{Redaction, Redactor},
    room::FixedRoom,
    wtf8,
};

/// The message without secrets; `None` if it has none. A message that breaks the format becomes `undefined`.
pub(crate) fn redacted(message: &Value, redactor: &Arc<Redactor>) -> Option<Value> {
    Redacting::new(redactor, &|| true).message(message)
}

/// The elements of an array, each as a message; none if it is no array. They share nothing.
pub(crate) fn elements(array: Value) -> Vec<Value> {
    let (nodes, blobs) = array.into_parts();
    let mut copy = Copy::new(&nodes, blobs);
    let mut elements = Vec::new();
    for _ in 0..copy.enter().unwrap_or_default() {
        let mut writer = Writer::new();
        if copy.node(&mut writer).is_err() {
            break;
        }
        elements.push(writer.finish());
    }
    elements
}

/// A redaction that nobody may need any more before it is done.
#[derive(Clone, Copy)]
pub(crate) struct Redacting<'r> {
    redactor: &'r Arc<Redactor>,
    /// The bytes to which texts may have been cut.
    most_bytes: usize,
    is_wanted: &'r dyn Fn() -> bool,
}

/// So many bytes of one text are read between two looks whether it is wanted.
const BYTES_A_LOOK: usize = 1 << 20;

/// So many nodes, which are many bytes at once.
const NODES_A_LOOK: u32 = 1 << 12;

impl<'r> Redacting<'r> {
    pub(crate) fn new(redactor: &'r Arc<Redactor>, is_wanted: &'r dyn Fn() -> bool) -> Self {
        Self { redactor, most_bytes: usize::MAX, is_wanted }
    }

    /// The same for texts that may have been cut to that many bytes, however long it takes: they are short.
    pub(crate) fn of_cut(self, most_bytes: usize) -> Self {
        Self { most_bytes, is_wanted: &|| true, ..self }
    }

    /// Whether there is nothing to be found.
    pub(crate) fn is_idle(&self) -> bool {
        self.redactor.is_empty()
    }

    /// The message without secrets; `None` if it has none. A message that breaks the format, and one that is not wanted
    /// any more, becomes `undefined`.
    pub(crate) fn message(&self, message: &Value) -> Option<Value> {
        if self.is_idle() {
            return None;
        }
        let (nodes, blobs) = message.clone().into_parts();
        let mut writer = Writer::new();
        let mut copy = Copy::new(&nodes, blobs);
        copy.redacting = Some(*self);
        copy.is_wanted = self.is_wanted;
        match copy.node(&mut writer) {
            Ok(()) if !copy.is_changed => None,
            Ok(()) if copy.has_new_names => {
                Some(self.numbered(writer.finish()).unwrap_or_else(|Malformed| Value::undefined()))
            }
            Ok(()) => Some(writer.finish()),
            Err(Malformed) => Some(Value::undefined()),
        }
    }

    /// The message with other names for those that an object or a Map has twice.
    fn numbered(&self, message: Value) -> Result<Value, Malformed> {
        let (nodes, blobs) = message.into_parts();
        let mut writer = Writer::new();
        let mut copy = Copy::new(&nodes, blobs);
        copy.numbers = true;
        copy.is_wanted = self.is_wanted;
        copy.node(&mut writer)?;
        Ok(writer.finish())
    }

    /// The text without secrets, which is borrowed if it has none. One that is not wanted any more is empty.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if text.len() / 2 <= self.most_bytes && self.most_bytes != usize::MAX {
            return self.redactor.cut_text(text, self.most_bytes);
        }
        if text.len() <= BYTES_A_LOOK {
            return self.redactor.text(text);
        }
        let redacted = self.bytes(text.as_bytes());
        if redacted == text.as_bytes() {
            return Cow::Borrowed(text);
        }
        // Values and their forms begin and end between characters.
        Cow::Owned(String::from_utf8_lossy(&redacted).into_owned())
    }

    /// The bytes without secrets. Those that are not wanted any more are none.
    fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = Redaction::new(Arc::clone(self.redactor));
        let mut redacted = Vec::with_capacity(bytes.len());
        for part in bytes.chunks(BYTES_A_LOOK) {
            if !(self.is_wanted)() {
                return Vec::new();
            }
            stream.push(part, &mut redacted);
        }
        stream.finish(&mut redacted);
        redacted
    }
}

/// A container whose end has not been copied.
enum Frame {
    Object(Option<Names>),
    Counted(u64),
    /// Of a Map: how many keys and values are left.
    Pairs(u64, Option<Names>),
    Sparse,
}

/// The copy of a message under way.
pub(crate) struct Copy<'m> {
    reader: Reader<'m>,
    blobs: Vec<Vec<u8>>,
    /// The numbers of objects in the copy, by those in the message.
    objects: Vec<u32>,
    /// The numbers of buffers in the copy.
    copied_blobs: Vec<Option<u32>>,
    redacting: Option<Redacting<'m>>,
    is_wanted: &'m dyn Fn() -> bool,
    /// Whether a secret was taken out.
    is_changed: bool,
    /// Whether one was taken out of a name.
    has_new_names: bool,
    /// Whether names that come twice are numbered.
    numbers: bool,
}

impl<'m> Copy<'m> {
    /// A copy of the message of these nodes and blobs.
    pub(crate) fn new(nodes: &'m [u8], blobs: Vec<Vec<u8>>) -> Self {
        Self {
            reader: Reader::new(nodes),
            copied_blobs: vec![None; blobs.len()],
            blobs,
            objects: Vec::new(),
            redacting: None,
            is_wanted: &|| true,
            is_changed: false,
            has_new_names: false,
            numbers: false,
        }
    }

    /// Enters an array, which is not copied itself; its length.
    pub(crate) fn enter(&mut self) -> Result<u32, Malformed> {
        let Event::Array(length) = self.reader.event()? else { return Err(Malformed) };
        self.objects.push(0);
        Ok(length)
    }

    /// Whether the next node is a plain object. Nothing can be copied afterwards.
    pub(crate) fn next_is_object(&mut self) -> Result<bool, Malformed> {
        Ok(matches!(self.reader.event()?, Event::Object))
    }

    /// Copies the next node, with all nodes inside.
    pub(crate) fn node(&mut self, writer: &mut Writer) -> Result<(), Malformed> {
        let mut frames = vec![Frame::Counted(1)];
        let mut nodes = 0_u32;
        while let Some(frame) = frames.last_mut() {
            nodes = nodes.wrapping_add(1);
            if nodes.is_multiple_of(NODES_A_LOOK) && !(self.is_wanted)() {
                return Err(Malformed);
            }
            let more = match frame {
                Frame::Counted(0) | Frame::Pairs(0, _) => false,
                Frame::Counted(left) => {
                    *left -= 1;
                    true
                }
                Frame::Pairs(left, names) => {
                    *left -= 1;
                    // Those that are left are odd in number after a key.
                    let is_key = !left.is_multiple_of(2);
                    let inner = match (self.reader.event()?, names) {
                        (Event::String(text), Some(names)) if is_key => {
                            names.write_text(text, writer);
                            None
                        }
                        (event, _) if is_key => self.named(|copy| copy.one(event, writer))?,
                        (event, _) => self.one(event, writer)?,
                    };
                    frames.extend(inner);
                    continue;
                }
                Frame::Object(names) => match self.reader.key()? {
                    Some(key) => {
                        match names {
                            Some(names) => names.write_key(key.text, writer),
                            None => self.named(|copy| copy.key(key.text, writer)),
                        }
                        true
                    }
                    None => {
                        writer.end_object();
                        false
                    }
                },
                Frame::Sparse => match self.reader.sparse_index()? {
                    Some(index) => {
                        writer.sparse_index(index);
                        true
                    }
                    None => {
                        writer.end_sparse_array();
                        false
                    }
                },
            };
            if more {
                let event = self.reader.event()?;
                frames.extend(self.one(event, writer)?);
            } else {
                frames.pop();
            }
        }
        Ok(())
    }

    /// The names of a container that is entered, if they are numbered.
    fn names(&self) -> Option<Names> {
        self.numbers.then(Names::default)
    }

    /// Copies a name, and notes whether a secret was taken out of it.
    fn named<T>(&mut self, copy: impl FnOnce(&mut Self) -> T) -> T {
        let was_changed = std::mem::take(&mut self.is_changed);
        let copied = copy(self);
        self.has_new_names |= self.is_changed;
        self.is_changed |= was_changed;
        copied
    }

    /// Copies one node; returns the frame of the nodes inside.
    fn one(&mut self, event: Event<'m>, writer: &mut Writer) -> Result<Option<Frame>, Malformed> {
        if event.is_object() {
            self.objects.push(writer.next_object());
        }
        match event {
            Event::Undefined => writer.undefined(),
            Event::Null => writer.null(),
            Event::Bool(value) => writer.bool(value),
            Event::Int(value) => self.number(writer, |out| out.int(value)),
            Event::Double(value) => self.number(writer, |out| out.double(value)),
            Event::BigInt { negative, magnitude } => {
                self.number(writer, |out| out.bigint(negative, magnitude));
            }
            Event::String(text) => self.text(text, writer),
            Event::Hole => writer.hole(),
            Event::Date(time) => writer.date(time),
            Event::Ref(object) => {
                let known = self.objects.get(object as usize).copied();
                writer.reference(known.ok_or(Malformed)?);
            }
            Event::Object => {
                writer.object();
                return Ok(Some(Frame::Object(self.names())));
            }
            Event::SparseArray(length) => {
                writer.sparse_array(length);
                return Ok(Some(Frame::Sparse));
            }
            Event::Array(length) => {
                writer.array(length);
                return Ok(Some(Frame::Counted(length.into())));
            }
            Event::Map(entries) => {
                writer.map(entries);
                return Ok(Some(Frame::Pairs(2 * u64::from(entries), self.names())));
            }
            Event::Set(members) => {
                writer.set(members);
                return Ok(Some(Frame::Counted(members.into())));
            }
            Event::RegExp => {
                writer.regexp();
                return Ok(Some(Frame::Counted(2)));
            }
            Event::Error(class) => {
                writer.error(class);
                return Ok(Some(Frame::Counted(4)));
            }
            Event::Buffer(blob) => {
                let blob = self.blob(blob, writer)?;
                writer.buffer(blob);
            }
            Event::View { kind, blob, byte_offset, length } => {
                let blob = self.blob(blob, writer)?;
                writer.view(kind, blob, byte_offset, length);
            }
            Event::HostFunction(number) => {
                writer.host_function(number);
                return Ok(Some(Frame::Counted(1)));
            }
            Event::SandboxFunction(number) => {
                writer.sandbox_function(number);
                return Ok(Some(Frame::Counted(1)));
            }
            Event::HostPromise(number) => writer.host_promise(number),
            Event::SandboxPromise(number) => writer.sandbox_promise(number),
        }
        Ok(None)
    }

    /// A number whose digits have a secret becomes a text.
    fn number(&mut self, writer: &mut Writer, write: impl Fn(&mut Writer)) {
        let Some(Redacting { redactor, .. }) =
            self.redacting.filter(|redacting| redacting.redactor.has_numbers())
        else {
            return write(writer);
        };
        let mut alone = Writer::new();
        write(&mut alone);
        // The redaction of a result belongs to no run.
        let text = json_form(&alone.finish(), "", &mut FixedRoom::new(usize::MAX));
        let text = text.unwrap_or_default();
        match redactor.text(text.trim_matches('"')) {
            Cow::Borrowed(_) => write(writer),
            Cow::Owned(redacted) => {
                self.is_changed = true;
                writer.string(&redacted);
            }
        }
    }

    fn text(&mut self, text: Str<'_>, writer: &mut Writer) {
        match (text, self.redacting) {
            (Str::Utf8(text), None) => writer.string(text),
            (Str::Utf8(text), Some(redacting)) => {
                let redacted = redacting.text(text);
                self.is_changed |= matches!(redacted, Cow::Owned(_));
                writer.string(&redacted);
            }
            (Str::Utf16(_), None) => writer.string16(&text.units()),
            (Str::Utf16(units), Some(redacting)) => {
                let units = self.units(units, redacting);
                writer.string16(&units);
            }
        }
    }

    fn key(&mut self, key: Str<'_>, writer: &mut Writer) {
        let Some(redacting) = self.redacting else {
            return match key {
                Str::Utf8(key) => writer.key(key),
                Str::Utf16(_) => writer.key16(&key.units()),
            };
        };
        // The longest key of a log may be the beginning of a longer one.
        if redacting.most_bytes != usize::MAX && is_longest_key(key) {
            self.is_changed = true;
            return writer.key(&redacting.redactor.beginning(&key.to_string_lossy()));
        }
        match key {
            Str::Utf8(key) => {
                let redacted = redacting.text(key);
                self.is_changed |= matches!(redacted, Cow::Owned(_));
                writer.key(&redacted);
            }
            Str::Utf16(units) => {
                let units = self.units(units, redacting);
                writer.key16(&units);
            }
        }
    }

    /// The units of a text with lone surrogates, without secrets.
    fn units(&mut self, units: &[u8], redacting: Redacting<'_>) -> Vec<u16> {
        let bytes = wtf8::from_utf16(units);
        let redacted = redacting.bytes(&bytes);
        self.is_changed |= redacted != bytes;
        wtf8::to_utf16(&redacted)
    }

    fn blob(&mut self, blob: u32, writer: &mut Writer) -> Result<u32, Malformed> {
        let place = blob as usize;
        let known = self.copied_blobs.get_mut(place).ok_or(Malformed)?;
        if let Some(known) = *known {
            return Ok(known);
        }
        let mut bytes = self.blobs.get_mut(place).map(std::mem::take).ok_or(Malformed)?;
        if let Some(redacting) = self.redacting {
            let mut redacted = redacting.bytes(&bytes);
            if redacted != bytes {
                self.is_changed = true;
                // Views have their places in it.
                redacted.resize(bytes.len(), b' ');
                bytes = redacted;
            }
        }
        let copied = writer.blob(bytes);
        *known = Some(copied);
        Ok(copied)
    }
}

/// Whether a key is as long as one that was cut.
fn is_longest_key(key: Str<'_>) -> bool {
    match key {
        Str::Utf8(text) => {
            text.len() >= MOST_KEY_UNITS && text.encode_utf16().count() >= MOST_KEY_UNITS
        }
        Str::Utf16(units) => units.len() / 2 >= MOST_KEY_UNITS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Arc<Redactor> {
        Arc::new(Redactor::new([("the secret value", "[secret KEY]".to_owned())]))
    }

    #[test]
    fn a_message_without_secrets_stays() {
        let message = Value::serialize(&("text", 1, [1.5, 2.5])).expect("plain data");
        assert_eq!(redacted(&message, &redactor()), None);
    }

    #[test]
    fn numbers_that_are_a_secret_become_texts() {
        let values = [("1234567890", "[secret PIN]".to_owned())];
        let redactor = Arc::new(Redactor::new(values));
        let mut writer = Writer::new();
        writer.array(6);
        writer.int(1_234_567_890);
        writer.double(-1_234_567_890.5);
        writer.double(12_345_678_901_234.0);
        writer.bigint(false, &1_234_567_890_u64.to_le_bytes());
        writer.bigint(true, &(1_234_567_890 * 10_u128.pow(20)).to_le_bytes());
        writer.int(123_456_789);
        let redacted = redacted(&writer.finish(), &redactor).expect("it has secrets");
        let mut reader = redacted.reader();
        assert_eq!(reader.event(), Ok(Event::Array(6)));
        let pin = "[secret PIN]";
        let (half, more) = (format!("-{pin}.5"), format!("{pin}1234"));
        let large = format!("-{pin}{}", "0".repeat(20));
        for text in [pin, &half, &more, pin, &large] {
            assert_eq!(reader.event(), Ok(Event::String(Str::Utf8(text))));
        }
        assert_eq!(reader.event(), Ok(Event::Int(123_456_789)));
    }

    #[test]
    fn names_that_become_equal_are_numbered() {
        let written = |write: &dyn Fn(&mut Writer, &str), units: &dyn Fn(&mut Writer, &[u16])| {
            let mut writer = Writer::new();
            writer.array(2);
            // Beside the names of one object, those of another are new.
            for is_map in [false, true] {
                if is_map {
                    writer.map(6);
                } else {
                    writer.object();
                }
                let names = [
                    "[secret KEY]",
                    "the secret value",
                    "[secret KEY]_3",
                    "the%20secret value",
                    "[secret KEY]_2",
                ];
                for (number, name) in (0..).zip(names) {
                    if is_map {
                        writer.string(name);
                    } else {
                        write(&mut writer, name);
                    }
                    writer.int(number);
                }
                let lone: Vec<u16> = "the secret value".encode_utf16().chain([0xD800]).collect();
                if is_map {
                    writer.string16(&lone);
                } else {
                    units(&mut writer, &lone);
                }
                writer.int(5);
                if !is_map {
                    writer.end_object();
                }
            }
            writer.finish()
        };
        let message = written(&|out, name| out.key(name), &|out, units| out.key16(units));
        let redacted = redacted(&message, &redactor()).expect("it has secrets");
        let expected = [
            "[secret KEY]",
            "[secret KEY]_2",
            "[secret KEY]_3",
            "[secret KEY]_4",
            "[secret KEY]_2_2",
        ];
        let mut reader = redacted.reader();
        assert_eq!(reader.event(), Ok(Event::Array(2)));
        assert_eq!(reader.event(), Ok(Event::Object));
        for (number, name) in (0..).zip(expected) {
            assert_eq!(reader.key().expect("a key").expect("a key").text, Str::Utf8(name));
            assert_eq!(reader.event(), Ok(Event::Int(number)));
        }
        let lone: Vec<u16> = "[secret KEY]".encode_utf16().chain([0xD800]).collect();
        assert_eq!(reader.key().expect("a key").expect("a key").text.units(), lone);
        assert_eq!(reader.event(), Ok(Event::Int(5)));
        assert_eq!(reader.key(), Ok(None));
        assert_eq!(reader.event(), Ok(Event::Map(6)));
        for (number, name) in (0..).zip(expected) {
            assert_eq!(reader.event(), Ok(Event::String(Str::Utf8(name))));
            assert_eq!(reader.event(), Ok(Event::Int(number)));
        }
    }

    #[test]
    fn many_names_that_become_equal_take_no_longer_than_others() {
        let mut writer = Writer::new();
        writer.object();
        for bits in 0..1_u32 << 14 {
            let escaped = |(at, c): (usize, char)| {
                if bits >> at & 1 == 0 { c.to_string() } else { format!("%{:02x}", c as u32) }
            };
            writer.key(&"the secret value".chars().enumerate().map(escaped).collect::<String>());
            writer.null();
        }
        writer.end_object();
        let redacted = redacted(&writer.finish(), &redactor()).expect("it has secrets");
        let mut reader = redacted.reader();
        assert_eq!(reader.event(), Ok(Event::Object));
        let mut names = std::collections::HashSet::new();
        while let Some(key) = reader.key().expect("a key") {
            assert!(names.insert(key.text.to_string_lossy()), "{}", names.len());
            assert_eq!(reader.event(), Ok(Event::Null));
        }
        assert_eq!(names.len(), 1 << 14);
    }

    #[test]
    fn texts_keys_errors_and_buffers_lose_their_secrets() {
        let mut writer = Writer::new();
        writer.array(6);
        writer.object();
        writer.key("a the secret value b");
        writer.string("x the secret value");
        writer.end_object();
        writer.reference(1);
        writer.error(isolane::value::ErrorClass::TypeError);
        for text in ["TypeError", "no the secret value", "    at the secret value"] {
            writer.string(text);
        }
        writer.undefined();
        let blob = writer.blob(b"<the secret value>".to_vec());
        writer.view(isolane::value::ViewKind::Uint8Array, blob, 1, 4);
        let mut units = vec![0xD800];
        units.extend("the secret value".encode_utf16());
        writer.string16(&units);
        writer.int(7);
        let redacted = redacted(&writer.finish(), &redactor()).expect("it has secrets");
        let mut reader = redacted.reader();
        assert_eq!(reader.event(), Ok(Event::Array(6)));
        assert_eq!(reader.event(), Ok(Event::Object));
        let key = reader.key().expect("a key").expect("a key");
        assert_eq!(key.text, Str::Utf8("a [secret KEY] b"));
        assert_eq!(reader.event(), Ok(Event::String(Str::Utf8("x [secret KEY]"))));
        assert_eq!(reader.key(), Ok(None));
        assert_eq!(reader.event(), Ok(Event::Ref(1)));
        assert!(matches!(reader.event(), Ok(Event::Error(_))));
        for text in ["TypeError", "no [secret KEY]", "    at [secret KEY]"] {
            assert_eq!(reader.event(), Ok(Event::String(Str::Utf8(text))));
        }
        assert_eq!(reader.event(), Ok(Event::Undefined));
        assert!(matches!(reader.event(), Ok(Event::View { byte_offset: 1, length: 4, .. })));
        assert_eq!(redacted.blobs(), [b"<[secret KEY]>    ".to_vec()]);
        let Ok(Event::String(text)) = reader.event() else { panic!("a text") };
        let mut expected = vec![0xD800];
        expected.extend("[secret KEY]".encode_utf16());
        assert_eq!(text.units(), expected);
        assert_eq!(reader.event(), Ok(Event::Int(7)));
    }
}
