//! The parameters of a statement.
//!
//! In: a value of the sandbox, `[…]` or `{…}`. Out: values of SQLite, bound to a statement, or an error in words.

use std::{collections::HashMap, fmt};

use isolane::{
    HostError, Value,
    value::{Event, Str},
};
use rusqlite::{
    Statement,
    types::{ToSql, ToSqlOutput, ValueRef},
};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::{connection::MOST_PARAMETERS, json_text, sql_error::mistake};
use crate::{
    room::{self, Room},
    wtf8::ILL_FORMED,
};

/// The parameters of one statement.
#[derive(Debug)]
pub(super) enum Params {
    List(Vec<Param>),
    Named(Vec<(String, Param)>),
}

/// A value of SQLite.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Param {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl ToSql for Param {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn type_error(text: impl Into<String>) -> HostError {
    HostError::new("TypeError", text)
}

impl Params {
    /// Reads the parameters; `undefined` and `null` are none.
    pub(super) fn read(value: &Value, room: &mut dyn Room) -> Result<Self, HostError> {
        const MOST: u32 = MOST_PARAMETERS.unsigned_abs();
        let wrong = || type_error("params must be an array or an object");
        match value.reader().event().map_err(|_| wrong())? {
            Event::Undefined | Event::Null => Ok(Self::List(Vec::new())),
            Event::Array(length) | Event::SparseArray(length) if length > MOST => {
                Err(mistake(format!("at most {MOST} parameters, {length} given")))
            }
            Event::Array(_) | Event::SparseArray(_) => {
                let values = room::elements(value, room).ok_or_else(wrong)?;
                let read = |(at, value): (usize, &Value)| {
                    param(value, &format_args!("parameter {}", at + 1), room)
                };
                Ok(Self::List(values.iter().enumerate().map(read).collect::<Result<_, _>>()?))
            }
            Event::Object => {
                let Entries(entries) = value.deserialize().map_err(|_| wrong())?;
                let mut named = Vec::with_capacity(entries.len());
                for (name, value) in entries {
                    let param = param(&value, &format_args!("parameter '{name}'"), room)?;
                    named.push((name, param));
                }
                Ok(Self::Named(named))
            }
            _ => Err(wrong()),
        }
    }

    /// Binds the parameters to a statement, all of whose parameters they must be.
    pub(super) fn bind(&self, statement: &mut Statement<'_>) -> Result<(), BindError> {
        match self {
            Self::List(params) => bind_list(params, statement),
            Self::Named(params) => bind_named(params, statement),
        }
    }
}

/// A failure to bind: a mistake of the caller, or an error of SQLite.
#[derive(Debug)]
pub(super) enum BindError {
    Mistake(HostError),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for BindError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn bind_list(params: &[Param], statement: &mut Statement<'_>) -> Result<(), BindError> {
    let needed = statement.parameter_count();
    for index in 1..=needed {
        if let Some(name) = statement.parameter_name(index).filter(|name| !name.starts_with('?')) {
            return Err(BindError::Mistake(mistake(format!("no value for {name}"))));
        }
    }
    if needed != params.len() {
        let plural = if needed == 1 { "" } else { "s" };
        let text = format!("{needed} parameter{plural} needed, {} given", params.len());
        return Err(BindError::Mistake(mistake(text)));
    }
    for (at, param) in params.iter().enumerate() {
        statement.raw_bind_parameter(at + 1, param)?;
    }
    Ok(())
}

fn bind_named(params: &[(String, Param)], statement: &mut Statement<'_>) -> Result<(), BindError> {
    // Each value, and whether the statement has a parameter for it.
    let mut values: HashMap<&str, (&Param, bool)> =
        params.iter().map(|(name, param)| (&**name, (param, false))).collect();
    for index in 1..=statement.parameter_count() {
        let name = statement.parameter_name(index).unwrap_or("?");
        // With its sign or without.
        let named = Some(name).filter(|name| !name.starts_with('?'));
        let bare = named.and_then(|name| name.get(1..));
        let given = named.into_iter().chain(bare).find(|name| values.contains_key(name));
        let Some((param, is_used)) = given.and_then(|name| values.get_mut(name)) else {
            return Err(BindError::Mistake(mistake(format!("no value for {name}"))));
        };
        *is_used = true;
        let param = *param;
        statement.raw_bind_parameter(index, param)?;
    }
    match params.iter().find(|(name, _)| values.get(&**name).is_some_and(|(_, used)| !used)) {
        Some((name, _)) => Err(BindError::Mistake(mistake(format!("no parameter for '{name}'")))),
        None => Ok(()),
    }
}

/// The value as one of SQLite's. `label` names it in errors.
fn param(value: &Value, label: &dyn fmt::Display, room: &mut dyn Room) -> Result<Param, HostError> {
    let wrong = || type_error(format!("{label} is no value that a database can hold"));
    Ok(match value.reader().event().map_err(|_| wrong())? {
        Event::Undefined | Event::Null | Event::Hole => Param::Null,
        Event::Bool(flag) => Param::Integer(flag.into()),
        Event::Int(number) => Param::Integer(number.into()),
        Event::Double(number) => of_number(number),
        Event::BigInt { negative, magnitude } => {
            let number = integer(negative, magnitude).ok_or_else(|| {
                HostError::new("RangeError", format!("{label} is a bigint of more than 64 bits"))
            })?;
            Param::Integer(number)
        }
        Event::String(Str::Utf8(text)) => Param::Text(text.to_owned()),
        // SQLite has no such text, and with U+FFFD in its place two keys might be one.
        Event::String(Str::Utf16(_)) => {
            return Err(type_error(format!("{label} {ILL_FORMED}")));
        }
        Event::Date(epoch_ms) => isolane::iso_date(epoch_ms).map_or(Param::Null, Param::Text),
        Event::Buffer(blob) => {
            Param::Blob(value.blobs().get(blob as usize).ok_or_else(wrong)?.clone())
        }
        Event::View { kind, blob, byte_offset, length } => {
            let blob = value.blobs().get(blob as usize).ok_or_else(wrong)?;
            let start = usize::try_from(byte_offset).map_err(|_| wrong())?;
            let bytes = usize::try_from(length).ok();
            let bytes = bytes.and_then(|length| length.checked_mul(kind.element_bytes()));
            let end = bytes.and_then(|bytes| bytes.checked_add(start)).ok_or_else(wrong)?;
            Param::Blob(blob.get(start..end).ok_or_else(wrong)?.to_vec())
        }
        Event::Object | Event::Array(_) | Event::SparseArray(_) => {
            Param::Text(json_text(value, &label.to_string(), room)?)
        }
        _ => return Err(wrong()),
    })
}

/// A safe integer is an INTEGER, NaN is NULL, any other number REAL.
fn of_number(number: f64) -> Param {
    /// `Number.MAX_SAFE_INTEGER`
    const MOST: f64 = 9_007_199_254_740_991.0;
    if number.is_nan() {
        Param::Null
    } else if number.fract() == 0.0 && number.abs() <= MOST {
        #[expect(clippy::cast_possible_truncation, reason = "a safe integer")]
        Param::Integer(number as i64)
    } else {
        Param::Real(number)
    }
}

/// The integer of a bigint's sign and magnitude, if it has at most 64 bits.
fn integer(negative: bool, magnitude: &[u8]) -> Option<i64> {
    let used = magnitude.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut bytes = [0; 16];
    bytes.get_mut(..used)?.copy_from_slice(magnitude.get(..used)?);
    let number = i128::try_from(u128::from_le_bytes(bytes)).ok()?;
    i64::try_from(if negative { -number } else { number }).ok()
}

/// The entries of an object, in their order.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Entries;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bigints_have_64_bits() {
        let most = (1_u64 << 63).to_le_bytes();
        assert_eq!(integer(true, &most), Some(i64::MIN));
        assert_eq!(integer(false, &most), None);
        assert_eq!(integer(false, &i64::MAX.to_le_bytes()), Some(i64::MAX));
        assert_eq!(integer(true, &[]), Some(0));
        assert_eq!(
            integer(false, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            Some(1)
        );
        assert_eq!(integer(false, &[0xFF; 16]), None);
        assert_eq!(integer(true, &[0xFF; 40]), None);
    }

    #[test]
    fn numbers_are_integers_if_they_are_safe() {
        assert_eq!(of_number(-0.0), Param::Integer(0));
        assert_eq!(of_number(9_007_199_254_740_991.0), Param::Integer(9_007_199_254_740_991));
        assert_eq!(of_number(9_007_199_254_740_992.0), Param::Real(9_007_199_254_740_992.0));
        assert_eq!(of_number(f64::NAN), Param::Null);
        assert_eq!(of_number(f64::INFINITY), Param::Real(f64::INFINITY));
    }
}
