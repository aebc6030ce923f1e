//! Comparison of results with expected ones.
//!
//! In: tagged JSON with patterns, and a value. Out: nothing, or the first difference. These are exact: the kind of each
//! object, the order of keys, holes, negative zero. An object that occurs twice in one value must be marked as shared.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use regex::Regex;
use serde_json::{Map, Value as Json};

use super::{
    js::{Js, Object, key_step},
    tagged::{leaf, tag},
};

/// Compares one value. `root` starts the path in the returned message.
pub(crate) fn compare(expected: &Json, got: &Js, root: &str) -> Result<(), String> {
    Comparison::default().value(expected, got, root)
}

/// Compares the entries of `expected` with those of the same key and ignores all others.
pub(crate) fn compare_some(
    expected: &Map<String, Json>,
    got: &[(&str, Option<Js>)],
    root: &str,
) -> Result<(), String> {
    for (key, expected) in expected {
        let path = format!("{root}{}", key_step(key));
        let got = got.iter().find(|(known, _)| known == key).and_then(|(_, got)| got.as_ref());
        match (is_absent(expected), got) {
            (true, None) => {}
            (true, Some(got)) => return Err(format!("{path}: expected none, got {got:?}")),
            (false, None) => return Err(format!("{path}: expected {expected}, got none")),
            (false, Some(got)) => compare(expected, got, &path)?,
        }
    }
    Ok(())
}

fn is_absent(expected: &Json) -> bool {
    matches!(tag(expected), Some(("$absent", _)))
}

type Identity = *const RefCell<Object>;

#[derive(Default)]
struct Comparison {
    ids: HashMap<String, Identity>,
    seen: HashMap<Identity, String>,
}

impl Comparison {
    fn value(&mut self, expected: &Json, got: &Js, path: &str) -> Result<(), String> {
        let differ = || Err(format!("{path}: expected {}, got {got:?}", shown(expected)));
        match tag(expected) {
            Some(("$any", _)) => return Ok(()),
            Some(("$match", pattern)) => {
                let pattern = Regex::new(pattern.as_str().expect("a pattern")).expect("a pattern");
                let matches = got.as_text().is_some_and(|text| pattern.is_match(&text));
                return if matches { Ok(()) } else { differ() };
            }
            Some(("$id", said)) => {
                if let Js::Object(object) = got {
                    let id = said["$id"].as_str().expect("an id").to_owned();
                    self.ids.insert(id, Rc::as_ptr(object));
                }
                return self.value(&said["$value"], got, path);
            }
            Some(("$ref", id)) => {
                let known = self.ids.get(id.as_str().expect("an id"));
                return match got {
                    Js::Object(object) if known == Some(&Rc::as_ptr(object)) => Ok(()),
                    _ => differ(),
                };
            }
            _ => {}
        }
        let same = match (expected, got) {
            (Json::Null, Js::Null) => true,
            (Json::Bool(expected), Js::Bool(got)) => expected == got,
            (Json::Number(expected), Js::Number(got)) => {
                same_number(expected.as_f64().unwrap_or(f64::NAN), *got)
            }
            (Json::String(expected), Js::String(got)) => {
                expected.encode_utf16().eq(got.iter().copied())
            }
            (_, Js::Object(object)) => {
                if let Some(other) = self.seen.insert(Rc::as_ptr(object), path.to_owned()) {
                    return Err(format!("{path}: the same object as {other}"));
                }
                return self.object(expected, &object.borrow(), path).unwrap_or_else(differ);
            }
            _ => tag(expected)
                .and_then(|(tag, said)| leaf(tag, said))
                .is_some_and(|leaf| same_leaf(&leaf, got)),
        };
        if same { Ok(()) } else { differ() }
    }

    /// `None` where they differ as a whole, and not in a part.
    fn object(&mut self, expected: &Json, got: &Object, path: &str) -> Option<Result<(), String>> {
        let same = match (tag(expected), expected, got) {
            (None, Json::Array(expected), Object::Array(length, elements)) => {
                if expected.len() != *length as usize || elements.len() != expected.len() {
                    return None;
                }
                let pairs = expected.iter().zip(elements);
                return Some(self.all(pairs.map(|(e, (i, g))| (e, g, format!("{path}[{i}]")))));
            }
            (None, Json::Object(expected), Object::Plain(entries)) => {
                let expected = expected.iter().filter(|(_, value)| !is_absent(value));
                let expected: Vec<(&str, &Json)> = expected.map(|(k, v)| (k.as_str(), v)).collect();
                return self.entries(&expected, entries, path);
            }
            (Some(("$entries", said)), _, Object::Plain(entries)) => {
                let said = said.as_array()?.iter();
                let expected: Option<Vec<(&str, &Json)>> =
                    said.map(|e| Some((e[0].as_str()?, &e[1]))).collect();
                return self.entries(&expected?, entries, path);
            }
            (Some(("$map", said)), _, Object::Map(entries)) => {
                let said = said.as_array()?;
                if said.len() != entries.len() {
                    return None;
                }
                let pairs = said.iter().zip(entries).enumerate();
                return Some(self.all(pairs.flat_map(|(at, (e, (key, value)))| {
                    let key_path = format!("{path}.keys()[{at}]");
                    [(&e[0], key, key_path), (&e[1], value, format!("{path}.values()[{at}]"))]
                })));
            }
            (Some(("$set", said)), _, Object::Set(members)) => {
                let said = said.as_array()?;
                if said.len() != members.len() {
                    return None;
                }
                let pairs = said.iter().zip(members).enumerate();
                return Some(
                    self.all(pairs.map(|(at, (e, g))| (e, g, format!("{path}.values()[{at}]")))),
                );
            }
            (Some(("$sparse", said)), _, Object::Array(length, elements)) => {
                let expected = said[1].as_object()?;
                let indices = expected.keys().map(|index| index.parse().ok());
                if said[0].as_u64()? != u64::from(*length)
                    || !indices.eq(elements.iter().map(|(index, _)| Some(*index)))
                {
                    return None;
                }
                let pairs = expected.values().zip(elements);
                return Some(self.all(pairs.map(|(e, (i, g))| (e, g, format!("{path}[{i}]")))));
            }
            (Some((tag, said)), ..) => match leaf(tag, said)? {
                Js::Object(leaf) => same_object(&leaf.borrow(), got),
                _ => false,
            },
            _ => false,
        };
        same.then_some(Ok(()))
    }

    fn entries(
        &mut self,
        expected: &[(&str, &Json)],
        got: &[(Vec<u16>, Js)],
        path: &str,
    ) -> Option<Result<(), String>> {
        let keys = expected.iter().map(|(key, _)| key.encode_utf16().collect::<Vec<u16>>());
        if !keys.eq(got.iter().map(|(key, _)| key.clone())) {
            return None;
        }
        let pairs = expected.iter().zip(got);
        Some(self.all(pairs.map(|((key, e), (_, g))| (*e, g, format!("{path}{}", key_step(key))))))
    }

    fn all<'v>(
        &mut self,
        pairs: impl Iterator<Item = (&'v Json, &'v Js, String)>,
    ) -> Result<(), String> {
        for (expected, got, path) in pairs {
            self.value(expected, got, &path)?;
        }
        Ok(())
    }
}

fn same_number(left: f64, right: f64) -> bool {
    left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan())
}

fn same_leaf(expected: &Js, got: &Js) -> bool {
    match (expected, got) {
        (Js::Undefined, Js::Undefined) => true,
        (Js::Number(left), Js::Number(right)) => same_number(*left, *right),
        (Js::BigInt(minus, left), Js::BigInt(also, right)) => minus == also && left == right,
        (Js::String(left), Js::String(right)) => left == right,
        _ => false,
    }
}

fn same_object(expected: &Object, got: &Object) -> bool {
    match (expected, got) {
        (Object::Date(left), Object::Date(right)) => same_number(*left, *right),
        (Object::RegExp(source, flags), Object::RegExp(other, letters)) => {
            source == other && flags == letters
        }
        (Object::Buffer(left), Object::Buffer(right)) => left == right,
        (
            Object::View { kind, blob, offset, length },
            Object::View { kind: other, blob: bytes, offset: at, length: count },
        ) => kind == other && blob == bytes && offset == at && length == count,
        (
            Object::Error { class, name, message, code },
            Object::Error { class: other, name: called, message: text, code: number },
        ) => class == other && name == called && message == text && same_leaf(code, number),
        _ => false,
    }
}

fn shown(expected: &Json) -> String {
    expected.to_string().chars().take(600).collect()
}
