//! Values made of bytes, in messages that a host might write.
//!
//! In: the fuzzer's choices. Out: one message that structured clone does not change: keys in the order of objects, no
//! duplicate entries of a Map or a Set, no values of one side only.

use arbitrary::Unstructured;
use isolane::value::{ErrorClass, ViewKind, Writer};

const KEYS: &[&str] = &[
    "a",
    "b",
    "then",
    "__proto__",
    "constructor",
    "toJSON",
    "length",
    "é",
    "😀",
    "",
    "-1",
    "01",
    " ",
];

const TEXTS: &[&str] =
    &["", "a", "é", "😀", "\0", "__proto__", "a long text, to be more than a word of it"];

const NUMBERS: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    255.0,
    2_147_483_647.0,
    -2_147_483_648.0,
    4_294_967_296.0,
    1e300,
    f64::MIN_POSITIVE,
    f64::MAX,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

const DATES: &[f64] = &[0.0, 1.0, -1.0, 8.64e15, -8.64e15, f64::NAN];

const CLASSES: &[ErrorClass] = &[
    ErrorClass::Error,
    ErrorClass::RangeError,
    ErrorClass::ReferenceError,
    ErrorClass::SyntaxError,
    ErrorClass::TypeError,
    ErrorClass::URIError,
    ErrorClass::EvalError,
];

const PATTERNS: &[(&str, &str)] =
    &[("(?:)", ""), ("a+(?<n>b)", "dgimsuy"), ("[\\p{L}--[a-z]]", "v")];

/// The maximum depth of a value; deep values have tests of their own.
const DEEPEST: u32 = 40;

/// Writes one value with all its parts.
pub(crate) fn write(choices: &mut Unstructured<'_>, writer: &mut Writer) {
    let first = writer.next_object();
    Values { choices, writer, first, blobs: Vec::new() }.value(0);
}

struct Values<'w, 'b> {
    choices: &'w mut Unstructured<'b>,
    writer: &'w mut Writer,
    /// The first object of this value.
    first: u32,
    /// The blobs that have an `ArrayBuffer` in the message, with their lengths.
    blobs: Vec<(u32, usize)>,
}

impl Values<'_, '_> {
    fn choose(&mut self, count: usize) -> usize {
        self.choices.int_in_range(0..=count - 1).unwrap_or(0)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.choose(list.len())]
    }

    fn value(&mut self, depth: u32) {
        let nested = depth < DEEPEST && !self.choices.is_empty();
        match self.choose(if nested { 20 } else { 8 }) {
            0 => self.writer.undefined(),
            1 => self.writer.null(),
            2 => {
                let value = self.choose(2) == 1;
                self.writer.bool(value);
            }
            3 => {
                let value = self.pick(NUMBERS);
                self.writer.number(value);
            }
            4 => self.bigint(),
            5 => self.text(),
            6 => {
                let value = self.choices.arbitrary().unwrap_or(0.0);
                self.writer.number(value);
            }
            7 => self.reference(),
            8 | 9 => self.object(depth),
            10 | 11 => self.array(depth),
            12 => self.sparse_array(depth),
            13 => self.map(depth),
            14 => self.set(depth),
            15 => {
                let epoch_ms = self.pick(DATES);
                self.writer.date(epoch_ms);
            }
            16 => {
                let (source, flags) = self.pick(PATTERNS);
                self.writer.regexp();
                self.writer.string(source);
                self.writer.string(flags);
            }
            17 => self.error(),
            18 => {
                let bytes = self.bytes();
                let length = bytes.len();
                let blob = self.writer.blob(bytes);
                self.writer.buffer(blob);
                self.blobs.push((blob, length));
            }
            _ => self.view(),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.choose(40);
        self.choices.bytes(length).map(<[u8]>::to_vec).unwrap_or_default()
    }

    fn bigint(&mut self) {
        let (negative, magnitude) = (self.choose(2) == 1, self.bytes());
        self.writer.bigint(negative, &magnitude);
    }

    fn text(&mut self) {
        if self.choose(4) == 0 {
            let units: [u16; 3] = self.choices.arbitrary().unwrap_or([0xd800, 0x61, 0xdc00]);
            self.writer.string16(&units);
        } else {
            let text = self.pick(TEXTS);
            self.writer.string(text);
        }
    }

    /// An object of this value, which may not be finished.
    fn reference(&mut self) {
        let known = self.writer.next_object() - self.first;
        if known == 0 {
            return self.writer.undefined();
        }
        let object = self.choices.int_in_range(0..=known - 1).unwrap_or(0);
        self.writer.reference(self.first + object);
    }

    fn object(&mut self, depth: u32) {
        self.writer.object();
        let first = self.choose(KEYS.len());
        for key in KEYS.iter().cycle().skip(first).take(self.choose(KEYS.len() + 1)) {
            self.writer.key(key);
            self.value(depth + 1);
        }
        if self.choose(8) == 0 {
            self.writer.key16(&[0xd800, 0x62]);
            self.value(depth + 1);
        }
        self.writer.end_object();
    }

    fn array(&mut self, depth: u32) {
        let length = self.choose(6);
        self.writer.array(u32::try_from(length).unwrap_or_default());
        for _ in 0..length {
            if self.choose(8) == 0 {
                self.writer.hole();
            } else {
                self.value(depth + 1);
            }
        }
    }

    fn sparse_array(&mut self, depth: u32) {
        let length = self.pick(&[1, 7, 1000, 70_000]);
        self.writer.sparse_array(length);
        for index in [0, 3, length - 1] {
            if index < length && self.choose(2) == 1 && (index != length - 1 || length > 3) {
                self.writer.sparse_index(index);
                self.value(depth + 1);
            }
        }
        self.writer.end_sparse_array();
    }

    fn map(&mut self, depth: u32) {
        let entries = self.choose(5);
        self.writer.map(u32::try_from(entries).unwrap_or_default());
        for (number, key) in (0..).zip(KEYS).take(entries) {
            match self.choose(3) {
                0 => self.writer.int(number),
                1 => self.writer.string(key),
                _ => {
                    self.writer.object();
                    self.writer.end_object();
                }
            }
            self.value(depth + 1);
        }
    }

    fn set(&mut self, depth: u32) {
        let members = self.choose(5);
        self.writer.set(u32::try_from(members).unwrap_or_default());
        for (number, key) in (0..).zip(KEYS).take(members) {
            match self.choose(3) {
                0 => self.writer.int(number),
                1 => self.object(depth + 1),
                _ => self.writer.string(key),
            }
        }
    }

    fn error(&mut self) {
        let class = self.pick(CLASSES);
        self.writer.error(class);
        self.writer.string(class.name());
        self.text();
        self.writer.undefined();
        match self.choose(3) {
            0 => self.writer.undefined(),
            1 => self.writer.int(7),
            _ => self.writer.string("E_CODE"),
        }
    }

    /// A view of its own bytes, or into a buffer of the message.
    fn view(&mut self) {
        let kind = self.choose(13);
        let kind =
            u8::try_from(kind).ok().and_then(ViewKind::from_byte).unwrap_or(ViewKind::DataView);
        let size = kind.element_bytes();
        let shared = if self.choose(2) == 1 { self.blobs.last().copied() } else { None };
        let (blob, offset, bytes) = match shared {
            Some((blob, bytes)) => {
                let offset = self.choose(bytes / size + 1) * size;
                (blob, offset, bytes - offset)
            }
            None => {
                let mut bytes = self.bytes();
                bytes.truncate(bytes.len() / size * size);
                let length = bytes.len();
                (self.writer.blob(bytes), 0, length)
            }
        };
        let length = if shared.is_some() { self.choose(bytes / size + 1) } else { bytes / size };
        self.writer.view(kind, blob, offset as u64, length as u64);
    }
}
