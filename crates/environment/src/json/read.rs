//! A message of the sandbox as JSON.
//!
//! In: a message. Out: JSON. A Date is its ISO text. Of objects that stand in several places each place has a copy, which
//! counts against the most bytes.

use std::collections::{HashMap, HashSet};

use isolane::{
    Step, iso_date,
    value::{Event, Malformed, Reader, Str},
};
use serde_json::{Map, Number, Value};

use super::{MOST_DEPTH, json_bytes, text_bytes};

/// Why a value has no JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonFault {
    /// `TypeError` or `RangeError`.
    pub(crate) name: &'static str,
    pub(crate) message: String,
}

impl JsonFault {
    fn of_type(message: String) -> Self {
        Self { name: "TypeError", message }
    }
}

impl From<Malformed> for JsonFault {
    fn from(_: Malformed) -> Self {
        Self::of_type("the message is malformed".to_owned())
    }
}

/// How a value is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'r> {
    /// The beginning of the path in an error: `output`.
    pub(crate) root: &'r str,
    /// The most bytes of JSON.
    pub(crate) most_bytes: usize,
    /// Whether the message is a list of arguments, and the value the first one of these.
    pub(crate) is_argument: bool,
    /// Whether fields that are `undefined` are left out, as `JSON.stringify` leaves them out. Else they are an error.
    pub(crate) drops_undefined: bool,
}

impl<'r> Reading<'r> {
    /// A value that must be JSON in all its parts.
    pub(crate) fn strict(root: &'r str, most_bytes: usize) -> Self {
        Self { root, most_bytes, is_argument: false, drops_undefined: false }
    }
}

/// The JSON of a value; `None` for `undefined`, and for an argument that is not there.
///
/// # Errors
/// A part that JSON has not, with its path; more bytes.
pub(crate) fn to_json(
    value: &isolane::Value,
    how: Reading<'_>,
) -> Result<Option<Value>, JsonFault> {
    // Most values have no object in several places. Only if one has, a second pass keeps what is named again.
    let Some((json, named)) = Pass::new(value, how, HashSet::new()).read()? else {
        return Ok(None);
    };
    if named.is_empty() {
        return Ok(Some(json));
    }
    drop(json);
    Ok(Pass::new(value, how, named).read()?.map(|(json, _)| json))
}

struct Pass<'v> {
    reader: Reader<'v>,
    how: Reading<'v>,
    bytes: usize,
    /// The objects that are named again; those of this pass, if the pass keeps them.
    named: HashSet<u32>,
    /// Whether this pass keeps the objects of `named`.
    keeps: bool,
    kept: HashMap<u32, Value>,
    objects: u32,
    open: Vec<Frame>,
}

/// A node that was read.
enum Node {
    Value(Value),
    Undefined,
    /// It began a container.
    Begun,
}

/// A container that is being read.
struct Frame {
    object: u32,
    content: Content,
}

enum Content {
    Object { map: Map<String, Value>, key: String },
    Array { list: Vec<Value>, left: u32 },
}

impl<'v> Pass<'v> {
    fn new(value: &'v isolane::Value, how: Reading<'v>, named: HashSet<u32>) -> Self {
        let keeps = !named.is_empty();
        let reader = value.reader();
        let (kept, open) = (HashMap::new(), Vec::new());
        Self { reader, how, bytes: 0, named, keeps, kept, objects: 0, open }
    }

    fn read(mut self) -> Result<Option<(Value, HashSet<u32>)>, JsonFault> {
        if self.how.is_argument {
            let list = self.reader.event()?;
            self.objects += u32::from(list.is_object());
            if matches!(list, Event::Array(0)) {
                return Ok(None);
            }
        }
        let mut done = self.value()?;
        loop {
            // A value is complete: into its container, which may be complete then, too.
            match done {
                Node::Begun => {}
                Node::Undefined => match self.open.last_mut() {
                    None => return Ok(None),
                    Some(Frame { content: Content::Object { .. }, .. })
                        if self.how.drops_undefined => {}
                    Some(_) => return Err(self.fault("undefined")),
                },
                Node::Value(value) => match self.open.last_mut() {
                    None => return Ok(Some((value, self.named))),
                    Some(Frame { content: Content::Object { map, key }, .. }) => {
                        map.insert(std::mem::take(key), value);
                    }
                    Some(Frame { content: Content::Array { list, left }, .. }) => {
                        list.push(value);
                        *left -= 1;
                    }
                },
            }
            done = if self.next_place()? { self.value()? } else { self.close()? };
        }
    }

    /// Goes to the next place of the innermost container; false if it is complete.
    fn next_place(&mut self) -> Result<bool, JsonFault> {
        let text = match self.open.last() {
            None => return Ok(false),
            Some(Frame { content: Content::Array { left, .. }, .. }) => return Ok(*left > 0),
            Some(Frame { content: Content::Object { .. }, .. }) => match self.reader.key()? {
                None => return Ok(false),
                Some(key) => key.text,
            },
        };
        let next = self.text(text)?;
        self.take(text_bytes(&next) + 2)?;
        if let Some(Frame { content: Content::Object { key, .. }, .. }) = self.open.last_mut() {
            *key = next;
        }
        Ok(true)
    }

    fn close(&mut self) -> Result<Node, JsonFault> {
        let Frame { object, content } = self.open.pop().ok_or(Malformed)?;
        let value = match content {
            Content::Object { map, .. } => Value::Object(map),
            Content::Array { list, .. } => Value::Array(list),
        };
        if self.keeps && self.named.contains(&object) {
            self.kept.insert(object, value.clone());
        }
        Ok(Node::Value(value))
    }

    fn value(&mut self) -> Result<Node, JsonFault> {
        let event = self.reader.event()?;
        let object = self.objects;
        self.objects += u32::from(event.is_object());
        let value = match event {
            Event::Null => Value::Null,
            Event::Bool(is) => Value::Bool(is),
            Event::Int(number) => Value::Number(number.into()),
            Event::Double(number) => self.number(number)?,
            Event::String(text) => Value::String(self.text(text)?),
            Event::Date(ms) => {
                Value::String(iso_date(ms).ok_or_else(|| self.fault("an invalid Date"))?)
            }
            Event::Ref(object) => return self.again(object).map(Node::Value),
            Event::Object => {
                self.enter(object, Content::Object { map: Map::new(), key: String::new() })?;
                return Ok(Node::Begun);
            }
            Event::Array(length) => {
                self.enter(object, Content::Array { list: Vec::new(), left: length })?;
                return Ok(Node::Begun);
            }
            Event::Undefined => return Ok(Node::Undefined),
            Event::BigInt { .. } => return Err(self.fault("a bigint")),
            Event::Hole | Event::SparseArray(_) => return Err(self.fault("an array with holes")),
            Event::Map(_) => return Err(self.fault("a Map")),
            Event::Set(_) => return Err(self.fault("a Set")),
            Event::RegExp => return Err(self.fault("a RegExp")),
            Event::Error(_) => return Err(self.fault("an Error")),
            Event::Buffer(_) => return Err(self.fault("an ArrayBuffer")),
            Event::View { .. } => return Err(self.fault("a view of bytes")),
            Event::HostFunction(_) | Event::SandboxFunction(_) => {
                return Err(self.fault("a function"));
            }
            Event::HostPromise(_) | Event::SandboxPromise(_) => return Err(self.fault("a promise")),
        };
        self.take(json_bytes(&value) + 1)?;
        if self.keeps && event.is_object() && self.named.contains(&object) {
            self.kept.insert(object, value.clone());
        }
        Ok(Node::Value(value))
    }

    fn enter(&mut self, object: u32, content: Content) -> Result<(), JsonFault> {
        if self.open.len() == MOST_DEPTH {
            let message = format!("{} nests deeper than {MOST_DEPTH}", self.how.root);
            return Err(JsonFault::of_type(message));
        }
        self.take(3)?;
        self.open.push(Frame { object, content });
        Ok(())
    }

    /// An object that stood in an earlier place.
    fn again(&mut self, object: u32) -> Result<Value, JsonFault> {
        if self.open.iter().any(|frame| frame.object == object) {
            return Err(self.fault("a cycle"));
        }
        if !self.keeps {
            self.named.insert(object);
            return Ok(Value::Null);
        }
        let value = self.kept.get(&object).ok_or(Malformed)?.clone();
        self.take(json_bytes(&value) + 1)?;
        if depth(&value) + self.open.len() > MOST_DEPTH {
            let message = format!("{} nests deeper than {MOST_DEPTH}", self.how.root);
            return Err(JsonFault::of_type(message));
        }
        Ok(value)
    }

    fn number(&self, number: f64) -> Result<Value, JsonFault> {
        const SAFE: f64 = 9_007_199_254_740_991.0;
        if number.fract() == 0.0 && number.abs() <= SAFE {
            #[expect(clippy::cast_possible_truncation, reason = "whole and safe")]
            return Ok(Value::Number((number as i64).into()));
        }
        let shown = match number {
            _ if number.is_nan() => "NaN",
            _ if number > 0.0 => "Infinity",
            _ => "-Infinity",
        };
        Number::from_f64(number).map(Value::Number).ok_or_else(|| self.fault(shown))
    }

    fn text(&self, text: Str<'_>) -> Result<String, JsonFault> {
        match text {
            Str::Utf8(text) => Ok(text.to_owned()),
            Str::Utf16(_) => Err(self.fault("a text with half a character")),
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), JsonFault> {
        self.bytes += bytes;
        if self.bytes <= self.how.most_bytes.saturating_add(2) {
            return Ok(());
        }
        let message =
            format!("{} is larger than {} bytes of JSON", self.how.root, self.how.most_bytes);
        Err(JsonFault { name: "RangeError", message })
    }

    fn fault(&self, kind: &str) -> JsonFault {
        let mut path = self.how.root.to_owned();
        for step in Step::through(&self.open, step) {
            path = step.after(&path);
        }
        JsonFault::of_type(format!("{path} is {kind}, which JSON has not"))
    }
}

fn step(frame: &Frame) -> Step {
    match &frame.content {
        Content::Object { key, .. } => Step::Key(key.clone()),
        Content::Array { list, .. } => Step::Index(list.len()),
    }
}

/// The nesting of a value, which is bounded.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use isolane::value::Writer;
    use serde_json::json;

    use super::*;
    use crate::json::to_message;

    fn json(value: &isolane::Value) -> Result<Value, JsonFault> {
        to_json(value, Reading::strict("output", 1000)).map(Option::unwrap_or_default)
    }

    fn fault(write: impl FnOnce(&mut Writer)) -> String {
        let mut writer = Writer::new();
        write(&mut writer);
        json(&writer.finish()).expect_err("no JSON").message
    }

    #[test]
    fn json_comes_back_as_it_was() {
        let value = json!({ "a": [1, 2.5, -1, true, null, "x"], "b": { "__proto__": [], "c": {} }, "d": 1e300 });
        assert_eq!(json(&to_message(&value)), Ok(value));
    }

    #[test]
    fn whole_numbers_have_no_fraction() {
        let mut writer = Writer::new();
        writer.array(3);
        writer.double(3e9);
        writer.double(-0.0);
        writer.date(0.0);
        let text = json(&writer.finish()).map(|json| json.to_string());
        assert_eq!(text.as_deref(), Ok(r#"[3000000000,0,"1970-01-01T00:00:00.000Z"]"#));
    }

    #[test]
    fn what_json_has_not_is_named_with_its_path() {
        let in_a = |write: fn(&mut Writer)| {
            fault(|writer| {
                writer.object();
                writer.key("a");
                writer.array(2);
                writer.int(1);
                write(writer);
                writer.end_object();
            })
        };
        assert_eq!(in_a(Writer::undefined), "output.a[1] is undefined, which JSON has not");
        assert_eq!(in_a(|w| w.double(f64::NAN)), "output.a[1] is NaN, which JSON has not");
        assert_eq!(in_a(|w| w.map(0)), "output.a[1] is a Map, which JSON has not");
        assert_eq!(in_a(|w| w.reference(0)), "output.a[1] is a cycle, which JSON has not");
        assert_eq!(
            in_a(|w| w.string16(&[0xD800])),
            "output.a[1] is a text with half a character, which JSON has not"
        );
    }

    #[test]
    fn objects_in_several_places_are_copied_within_the_bytes() {
        let repeated = |times: u32| {
            let mut writer = Writer::new();
            writer.array(times + 1);
            writer.object();
            writer.key("a");
            writer.int(1);
            writer.end_object();
            (0..times).for_each(|_| writer.reference(1));
            writer.finish()
        };
        assert_eq!(json(&repeated(2)), Ok(json!([{ "a": 1 }, { "a": 1 }, { "a": 1 }])));
        let fault = json(&repeated(1000)).expect_err("too large");
        assert_eq!(
            (fault.name, fault.message.as_str()),
            ("RangeError", "output is larger than 1000 bytes of JSON")
        );
    }

    #[test]
    fn deep_values_are_refused() {
        let message = fault(|writer| (0..200).for_each(|_| writer.array(1)));
        assert_eq!(message, "output nests deeper than 128");
    }

    #[test]
    fn undefined_fields_of_arguments_are_left_out() {
        let mut writer = Writer::new();
        writer.array(2);
        writer.object();
        writer.key("a");
        writer.undefined();
        writer.key("b");
        writer.int(1);
        writer.end_object();
        writer.int(2);
        let how =
            Reading { is_argument: true, drops_undefined: true, ..Reading::strict("args", 100) };
        assert_eq!(to_json(&writer.finish(), how), Ok(Some(json!({ "b": 1 }))));
        let mut none = Writer::new();
        none.array(0);
        assert_eq!(to_json(&none.finish(), how), Ok(None));
    }
}
