//! A value that a face handed over, read whole.
//!
//! In: a message. Out: a tree of plain values and callbacks, for a system to check and to take apart. A value that is
//! shared in the message is copied; a cycle, and anything of another kind, is named.

use isolane::{
    Callback, Caller, Error, ErrorKind, Value,
    value::{Event, Malformed, Reader, Str},
};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

/// Deeper values are refused.
const MOST_DEPTH: usize = 200;

/// Values of more nodes are refused: sharing can blow a small message up.
const MOST_NODES: usize = 1 << 22;

/// A value that a face handed over.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Given {
    /// `undefined`, and any option that is not given.
    #[default]
    Undefined,
    /// `null`, `None`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A bigint in decimal digits.
    BigInt(String),
    /// Text; lone surrogates are U+FFFD.
    Text(String),
    /// Text that had a lone surrogate, for a system that [tells](crate::System::tells_torn) such texts from others.
    Torn(String),
    /// The bytes of a buffer or a view.
    Bytes(Vec<u8>),
    /// An array.
    List(Vec<Given>),
    /// A plain object, in its order.
    Object(Vec<(String, Given)>),
    /// A date in epoch milliseconds; NaN is an invalid one.
    Date(f64),
    /// A function of the host.
    Function(Callback),
    /// Another kind of value, with its name for a message, such as `a Map`.
    Other(&'static str),
}

impl Given {
    /// Reads a message. Without a caller, functions in it are [`Given::Other`].
    ///
    /// # Errors
    /// A message that nests too deeply, or that sharing blows up.
    pub fn read(message: &Value, caller: Option<&Caller>) -> Result<Self, Error> {
        Self::read_as(message, caller, false)
    }

    /// The same; `tells_torn`: with [`Given::Torn`].
    pub(crate) fn read_as(
        message: &Value,
        caller: Option<&Caller>,
        tells_torn: bool,
    ) -> Result<Self, Error> {
        let mut reading = Reading::new(message, caller, false, tells_torn);
        let read = reading.value(0)?;
        if reading.shares {
            return Reading::new(message, caller, true, tells_torn).value(0);
        }
        Ok(read)
    }

    /// The kind of the value, for a message: `a string`, `null`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::BigInt(_) => "a bigint",
            Self::Text(_) => "a string",
            Self::Torn(_) => "a string with a lone surrogate",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "an array",
            Self::Object(_) => "an object",
            Self::Date(_) => "a Date",
            Self::Function(_) => "a function",
            Self::Other(kind) => kind,
        }
    }

    /// The value as JSON; `None` if something in it is no JSON. `undefined` in an object is left out, elsewhere it is
    /// `null`; a number that is not finite is no JSON.
    #[must_use]
    pub fn json(&self) -> Option<serde_json::Value> {
        Some(match self {
            Self::Undefined | Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Number(value) => number(*value)?.into(),
            Self::Text(text) | Self::Torn(text) => text.clone().into(),
            Self::List(items) => items.iter().map(Self::json).collect::<Option<Vec<_>>>()?.into(),
            Self::Object(entries) => {
                let given = entries.iter().filter(|(_, value)| *value != Self::Undefined);
                let entries = given.map(|(key, value)| Some((key.clone(), value.json()?)));
                serde_json::Value::Object(entries.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    /// The value of a key of an object; [`Given::Undefined`] if there is none.
    #[must_use]
    pub fn get(&self, key: &str) -> &Self {
        let Self::Object(entries) = self else { return &Self::Undefined };
        entries.iter().find(|(known, _)| known == key).map_or(&Self::Undefined, |(_, value)| value)
    }

    /// Whether an option with this value was left out.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Undefined | Self::Null)
    }
}

/// JSON as a face would hand it over.
impl From<&serde_json::Value> for Given {
    fn from(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(number) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            serde_json::Value::String(text) => Self::Text(text.clone()),
            serde_json::Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(fields) => {
                let entries = fields.iter().map(|(key, value)| (key.clone(), Self::from(value)));
                Self::Object(entries.collect())
            }
        }
    }
}

/// A whole number as an integer, so that its text has no fraction.
fn number(value: f64) -> Option<serde_json::Number> {
    #[expect(clippy::cast_possible_truncation, reason = "a safe integer")]
    if value.fract() == 0.0
        && value.abs() <= 9_007_199_254_740_991.0
        && (value != 0.0 || value.is_sign_positive())
    {
        return Some((value as i64).into());
    }
    serde_json::Number::from_f64(value)
}

/// JSON's kinds as those; bytes as bytes; a date as its epoch milliseconds.
impl Serialize for Given {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Undefined => serializer.serialize_unit(),
            Self::Null => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => match number(*value).and_then(|number| number.as_i64()) {
                Some(whole) => serializer.serialize_i64(whole),
                None => serializer.serialize_f64(*value),
            },
            Self::BigInt(text) | Self::Text(text) | Self::Torn(text) => {
                serializer.serialize_str(text)
            }
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Self::Date(epoch_ms) => serializer.serialize_f64(*epoch_ms),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
            Self::Function(_) | Self::Other(_) => {
                Err(S::Error::custom(format!("{} is no data", self.kind())))
            }
        }
    }
}

struct Reading<'a> {
    reader: Reader<'a>,
    blobs: &'a [Vec<u8>],
    caller: Option<&'a Caller>,
    /// The objects so far, by their index, each with the number of its nodes; one that has not been read to its end is a
    /// cycle.
    objects: Vec<(Given, usize)>,
    /// Whether objects are kept. To keep them costs a copy of each, and few messages share any.
    keeps: bool,
    /// Whether an object was shared that had not been kept.
    shares: bool,
    tells_torn: bool,
    nodes: usize,
}

impl<'a> Reading<'a> {
    fn new(message: &'a Value, caller: Option<&'a Caller>, keeps: bool, tells_torn: bool) -> Self {
        let (reader, blobs) = (message.reader(), message.blobs());
        let objects = Vec::new();
        Self { reader, blobs, caller, objects, keeps, shares: false, tells_torn, nodes: 0 }
    }

    fn value(&mut self, depth: usize) -> Result<Given, Error> {
        self.nodes += 1;
        if depth > MOST_DEPTH || self.nodes > MOST_NODES {
            return Err(too_large());
        }
        let event = self.reader.event().map_err(malformed)?;
        if !event.is_object() {
            return self.scalar(event);
        }
        if !self.keeps {
            return self.object(event, depth + 1);
        }
        let index = self.objects.len();
        self.objects.push((Given::Other("a cycle"), 1));
        let before = self.nodes;
        let value = self.object(event, depth + 1)?;
        self.objects[index] = (value.clone(), 1 + self.nodes - before);
        Ok(value)
    }

    fn scalar(&mut self, event: Event<'_>) -> Result<Given, Error> {
        Ok(match event {
            Event::Null => Given::Null,
            Event::Bool(value) => Given::Bool(value),
            Event::Int(value) => Given::Number(value.into()),
            Event::Double(value) => Given::Number(value),
            Event::BigInt { negative, magnitude } => Given::BigInt(decimal(negative, magnitude)),
            Event::String(text @ Str::Utf16(_)) if self.tells_torn => {
                Given::Torn(text.to_string_lossy())
            }
            Event::String(text) => Given::Text(text.to_string_lossy()),
            Event::Ref(_) if !self.keeps => {
                self.shares = true;
                Given::Undefined
            }
            Event::Ref(object) => {
                let known = self.objects.get(object as usize);
                let (known, nodes) = known.ok_or_else(|| malformed(Malformed))?;
                self.nodes = self.nodes.saturating_add(*nodes);
                if self.nodes > MOST_NODES {
                    return Err(too_large());
                }
                known.clone()
            }
            _ => Given::Undefined,
        })
    }

    fn object(&mut self, event: Event<'_>, depth: usize) -> Result<Given, Error> {
        Ok(match event {
            Event::Object => {
                let mut entries = Vec::new();
                while let Some(key) = self.reader.key().map_err(malformed)? {
                    let is_torn = self.tells_torn && matches!(key.text, Str::Utf16(_));
                    let key = key.text.to_string_lossy();
                    let value = self.value(depth)?;
                    // Whoever reads the value refuses its name.
                    let value = if is_torn { Given::Torn(key.clone()) } else { value };
                    entries.push((key, value));
                }
                Given::Object(entries)
            }
            Event::Array(length) => Given::List(self.values(u64::from(length), depth)?),
            Event::SparseArray(_) => {
                while self.reader.sparse_index().map_err(malformed)?.is_some() {
                    self.value(depth)?;
                }
                Given::Other("an array with holes")
            }
            Event::Map(entries) => {
                self.values(2 * u64::from(entries), depth)?;
                Given::Other("a Map")
            }
            Event::Set(members) => {
                self.values(u64::from(members), depth)?;
                Given::Other("a Set")
            }
            Event::Date(epoch_ms) => Given::Date(epoch_ms),
            Event::RegExp => {
                self.text()?;
                self.text()?;
                Given::Other("a RegExp")
            }
            Event::Error(_) => {
                self.text()?;
                self.text()?;
                self.value(depth)?;
                self.value(depth)?;
                Given::Other("an Error")
            }
            Event::Buffer(blob) => Given::Bytes(self.blob(blob)?.to_vec()),
            Event::View { kind, blob, byte_offset, length } => {
                let start = usize::try_from(byte_offset).unwrap_or(usize::MAX);
                let bytes = usize::try_from(length)
                    .unwrap_or(usize::MAX)
                    .saturating_mul(kind.element_bytes());
                let viewed = self.blob(blob)?.get(start..start.saturating_add(bytes));
                Given::Bytes(viewed.ok_or_else(|| malformed(Malformed))?.to_vec())
            }
            Event::HostFunction(number) => {
                self.text()?;
                let callback = self.caller.map(|caller| caller.function(number));
                callback.map_or(Given::Other("a function"), Given::Function)
            }
            Event::SandboxFunction(_) => {
                self.text()?;
                Given::Other("a function")
            }
            Event::HostPromise(_) | Event::SandboxPromise(_) => Given::Other("a promise"),
            _ => return Err(malformed(Malformed)),
        })
    }

    fn values(&mut self, count: u64, depth: usize) -> Result<Vec<Given>, Error> {
        (0..count).map(|_| self.value(depth)).collect()
    }

    fn text(&mut self) -> Result<Str<'_>, Error> {
        self.reader.text().map_err(malformed)
    }

    fn blob(&self, blob: u32) -> Result<&[u8], Error> {
        let blob = self.blobs.get(blob as usize);
        blob.map(Vec::as_slice).ok_or_else(|| malformed(Malformed))
    }
}

fn too_large() -> Error {
    Error::new(ErrorKind::Range, "the value nests too deeply or is too large")
}

fn malformed(error: Malformed) -> Error {
    Error::new(ErrorKind::Internal, error.to_string())
}

/// A magnitude, the least byte first, in decimal digits.
fn decimal(negative: bool, magnitude: &[u8]) -> String {
    // Digits of base 10^9, the least first.
    let mut digits = vec![0_u64];
    for byte in magnitude.iter().rev() {
        let mut carry = u64::from(*byte);
        for digit in &mut digits {
            let value = *digit * 256 + carry;
            (*digit, carry) = (value % 1_000_000_000, value / 1_000_000_000);
        }
        if carry > 0 {
            digits.push(carry);
        }
    }
    let mut text = if negative { "-".to_owned() } else { String::new() };
    let mut largest_first = digits.iter().rev();
    text.push_str(&largest_first.next().map(u64::to_string).unwrap_or_default());
    largest_first.for_each(|digit| text.push_str(&format!("{digit:09}")));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(value: &impl Serialize) -> Given {
        let message = Value::serialize(value).expect("the value is a message");
        Given::read(&message, None).expect("the message is readable")
    }

    #[test]
    fn json_is_read_and_written_as_it_was() {
        let value = json!({ "b": [1, 2.5, -3, true, null, "ü"], "a": { "__proto__": {} } });
        assert_eq!(given(&value).json(), Some(value));
    }

    #[test]
    fn a_large_integer_is_a_bigint_in_decimal_digits() {
        assert_eq!(given(&u64::MAX), Given::BigInt(u64::MAX.to_string()));
        assert_eq!(given(&i64::MIN), Given::BigInt(i64::MIN.to_string()));
        let power = "100000000000000000000000000000";
        assert_eq!(
            given(&100_000_000_000_000_000_000_000_000_000_u128),
            Given::BigInt(power.to_owned())
        );
        assert_eq!(given(&u64::MAX).json(), None);
    }

    #[test]
    fn a_shared_object_is_copied_and_a_cycle_is_named() {
        use isolane::value::Writer;
        let mut writer = Writer::new();
        writer.array(3);
        writer.object();
        writer.key("self");
        writer.reference(1);
        writer.end_object();
        writer.reference(1);
        writer.reference(0);
        let read = Given::read(&writer.finish(), None).expect("the message is readable");
        let cyclic = Given::Object(vec![("self".to_owned(), Given::Other("a cycle"))]);
        assert_eq!(read, Given::List(vec![cyclic.clone(), cyclic, Given::Other("a cycle")]));
    }

    #[test]
    fn sharing_that_blows_up_is_refused() {
        use isolane::value::Writer;
        let mut writer = Writer::new();
        writer.array(40);
        writer.array(0);
        for object in 1..40 {
            writer.array(2);
            writer.reference(object);
            writer.reference(object);
        }
        assert!(Given::read(&writer.finish(), None).is_err());
    }
}
