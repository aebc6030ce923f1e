//! Messages as plain data of any format.
//!
//! In: a message and a serializer. Out: the same data, where the format can say it: functions and promises are errors,
//! identity is lost.

use std::cell::RefCell;

use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::reading::{Big, Reading, big, serialize_number};
use crate::value::{Event, Fault, Malformed, Value, tag};

/// Writes a message with any serializer, as plain data.
pub(in crate::value) fn transcode<S: Serializer>(
    message: &Value,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    Plain(&RefCell::new(Reading::new(message, None))).serialize(serializer)
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
