//! A message being read by serde: the nodes behind references, depth, and the scalars that formats know.
//!
//! In: a message, perhaps of a hostile writer. Out: its nodes one by one, with the changes to undo after each; numbers,
//! big integers and errors as serde's data model has them.

use serde::{
    de::{Deserializer, IntoDeserializer, Visitor},
    forward_to_deserialize_any,
    ser::{Serialize, Serializer},
};

use super::{
    cursor::{Cursor, Links},
    ser::MAX_DEPTH,
};
use crate::value::{Event, Fault, Value, copy::pass, reader::Jump};

/// A message being read.
pub(super) struct Reading<'a> {
    pub(super) cursor: Cursor<'a>,
    /// The objects that contain the cursor: a reference to one of them is a cycle.
    open: Vec<u32>,
    depth: usize,
    /// Something failed, so the place of the cursor is unknown.
    pub(super) lost: bool,
}

/// Changes to undo when a node has been read.
pub(super) struct Entered<'a> {
    jump: Option<Jump<'a>>,
    opened: bool,
}

impl<'a> Reading<'a> {
    pub(super) fn new(message: &'a Value, links: Option<&'a dyn Links>) -> Self {
        let cursor = Cursor::new(message, links);
        Self { cursor, open: Vec::new(), depth: 0, lost: false }
    }

    /// The next node; if it is a reference, the node behind it.
    pub(super) fn enter(&mut self) -> Result<(Event<'a>, Entered<'a>), Fault> {
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

    pub(super) fn leave(&mut self, entered: Entered<'a>) {
        self.depth -= 1;
        if entered.opened {
            self.open.pop();
        }
        if let Some(jump) = entered.jump {
            self.cursor.reader.come_back(jump);
        }
    }

    pub(super) fn read<T>(
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

    pub(super) fn key(&mut self) -> Result<Option<String>, Fault> {
        Ok(self.cursor.reader.key()?.map(|key| key.text.to_string_lossy()))
    }

    pub(super) fn text(&mut self) -> Result<String, Fault> {
        Ok(self.cursor.reader.text()?.to_string_lossy())
    }

    pub(super) fn pass(&mut self) -> Result<(), Fault> {
        pass(&mut self.cursor, &mut |_| ())
    }

    pub(super) fn regexp(&mut self) -> Result<String, Fault> {
        Ok(format!("/{}/{}", self.text()?, self.text()?))
    }

    /// The parts of an Error that serde reads.
    pub(super) fn error(&mut self) -> Result<Vec<(&'static str, Scalar)>, Fault> {
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
    pub(super) fn bytes(&self, event: &Event<'_>) -> Option<&'a [u8]> {
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
pub(super) enum Scalar {
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
pub(super) enum Number {
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

pub(super) fn visit_number<'de, V: Visitor<'de>>(
    number: f64,
    visitor: V,
) -> Result<V::Value, Fault> {
    match Number::from(number) {
        Number::Natural(number) => visitor.visit_u64(number),
        Number::Negative(number) => visitor.visit_i64(number),
        Number::Other(number) => visitor.visit_f64(number),
    }
}

pub(super) fn serialize_number<S: Serializer>(
    number: f64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match Number::from(number) {
        Number::Natural(number) => serializer.serialize_u64(number),
        Number::Negative(number) => serializer.serialize_i64(number),
        Number::Other(number) => serializer.serialize_f64(number),
    }
}

/// A bigint, as far as Rust has a type for it.
pub(super) enum Big {
    U64(u64),
    I64(i64),
    U128(u128),
    I128(i128),
}

pub(super) fn big(negative: bool, magnitude: &[u8]) -> Result<Big, Fault> {
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
