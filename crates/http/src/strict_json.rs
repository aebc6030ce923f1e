//! JSON whose objects name no field twice.
//!
//! In: bytes. Out: a value, or the reason why there is none. serde_json alone takes the last of two fields with one name:
//! a client that sends two `code`s would not learn which one ran.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Characters of a name that an error shows.
const MOST_SHOWN: usize = 100;

/// Reads JSON. Its nesting is bounded by serde_json's own limit: 127 arrays.
///
/// # Errors
/// Bytes that are no JSON, a field that is given twice.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice::<Strict>(bytes).map(|strict| strict.0)
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // JSON has no number that is not finite.
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                let shown: String = key.chars().take(MOST_SHOWN).collect();
                return Err(A::Error::custom(format!("'{shown}' is given twice")));
            }
            let Strict(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_read_as_it_is() {
        let value = json!({
            "a": [1, -2, 2.5, 1e300, u64::MAX, true, null, "x\n"], "b": { "a": {}, "__proto__": [] },
        });
        assert_eq!(read(value.to_string().as_bytes()).expect("JSON"), value);
        assert_eq!(read(b"\"x\"").expect("JSON"), "x");
    }

    #[test]
    fn a_field_that_is_given_twice_is_named() {
        let refused = |text: &str| read(text.as_bytes()).expect_err("refused").to_string();
        assert_eq!(
            refused(r#"{"code":"1","code":"2"}"#),
            "'code' is given twice at line 1 column 18"
        );
        assert!(refused(r#"[{"a":{"b":1,"\u0062":1}}]"#).starts_with("'b' is given twice"));
        assert!(refused("[1,]").starts_with("trailing comma"));
        assert!(refused("1 2").starts_with("trailing characters"));
        let nested = "[".repeat(200);
        assert!(refused(&nested).starts_with("recursion limit exceeded"));
    }
}
