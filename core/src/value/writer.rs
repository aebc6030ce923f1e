//! A writer of messages, node after node.
//!
//! In: calls in pre-order. Out: a [`Value`]. The caller keeps the order that the format requires (an object's key
//! before its value, [`Writer::end_object`] after the last). Nothing here recurses, so depth costs only the caller's
//! own bookkeeping.

use std::collections::HashMap;

use super::{
    BLOB_OVERHEAD, ErrorClass, Event, Kinds, MOST_KEY_UNITS, Str, Value, ViewKind, key,
    objects::Objects, tag, weight,
};

/// A finished message keeps at most this much unused room.
const SPARE_BYTES: usize = 4 << 10;

/// Bytes kept free for a length that is given later: the longest varint of 32 bits.
const COUNT_BYTES: usize = 5;

/// Builds one message. Appends to two buffers and allocates for nothing else but new keys.
#[derive(Debug, Default)]
pub struct Writer {
    nodes: Vec<u8>,
    blobs: Vec<Vec<u8>>,
    keys: HashMap<Box<[u8]>, u32>,
    key_count: u32,
    objects: u32,
    blob_bytes: usize,
    weight: usize,
    /// The weights of properties.
    properties: Objects,
    /// How many nodes name a blob.
    naming: usize,
    /// The kinds that some host may be unable to hold.
    kinds: Kinds,
    /// Whether there is a text that a host may hash by its length.
    long_text: bool,
}

impl Writer {
    /// A writer of a new, empty message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes written so far: nodes and blobs.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.nodes.len() + self.blob_bytes
    }

    /// Bytes that the message holds so far, plus the weight of its nodes for its reader.
    pub(crate) fn held_bytes(&self) -> usize {
        self.nodes.capacity() + self.blob_bytes + self.blobs.len() * BLOB_OVERHEAD + self.weight
    }

    /// The weight of the nodes written so far for their reader, beyond their bytes.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    /// The index that the next object will have, for a later [`Writer::reference`].
    #[must_use]
    pub fn next_object(&self) -> u32 {
        self.objects
    }

    /// The finished message.
    #[must_use]
    pub fn finish(mut self) -> Value {
        if self.nodes.capacity() - self.nodes.len() > SPARE_BYTES {
            self.nodes.shrink_to_fit();
        }
        // A host that cannot share makes two copies of a blob that two nodes name.
        if self.naming > self.blobs.len() {
            self.kinds |= Kinds::SHARED_BYTES;
        }
        let kinds = self.kinds.beside_long_text(self.long_text);
        Value { kinds, ..Value::from_parts(self.nodes, self.blobs).weighing(self.weight) }
    }

    /// `undefined`.
    pub fn undefined(&mut self) {
        self.leaf(tag::UNDEFINED, &Event::Undefined);
    }

    /// `null`.
    pub fn null(&mut self) {
        self.leaf(tag::NULL, &Event::Null);
    }

    /// A boolean.
    pub fn bool(&mut self, value: bool) {
        self.leaf(if value { tag::TRUE } else { tag::FALSE }, &Event::Bool(value));
    }

    /// A number that is a 32-bit integer.
    pub fn int(&mut self, value: i32) {
        self.leaf(tag::INT, &Event::Int(value));
        self.varint(u64::from(((value << 1) ^ (value >> 31)).cast_unsigned()));
    }

    /// Any other number; `-0` and NaN are kept.
    pub fn double(&mut self, value: f64) {
        self.leaf(tag::DOUBLE, &Event::Double(value));
        self.nodes.extend_from_slice(&value.to_le_bytes());
    }

    /// A number, in the shorter of its two forms.
    pub fn number(&mut self, value: f64) {
        #[expect(clippy::cast_possible_truncation, reason = "compared with the original below")]
        let int = value as i32;
        if f64::from(int).to_bits() == value.to_bits() {
            self.int(int);
        } else {
            self.double(value);
        }
    }

    /// A bigint from its sign and the bytes of its magnitude, least significant first.
    pub fn bigint(&mut self, negative: bool, magnitude: &[u8]) {
        let used = magnitude.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        self.leaf(tag::BIGINT, &Event::BigInt { negative, magnitude });
        self.nodes.push(u8::from(negative && used > 0));
        self.varint(used as u64);
        self.nodes.extend_from_slice(&magnitude[..used]);
    }

    /// A string.
    pub fn string(&mut self, text: &str) {
        self.long_text |= text.len() > MOST_KEY_UNITS;
        self.leaf(tag::STRING, &Event::String(Str::Utf8(text)));
        self.varint(text.len() as u64);
        self.nodes.extend_from_slice(text.as_bytes());
    }

    /// A string given as UTF-16, which may hold lone surrogates.
    pub fn string16(&mut self, units: &[u16]) {
        if let Ok(text) = String::from_utf16(units) {
            return self.string(&text);
        }
        self.long_text |= units.len() > MOST_KEY_UNITS;
        let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        self.leaf(tag::STRING16, &Event::String(Str::Utf16(&bytes)));
        self.varint(units.len() as u64);
        self.nodes.extend_from_slice(&bytes);
    }

    /// A missing element of an array.
    pub fn hole(&mut self) {
        self.kinds |= Kinds::HOLES;
        self.leaf(tag::HOLE, &Event::Hole);
    }

    /// An object that this message already holds.
    pub fn reference(&mut self, object: u32) {
        self.leaf(tag::REF, &Event::Ref(object));
        self.varint(u64::from(object));
    }

    /// Starts a plain object: keys and values follow, then [`Writer::end_object`].
    pub fn object(&mut self) {
        self.tagged(tag::OBJECT, &Event::Object);
        self.properties.open();
    }

    /// The key of the next value of an object.
    pub fn key(&mut self, key: &str) {
        if !self.repeated_key(key.as_bytes()) {
            let number = self.new_key(key);
            self.keys.insert(key.as_bytes().into(), number);
        }
    }

    /// A key given as UTF-16, which may hold lone surrogates.
    pub fn key16(&mut self, units: &[u16]) {
        if let Ok(key) = String::from_utf16(units) {
            return self.key(&key);
        }
        // A first byte that UTF-8 never has keeps it apart from every UTF-8 key.
        let name: Vec<u8> =
            std::iter::once(0xFF).chain(units.iter().flat_map(|unit| unit.to_le_bytes())).collect();
        if !self.repeated_key(&name) {
            let number = self.new_key16(units);
            self.keys.insert(name.into(), number);
        }
    }

    /// A key that a caller with a table of its own has written before, by its number.
    pub fn known_key(&mut self, number: u32) {
        self.weight += self.properties.known_key(number);
        self.varint(u64::from(number) + key::KNOWN);
    }

    /// A key that this message does not hold yet; returns its number. A caller that uses this
    /// keeps the table of keys itself and must not mix it with [`Writer::key`].
    pub fn new_key(&mut self, key: &str) -> u32 {
        self.weight += self.properties.new_key(self.key_count, Str::Utf8(key));
        self.varint(key::NEW);
        self.varint(key.len() as u64);
        self.nodes.extend_from_slice(key.as_bytes());
        self.count_key()
    }

    /// As [`Writer::new_key`], for a key with a lone surrogate.
    pub fn new_key16(&mut self, units: &[u16]) -> u32 {
        let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        self.weight += self.properties.new_key(self.key_count, Str::Utf16(&bytes));
        self.varint(key::NEW16);
        self.varint(units.len() as u64);
        self.nodes.extend_from_slice(&bytes);
        self.count_key()
    }

    /// Ends the innermost object.
    pub fn end_object(&mut self) {
        self.properties.close();
        self.varint(key::END);
    }

    /// Starts an array of `length` elements, all of which follow.
    pub fn array(&mut self, length: u32) {
        self.tagged(tag::ARRAY, &Event::Array(length));
        self.varint(u64::from(length));
    }

    /// Starts an array of which only some elements follow, each after [`Writer::sparse_index`].
    pub fn sparse_array(&mut self, length: u32) {
        self.kinds |= Kinds::HOLES;
        self.tagged(tag::SPARSE_ARRAY, &Event::SparseArray(length));
        self.varint(u64::from(length));
    }

    /// The index of the next element of a sparse array.
    pub fn sparse_index(&mut self, index: u32) {
        self.weight += weight::SPARSE_ELEMENT;
        self.varint(u64::from(index) + 1);
    }

    /// Ends the innermost sparse array.
    pub fn end_sparse_array(&mut self) {
        self.varint(0);
    }

    /// Starts an array whose length is given later; returns its place, for [`Writer::close_array`].
    pub fn open_array(&mut self) -> usize {
        // Its weight is that of an array with elements.
        self.tagged(tag::ARRAY, &Event::Array(1));
        self.open_count()
    }

    /// Sets the length of the array that was opened at that place, after all its elements.
    pub fn close_array(&mut self, place: usize, length: u32) {
        self.close(place, length);
    }

    /// Starts a Map whose number of entries is given later, as [`Writer::open_array`].
    pub(super) fn open_map(&mut self) -> usize {
        self.kinds |= Kinds::COLLECTIONS | Kinds::LARGE_COLLECTIONS;
        self.tagged(tag::MAP, &Event::Map(0));
        self.open_count()
    }

    /// Sets the length of the array or Map that was opened at that place.
    pub(super) fn close(&mut self, place: usize, length: u32) {
        for (at, byte) in self.nodes.iter_mut().skip(place).take(COUNT_BYTES).enumerate() {
            let bits = ((length >> (7 * at)) & 0x7F) as u8;
            *byte = if at + 1 < COUNT_BYTES { bits | 0x80 } else { bits };
        }
    }

    fn open_count(&mut self) -> usize {
        self.nodes.extend_from_slice(&[0; COUNT_BYTES]);
        self.nodes.len() - COUNT_BYTES
    }

    /// Starts a Map of `entries` entries: key, value, key, value follow.
    pub fn map(&mut self, entries: u32) {
        self.map_keyed(entries, true);
    }

    /// As [`Writer::map`]; `numbers` says whether there are numbers among the keys.
    pub(crate) fn map_keyed(&mut self, entries: u32, numbers: bool) {
        self.kinds |= Kinds::of_collection(entries, numbers);
        self.tagged(tag::MAP, &Event::Map(entries));
        self.varint(u64::from(entries));
    }

    /// Starts a Set of `members` members, which follow.
    pub fn set(&mut self, members: u32) {
        self.set_of(members, true);
    }

    /// As [`Writer::set`]; `numbers` says whether there are numbers among the members.
    pub(crate) fn set_of(&mut self, members: u32, numbers: bool) {
        self.kinds |= Kinds::of_collection(members, numbers);
        self.tagged(tag::SET, &Event::Set(members));
        self.varint(u64::from(members));
    }

    /// A Date by its epoch milliseconds, NaN when invalid.
    pub fn date(&mut self, epoch_ms: f64) {
        self.kinds |= Kinds::DATES;
        self.tagged(tag::DATE, &Event::Date(epoch_ms));
        self.nodes.extend_from_slice(&epoch_ms.to_le_bytes());
    }

    /// Starts a RegExp: its source and its flags follow as two strings.
    pub fn regexp(&mut self) {
        self.kinds |= Kinds::REGEXPS;
        self.tagged(tag::REGEXP, &Event::RegExp);
    }

    /// Starts an Error: name, message, stack (or undefined) and code (or undefined) follow.
    pub fn error(&mut self, class: ErrorClass) {
        self.tagged(tag::ERROR, &Event::Error(class));
        self.nodes.push(class as u8);
    }

    /// Adds the bytes of a buffer and returns their number; a node must name it.
    pub fn blob(&mut self, bytes: Vec<u8>) -> u32 {
        self.blob_bytes += bytes.len();
        self.blobs.push(bytes);
        u32::try_from(self.blobs.len() - 1).unwrap_or(u32::MAX)
    }

    /// How many bytes a blob has.
    #[must_use]
    pub fn blob_bytes(&self, blob: u32) -> usize {
        self.blobs.get(blob as usize).map_or(0, Vec::len)
    }

    /// An ArrayBuffer over a blob.
    pub fn buffer(&mut self, blob: u32) {
        self.naming += 1;
        self.tagged(tag::BUFFER, &Event::Buffer(blob));
        self.nodes.extend_from_slice(&blob.to_le_bytes());
    }

    /// A view over a blob; returns its place, for [`Writer::move_view`].
    pub fn view(&mut self, kind: ViewKind, blob: u32, byte_offset: u64, length: u64) -> usize {
        self.naming += 1;
        if kind == ViewKind::Float16Array {
            self.kinds |= Kinds::HALF_FLOATS;
        }
        self.tagged(tag::VIEW, &Event::View { kind, blob, byte_offset, length });
        let place = self.nodes.len();
        self.nodes.push(kind as u8);
        self.nodes.extend_from_slice(&blob.to_le_bytes());
        self.nodes.extend_from_slice(&byte_offset.to_le_bytes());
        self.nodes.extend_from_slice(&length.to_le_bytes());
        place
    }

    /// Puts an earlier view onto another blob, because its buffer turned out to be in the message
    /// too, and gives up the view's own bytes.
    pub fn move_view(&mut self, place: usize, blob: u32, byte_offset: u64) {
        self.kinds |= Kinds::SHARED_BYTES;
        let own =
            u32::from_le_bytes(self.nodes[place + 1..place + 5].try_into().unwrap_or_default());
        if let Some(bytes) = self.blobs.get_mut(own as usize) {
            self.blob_bytes -= bytes.len();
            *bytes = Vec::new();
        }
        self.nodes[place + 1..place + 5].copy_from_slice(&blob.to_le_bytes());
        self.nodes[place + 5..place + 13].copy_from_slice(&byte_offset.to_le_bytes());
    }

    /// A function of the host, by its number; its name follows as a string.
    pub fn host_function(&mut self, number: u32) {
        self.numbered(tag::HOST_FUNCTION, &Event::HostFunction(number), number);
    }

    /// A function of the sandbox, by its number; its name follows as a string.
    pub fn sandbox_function(&mut self, number: u32) {
        self.numbered(tag::SANDBOX_FUNCTION, &Event::SandboxFunction(number), number);
    }

    /// A promise of the host, by its number.
    pub fn host_promise(&mut self, number: u32) {
        self.numbered(tag::HOST_PROMISE, &Event::HostPromise(number), number);
    }

    /// A promise of the sandbox, by its number.
    pub fn sandbox_promise(&mut self, number: u32) {
        self.numbered(tag::SANDBOX_PROMISE, &Event::SandboxPromise(number), number);
    }

    fn numbered(&mut self, tag: u8, event: &Event<'_>, number: u32) {
        self.tagged(tag, event);
        self.nodes.extend_from_slice(&number.to_le_bytes());
    }

    fn tagged(&mut self, tag: u8, event: &Event<'_>) {
        self.leaf(tag, event);
        self.objects += 1;
    }

    fn leaf(&mut self, tag: u8, event: &Event<'_>) {
        self.nodes.push(tag);
        self.weight += weight::of(event);
    }

    fn repeated_key(&mut self, name: &[u8]) -> bool {
        let known = self.keys.get(name).copied();
        if let Some(number) = known {
            self.known_key(number);
        }
        known.is_some()
    }

    fn count_key(&mut self) -> u32 {
        self.key_count += 1;
        self.key_count - 1
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            #[expect(clippy::cast_possible_truncation, reason = "the low seven bits")]
            self.nodes.push(value as u8 | 0x80);
            value >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 0x80")]
        self.nodes.push(value as u8);
    }
}
