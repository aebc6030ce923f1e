//! JSON whose objects have each field once.
//!
//! In: a text. Out: JSON, or the field that an object has twice: the second one would count in silence, such as an `allow`
//! behind a `deny`.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value as Json};

/// JSON that was read so.
pub(super) struct OnceEach(pub(super) Json);

impl<'de> Deserialize<'de> for OnceEach {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading).map(Self)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Json;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut elements = Vec::new();
        while let Some(OnceEach(element)) = list.next_element()? {
            elements.push(element);
        }
        Ok(elements.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut fields = Map::new();
        while let Some((name, OnceEach(value))) = map.next_entry::<String, _>()? {
            if fields.contains_key(&name) {
                let shown: String = name.chars().take(100).collect();
                return Err(A::Error::custom(format!("an object has the field '{shown}' twice")));
            }
            fields.insert(name, value);
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_there_once() {
        let read = |text: &str| serde_json::from_str::<OnceEach>(text).map(|OnceEach(json)| json);
        let text = r#"{ "a": [1, -1, 1.5, null, true, "x", { "a": {} }], "b": {} }"#;
        let expected = json!({ "a": [1, -1, 1.5, null, true, "x", { "a": {} }], "b": {} });
        assert_eq!(read(text).expect("JSON"), expected);
        let twice = read(r#"{ "a": { "b.c": 1, "b.c": 2 } }"#).expect_err("a field twice");
        assert!(twice.to_string().starts_with("an object has the field 'b.c' twice"), "{twice}");
    }
}
