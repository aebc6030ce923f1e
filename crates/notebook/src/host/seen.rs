//! A value as JSON, for code that needs no more of the value: a JSON Schema, the fields of a tool's result.
//!
//! In: a message, perhaps of a hostile kernel. Out: JSON, and the places of values that JSON does not have; these are null.
//! A bigint is the nearest number, and a property that is `undefined` is not there. The cost is bounded, whatever is shared in
//! the message: a value that is too large or too deep is none.

use isolane::{
    Step, Value,
    value::{Event, Reader},
};
use serde_json::{Map, Number, Value as Json};

/// Deeper values are refused.
const MOST_DEPTH: usize = 200;

/// The most nodes: sharing can blow a small message up.
const MOST_NODES: usize = 1 << 22;

/// The places of values that are no JSON which are kept.
const MOST_ODD: usize = 100;

/// A value as JSON.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) json: Json,
    /// The places of values that are no JSON, and their kinds: `a Date`.
    odd: Vec<(Vec<Step>, &'static str)>,
}

impl Seen {
    /// Reads a value; `None` if it nests too deeply or is too large.
    pub(crate) fn new(value: &Value) -> Option<Self> {
        let (objects, place) = (Vec::new(), Vec::new());
        let mut reading =
            Reading { reader: value.reader(), objects, place, odd: Vec::new(), left: MOST_NODES };
        let json = reading.read()?;
        Some(Self { json, odd: reading.odd })
    }

    /// The kind of the value at a place, if it is no JSON.
    pub(crate) fn odd_at(&self, place: &[Step]) -> Option<&'static str> {
        self.odd.iter().find(|(known, _)| known == place).map(|(_, kind)| *kind)
    }

    /// The first value that is no JSON.
    pub(crate) fn first_odd(&self) -> Option<(&[Step], &'static str)> {
        self.odd.first().map(|(place, kind)| (place.as_slice(), *kind))
    }
}

struct Reading<'v> {
    reader: Reader<'v>,
    /// The objects so far, by their index, with their nodes; `None` for one that is being read.
    objects: Vec<Option<(Json, usize)>>,
    place: Vec<Step>,
    odd: Vec<(Vec<Step>, &'static str)>,
    left: usize,
}

impl Reading<'_> {
    fn read(&mut self) -> Option<Json> {
        let before = self.left;
        self.left = self.left.checked_sub(1)?;
        if self.place.len() > MOST_DEPTH {
            return None;
        }
        let event = self.reader.event().ok()?;
        if let Event::Ref(object) = event {
            return match self.objects.get(object as usize)? {
                None => Some(self.odd("a cycle")),
                Some((known, nodes)) => {
                    self.left = self.left.checked_sub(*nodes)?;
                    Some(known.clone())
                }
            };
        }
        let index = event.is_object().then(|| {
            self.objects.push(None);
            self.objects.len() - 1
        });
        let read = self.node(&event)?;
        if let Some(known) = index.and_then(|index| self.objects.get_mut(index)) {
            *known = Some((read.clone(), before - self.left));
        }
        Some(read)
    }

    fn node(&mut self, event: &Event<'_>) -> Option<Json> {
        Some(match event {
            Event::Undefined | Event::Null | Event::Hole => Json::Null,
            Event::Bool(value) => (*value).into(),
            Event::Int(value) => (*value).into(),
            Event::Double(value) => match number(*value) {
                Some(number) => Json::Number(number),
                None => self.odd("a number that is not finite"),
            },
            Event::BigInt { negative, magnitude } => big(*negative, magnitude).into(),
            Event::String(text) => text.to_string_lossy().into(),
            Event::Object => {
                let mut fields = Map::new();
                while let Some(key) = self.reader.key().ok()? {
                    let key = key.text.to_string_lossy();
                    let is_there = !matches!(self.reader.clone().event(), Ok(Event::Undefined));
                    let value = self.member(Step::Key(key.clone()))?;
                    if is_there {
                        fields.insert(key, value);
                    }
                }
                Json::Object(fields)
            }
            Event::Array(length) => (0..*length as usize)
                .map(|index| self.member(Step::Index(index)))
                .collect::<Option<Vec<_>>>()?
                .into(),
            Event::SparseArray(_) => {
                while let Some(index) = self.reader.sparse_index().ok()? {
                    self.member(Step::Index(index as usize))?;
                }
                self.odd("an array with holes")
            }
            Event::Map(entries) => self.inside(2 * u64::from(*entries), "a Map")?,
            Event::Set(members) => self.inside(u64::from(*members), "a Set")?,
            Event::Date(_) => self.odd("a Date"),
            Event::RegExp => self.inside(2, "a RegExp")?,
            Event::Error(_) => self.inside(4, "an Error")?,
            Event::Buffer(_) | Event::View { .. } => self.odd("bytes"),
            Event::HostFunction(_) | Event::SandboxFunction(_) => self.inside(1, "a function")?,
            Event::HostPromise(_) | Event::SandboxPromise(_) => self.odd("a promise"),
            Event::Ref(_) => return None,
        })
    }

    fn member(&mut self, segment: Step) -> Option<Json> {
        self.place.push(segment);
        let read = self.read();
        self.place.pop();
        read
    }

    /// A value with so many nodes of which JSON has nothing.
    fn inside(&mut self, nodes: u64, kind: &'static str) -> Option<Json> {
        let odd = self.odd(kind);
        let known = self.odd.len();
        for _ in 0..nodes {
            self.member(Step::Index(0))?;
        }
        self.odd.truncate(known);
        Some(odd)
    }

    fn odd(&mut self, kind: &'static str) -> Json {
        if self.odd.len() < MOST_ODD {
            self.odd.push((self.place.clone(), kind));
        }
        Json::Null
    }
}

/// A number, a whole one as an integer; `None` if it is not finite.
fn number(value: f64) -> Option<Number> {
    #[expect(clippy::cast_possible_truncation, reason = "a safe integer")]
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_991.0 {
        return Some((value as i64).into());
    }
    Number::from_f64(value)
}

/// The nearest number of a bigint, the largest for one beyond. Its magnitude has the least byte first.
fn big(negative: bool, magnitude: &[u8]) -> Number {
    let (low, high) = magnitude.split_at(magnitude.len().saturating_sub(8));
    let mut bytes = [0; 8];
    bytes[..high.len()].copy_from_slice(high);
    let leading = u64::from_le_bytes(bytes);
    if low.is_empty() && !negative {
        return leading.into();
    }
    #[expect(clippy::cast_precision_loss, reason = "the nearest number")]
    let leading = leading as f64;
    let exponent = i32::try_from(8 * low.len()).unwrap_or(i32::MAX);
    let value = (leading * 2_f64.powi(exponent)).min(f64::MAX);
    // A number that is finite is JSON.
    Number::from_f64(if negative { -value } else { value }).unwrap_or_else(|| 0.into())
}

#[cfg(test)]
mod tests {
    use isolane::value::Writer;
    use serde_json::json;

    use super::*;

    type Write<'w> = &'w dyn Fn(&mut Writer);

    fn object(write: &[(&str, Write<'_>)]) -> Value {
        let mut writer = Writer::new();
        writer.object();
        for (key, write) in write {
            writer.key(key);
            write(&mut writer);
        }
        writer.end_object();
        writer.finish()
    }

    #[test]
    fn numbers_are_near_and_odd_values_have_places() {
        let value = object(&[
            ("whole", &|w| w.number(3.0)),
            ("nan", &|w| w.number(f64::NAN)),
            ("big", &|w| w.bigint(false, &[1, 0, 0, 0, 0, 0, 0, 0x80])),
            ("less", &|w| w.bigint(true, &[0, 1])),
            ("huge", &|w| w.bigint(true, &[0xFF; 1000])),
            ("gone", &Writer::undefined),
            ("set", &|w| {
                w.set(1);
                w.date(0.0);
            }),
            ("list", &|w| {
                w.array(2);
                w.date(0.0);
                w.reference(0);
            }),
        ]);
        let seen = Seen::new(&value).expect("it is small");
        let list = [Json::Null, Json::Null];
        let expected = json!({ "whole": 3, "nan": null, "big": (1_u64 << 63) + 1, "less": -256.0, "huge": f64::MIN, "set": null, "list": list });
        assert_eq!(seen.json, expected);
        let at = |key: &str, index: usize| [Step::Key(key.to_owned()), Step::Index(index)];
        assert_eq!(seen.odd_at(&at("list", 0)), Some("a Date"));
        assert_eq!(seen.odd_at(&at("list", 1)), Some("a cycle"));
        assert_eq!(seen.odd_at(&at("set", 0)), None);
        assert_eq!(seen.odd_at(&at("set", 0)[..1]), Some("a Set"));
        assert_eq!(seen.first_odd().map(|(_, kind)| kind), Some("a number that is not finite"));
    }

    #[test]
    fn sharing_that_blows_up_is_refused() {
        let mut writer = Writer::new();
        writer.array(40);
        writer.array(0);
        for object in 1..40 {
            writer.array(2);
            writer.reference(object);
            writer.reference(object);
        }
        assert_eq!(Seen::new(&writer.finish()), None);
    }
}
