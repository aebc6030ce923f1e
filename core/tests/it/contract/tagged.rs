//! Tagged JSON: values beyond JSON, as an object with one `$` key.
//!
//! In: JSON of a case. Out: the value that it stands for. Patterns are not values; see `compare`.

use std::{collections::HashMap, rc::Rc};

use isolane::value::{ErrorClass, ViewKind};
use serde_json::{Map, Value as Json};

use super::{
    functions::Tables,
    js::{Js, Object},
};

/// The tag of a tagged object, with its content.
pub(crate) fn tag(json: &Json) -> Option<(&str, &Json)> {
    let object = json.as_object()?;
    if object.len() == 2 && object.contains_key("$id") {
        return Some(("$id", json));
    }
    let (key, value) = object.iter().next().filter(|_| object.len() == 1)?;
    key.starts_with('$').then_some((key.as_str(), value))
}

/// The entries of an object, which may be listed in `$entries`.
pub(crate) fn entries(json: &Json) -> Option<Vec<(String, &Json)>> {
    match (tag(json), json) {
        (Some(("$entries", Json::Array(entries))), _) => {
            let entries = entries.iter();
            entries.map(|entry| Some((entry.get(0)?.as_str()?.to_owned(), entry.get(1)?))).collect()
        }
        (None, Json::Object(object)) => {
            Some(object.iter().map(|(key, value)| (key.clone(), value)).collect())
        }
        _ => None,
    }
}

/// Reads the values of one message: objects are shared by their `$id`.
pub(crate) struct Values<'t> {
    ids: HashMap<String, Js>,
    tables: &'t mut Tables,
}

impl<'t> Values<'t> {
    pub(crate) fn new(tables: &'t mut Tables) -> Self {
        Self { ids: HashMap::new(), tables }
    }

    pub(crate) fn value(&mut self, json: &Json) -> Js {
        if let Some((tag, said)) = tag(json) {
            return self.tagged(tag, said);
        }
        match json {
            Json::Null => Js::Null,
            Json::Bool(value) => Js::Bool(*value),
            Json::Number(value) => Js::Number(value.as_f64().expect("a double")),
            Json::String(text) => Js::text(text),
            Json::Array(elements) => {
                let elements: Vec<Js> =
                    elements.iter().map(|element| self.value(element)).collect();
                Js::list(elements)
            }
            Json::Object(entries) => {
                self.plain(entries.iter().map(|(key, value)| (key.as_str(), value)))
            }
        }
    }

    fn plain<'j>(&mut self, entries: impl Iterator<Item = (&'j str, &'j Json)>) -> Js {
        let entries = entries.map(|(key, value)| (key.encode_utf16().collect(), self.value(value)));
        Js::object(Object::Plain(entries.collect()))
    }

    fn tagged(&mut self, tag: &str, said: &Json) -> Js {
        match tag {
            "$id" => self.shared(said),
            "$ref" => self.ids.get(said.as_str().expect("an id")).expect("an $id before").clone(),
            "$fn" => self.tables.function_named(said.as_str().expect("a name")),
            "$promise" => {
                let value = self.value(said);
                self.tables.promise_after(1, Ok(value))
            }
            "$rejected" => {
                let value = self.value(said);
                self.tables.promise_after(1, Err(value))
            }
            "$map" => {
                let entries = list(said).iter();
                let pairs = entries.map(|pair| (self.value(&pair[0]), self.value(&pair[1])));
                Js::object(Object::Map(pairs.collect()))
            }
            "$set" => {
                let members = list(said).iter().map(|member| self.value(member)).collect();
                Js::object(Object::Set(members))
            }
            "$sparse" => {
                let elements = said[1].as_object().expect("elements by index");
                let elements = elements
                    .iter()
                    .map(|(index, value)| (index.parse().expect("an index"), self.value(value)));
                let elements = elements.collect();
                Js::object(Object::Array(small(&said[0]), elements))
            }
            "$entries" => {
                let entries = list(said).iter();
                self.plain(entries.map(|entry| (entry[0].as_str().expect("a key"), &entry[1])))
            }
            _ => leaf(tag, said).unwrap_or_else(|| panic!("{tag} is no value: {said}")),
        }
    }

    /// An object that is registered by its id before its contents, which may refer to it.
    fn shared(&mut self, said: &Json) -> Js {
        let id = said["$id"].as_str().expect("an id").to_owned();
        let placeholder = Js::object(Object::Plain(Vec::new()));
        self.ids.insert(id, placeholder.clone());
        if let (Js::Object(place), Js::Object(filled)) = (&placeholder, self.value(&said["$value"]))
        {
            place.swap(&filled);
        }
        placeholder
    }
}

/// A tag with no values in it.
pub(crate) fn leaf(tag: &str, said: &Json) -> Option<Js> {
    Some(match tag {
        "$undefined" => Js::Undefined,
        "$number" => Js::Number(match said.as_str()? {
            "-0" => -0.0,
            other => other.parse().ok()?,
        }),
        "$bigint" => bigint(said.as_str()?),
        "$string" => Js::String(list(said).iter().map(unit).collect()),
        "$repeat" => Js::text(&said[0].as_str()?.repeat(small(&said[1]) as usize)),
        "$symbol" => Js::Symbol(said.as_str()?.to_owned()),
        "$instance" => Js::object(Object::Instance(said.as_str()?.to_owned())),
        "$date" => Js::object(Object::Date(said.as_f64().unwrap_or(f64::NAN))),
        "$regexp" => {
            let text = |index: usize| -> Option<Vec<u16>> {
                Some(said[index].as_str()?.encode_utf16().collect())
            };
            Js::object(Object::RegExp(text(0)?, text(1)?))
        }
        "$error" => error(said.as_object()?)?,
        "$bytes" => {
            let bytes = bytes(said);
            let length = bytes.len() as u64;
            let blob = Rc::new(bytes);
            Js::object(Object::View { kind: ViewKind::Uint8Array, blob, offset: 0, length })
        }
        "$buffer" => Js::object(Object::Buffer(Rc::new(bytes(said)))),
        "$view" => Js::object(Object::View {
            kind: view_kind(said[0].as_str()?)?,
            offset: said[1].as_u64()?,
            length: said[2].as_u64()?,
            blob: Rc::new(bytes(&said[3])),
        }),
        _ => return None,
    })
}

fn error(said: &Map<String, Json>) -> Option<Js> {
    let class = said.get("class")?.as_str()?;
    let class = (0..7).map(ErrorClass::from_byte).find(|known| known.name() == class)?;
    let text = |key: &str, default: &str| -> Vec<u16> {
        said.get(key).and_then(Json::as_str).unwrap_or(default).encode_utf16().collect()
    };
    let code = match said.get("code") {
        Some(Json::String(code)) => Js::text(code),
        Some(Json::Number(code)) => Js::Number(code.as_f64()?),
        _ => Js::Undefined,
    };
    let (name, message) = (text("name", class.name()), text("message", ""));
    Some(Js::object(Object::Error { class, name, message, code }))
}

fn list(json: &Json) -> &[Json] {
    json.as_array().unwrap_or_else(|| panic!("{json} is no list"))
}

fn small(json: &Json) -> u32 {
    json.as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or_else(|| panic!("{json} is no size"))
}

fn unit(json: &Json) -> u16 {
    u16::try_from(small(json)).expect("a code unit")
}

fn bytes(json: &Json) -> Vec<u8> {
    list(json).iter().map(|byte| u8::try_from(small(byte)).expect("a byte")).collect()
}

fn view_kind(name: &str) -> Option<ViewKind> {
    (0..).map_while(ViewKind::from_byte).find(|kind| format!("{kind:?}") == name)
}

fn bigint(text: &str) -> Js {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let mut magnitude: Vec<u8> = Vec::new();
    for digit in digits.bytes() {
        let mut carry = u32::from(digit - b'0');
        for byte in &mut magnitude {
            let sum = u32::from(*byte) * 10 + carry;
            (*byte, carry) = ((sum & 0xFF) as u8, sum >> 8);
        }
        if carry > 0 {
            magnitude.push(u8::try_from(carry).expect("at most nine"));
        }
    }
    Js::BigInt(digits.len() < text.len(), magnitude)
}
