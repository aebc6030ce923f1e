//! Options as a face handed them over.
//!
//! In: an object. Out: typed values, or the error of the option that is wrong, as the caller's language spells it.

use std::collections::BTreeMap;

use isolane::{Error, ErrorKind, Input, Inputs, Spelling, Step, unknown_name, wrong_type};
use isolane_door::Given;

use super::type_error;
use crate::options::spelled;

/// The options of a system.
pub(super) struct Options<'g> {
    fields: &'g [(String, Given)],
    spelling: Spelling,
}

impl<'g> Options<'g> {
    /// # Errors
    /// A value that is no object, an option that is none of these.
    pub(super) fn new(
        given: &'g Given,
        names: &[&'static str],
        spelling: Spelling,
    ) -> Result<Self, Error> {
        let fields: &[(String, Given)] = match given {
            Given::Undefined | Given::Null => &[],
            Given::Object(fields) => fields,
            other => return Err(wrong_type("options", "an object", other.kind())),
        };
        let names: Vec<String> = names.iter().map(|name| spelled(name, spelling)).collect();
        match fields.iter().find(|(key, _)| !names.contains(key)) {
            Some((key, _)) => Err(unknown_name("", key, &names)),
            None => Ok(Self { fields, spelling }),
        }
    }

    /// The name as the caller wrote it, and the value.
    pub(super) fn get(&self, name: &'static str) -> (String, &'g Given) {
        let name = spelled(name, self.spelling);
        let field = self.fields.iter().find(|(key, _)| *key == name);
        (name, field.map_or(&Given::Undefined, |(_, value)| value))
    }

    /// A whole number; `None` if it is not given.
    pub(super) fn whole(&self, name: &'static str) -> Result<Option<u64>, Error> {
        let (name, value) = self.get(name);
        whole(&name, value)
    }

    /// The same, where a null means that there is none, and `default` counts if nothing is given.
    pub(super) fn nullable(
        &self,
        name: &'static str,
        default: Option<u64>,
    ) -> Result<Option<u64>, Error> {
        match self.get(name) {
            (_, Given::Undefined) => Ok(default),
            (name, value) => whole(&name, value),
        }
    }

    /// A text; `None` if it is not given.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<String>, Error> {
        match self.get(name) {
            (_, Given::Undefined | Given::Null) => Ok(None),
            (_, Given::Text(text)) => Ok(Some(text.clone())),
            (name, other) => Err(wrong_type(&name, "a string", other.kind())),
        }
    }

    pub(super) fn inputs(&self, name: &'static str) -> Result<Inputs, Error> {
        let (name, value) = self.get(name);
        inputs(&name, value)
    }

    pub(super) fn imports(&self, name: &'static str) -> Result<BTreeMap<String, Inputs>, Error> {
        let (name, value) = self.get(name);
        let each = |(key, exports): &(String, Given)| {
            Ok((key.clone(), inputs(&format!("{name}[{key:?}]"), exports)?))
        };
        entries(&name, value)?.iter().map(each).collect()
    }

    pub(super) fn texts(&self, name: &'static str) -> Result<BTreeMap<String, String>, Error> {
        let (name, value) = self.get(name);
        let each = |(key, text): &(String, Given)| match text {
            Given::Text(text) => Ok((key.clone(), text.clone())),
            other => Err(wrong_type(&format!("{name}[{key:?}]"), "a string", other.kind())),
        };
        entries(&name, value)?.iter().map(each).collect()
    }
}

/// A whole number; `None` if it is not given.
pub(super) fn whole(name: &str, value: &Given) -> Result<Option<u64>, Error> {
    match value {
        Given::Undefined | Given::Null => Ok(None),
        Given::Number(number) if number.fract() == 0.0 && (0.0..1e15).contains(number) =>
        {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
            Ok(Some(*number as u64))
        }
        Given::Number(number) => {
            let message = format!("{name} must be a whole number, got {}", shown(*number));
            Err(Error::new(ErrorKind::Range, message))
        }
        other => Err(wrong_type(name, "a whole number", other.kind())),
    }
}

/// A value that is JSON in all its parts.
///
/// # Errors
/// A part that JSON has not, with its path.
pub(super) fn strict_json(path: &str, value: &Given) -> Result<serde_json::Value, Error> {
    read_json(path, value, false)
}

/// The same without the fields that are `undefined`.
///
/// # Errors
/// As [`strict_json`].
pub(super) fn lenient_json(path: &str, value: &Given) -> Result<serde_json::Value, Error> {
    read_json(path, value, true)
}

fn read_json(path: &str, value: &Given, drops_undefined: bool) -> Result<serde_json::Value, Error> {
    let fault = |kind: &str| {
        let place = match path.trim_start_matches('.') {
            "" => "the request",
            place => place,
        };
        Err(type_error(format!("{place} is {kind}, which JSON has not")))
    };
    match value {
        Given::List(list) => {
            let each =
                |(at, value)| read_json(&Step::Index(at).after(path), value, drops_undefined);
            list.iter().enumerate().map(each).collect::<Result<Vec<_>, _>>().map(Into::into)
        }
        Given::Object(entries) => {
            let is_field =
                |(_, value): &&(String, Given)| !drops_undefined || *value != Given::Undefined;
            let each = |(key, value): &(String, Given)| {
                let path = Step::Key(key.clone()).after(path);
                Ok((key.clone(), read_json(&path, value, drops_undefined)?))
            };
            let fields = entries.iter().filter(is_field).map(each).collect::<Result<_, Error>>()?;
            Ok(serde_json::Value::Object(fields))
        }
        Given::Undefined => fault("undefined"),
        Given::Number(number) if !number.is_finite() => fault(&shown(*number)),
        other => other.json().map_or_else(|| fault(other.kind()), Ok),
    }
}

/// A number as JavaScript writes it.
fn shown(number: f64) -> String {
    isolane::inspect(&isolane::Value::serialize(&number).unwrap_or_default(), 100)
}

/// The same as `usize`.
pub(super) fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn entries<'g>(name: &str, value: &'g Given) -> Result<&'g [(String, Given)], Error> {
    match value {
        Given::Undefined | Given::Null => Ok(&[]),
        Given::Object(entries) => Ok(entries),
        other => Err(wrong_type(name, "an object", other.kind())),
    }
}

fn inputs(name: &str, value: &Given) -> Result<Inputs, Error> {
    let each = |(key, value): &(String, Given)| {
        Ok::<_, Error>((key.clone(), input(&format!("{name}.{key}"), value)?))
    };
    entries(name, value)?.iter().map(each).collect()
}

/// A value for the sandbox; functions become host functions that answer with promises.
fn input(path: &str, value: &Given) -> Result<Input, Error> {
    Ok(match value {
        Given::Undefined => Input::undefined(),
        Given::Null => Input::null(),
        Given::Date(ms) => Input::date(*ms),
        Given::Bytes(bytes) => Input::bytes(bytes.clone()),
        Given::Function(callback) => Input::new(callback.host_function()),
        Given::List(list) => {
            let each = |(at, value)| input(&format!("{path}[{at}]"), value);
            Input::array(list.iter().enumerate().map(each).collect::<Result<Vec<_>, _>>()?)
        }
        Given::Object(entries) => {
            let each = |(key, value): &(String, Given)| {
                Ok::<_, Error>((key.clone(), input(&format!("{path}.{key}"), value)?))
            };
            Input::object(entries.iter().map(each).collect::<Result<Vec<_>, _>>()?)
        }
        Given::BigInt(digits) => match digits.parse::<i128>() {
            Ok(number) => Input::new(number),
            Err(_) => return Err(type_error(format!("{path} has more than 38 digits"))),
        },
        Given::Bool(is) => Input::new(is),
        Given::Number(number) => Input::new(number),
        Given::Text(text) | Given::Torn(text) => Input::new(text),
        Given::Other(kind) => {
            return Err(type_error(format!("{path} is {kind}, which cannot be handed over here")));
        }
    })
}
