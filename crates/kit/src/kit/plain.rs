//! Plain data of a host: options and arguments, before anybody knows their types.
//!
//! In: a message. Out: a tree of owned values. Texts with lone surrogates are found before, as owned texts have none.

use std::fmt;

use isolane::{
    Error, ErrorKind, Value,
    value::{Event, Str},
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

use crate::{
    message_walk::{Node, Place, Visit, Walk},
    wtf8::ILL_FORMED,
};

/// The first place in a message whose text or name has a lone surrogate; `None` without one. The steps are names, shown
/// without their surrogates, and indices.
///
/// Two texts that differ in such a surrogate alone would be one text once they are owned.
pub(in crate::kit) fn lone_surrogate(message: &Value) -> Option<Vec<Step>> {
    let mut walk = Walk::new(message);
    let mut steps: Vec<Step> = Vec::new();
    while let Ok(Some(visit)) = walk.step() {
        let Visit::Node(place, node) = visit else { continue };
        let (step, is_lone) = match place {
            Place::Root => (None, false),
            Place::Property(name) => {
                let shown = name.to_string_lossy().chars().take(SHOWN_CHARS).collect();
                (Some(Step::Name(shown)), matches!(name, Str::Utf16(_)))
            }
            Place::Element(index)
            | Place::MapKey(index)
            | Place::MapValue(index)
            | Place::Member(index) => (Some(Step::Index(index)), false),
        };
        if let Some(step) = step {
            steps.truncate(walk.depth().saturating_sub(1));
            steps.push(step);
        }
        if is_lone || matches!(node, Node::Plain(Event::String(Str::Utf16(_)))) {
            return Some(steps);
        }
    }
    None
}

/// A step to a place in a message.
pub(in crate::kit) enum Step {
    Name(String),
    Index(u32),
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(out, ".{name}"),
            Self::Index(index) => write!(out, "[{index}]"),
        }
    }
}

/// The misuse, if a text or a name in that message has a lone surrogate. `root` names the message; it is empty for
/// options, which are named by themselves.
///
/// # Errors
/// A type error that names the place, and has no other part of the text.
pub(in crate::kit) fn check_texts(message: &Value, root: &str) -> Result<(), Error> {
    let Some(steps) = lone_surrogate(message) else { return Ok(()) };
    let place: String =
        std::iter::once(root.to_owned()).chain(steps.iter().map(ToString::to_string)).collect();
    let place = if root.is_empty() { place.trim_start_matches('.') } else { &place };
    Err(Error::new(ErrorKind::Type, format!("{place} {ILL_FORMED}")))
}

/// The most characters of a name that an error shows.
const SHOWN_CHARS: usize = 100;

/// A value that a caller has written.
pub(in crate::kit) enum Plain {
    /// `null`, `undefined`, `None`.
    Nothing,
    Bool(bool),
    Number(f64),
    Text(String),
    Bytes,
    List(Vec<Plain>),
    Object(Vec<(String, Plain)>),
}

impl Plain {
    /// Reads a message.
    ///
    /// # Errors
    /// It has values that are no data, such as functions.
    pub(in crate::kit) fn read(message: &Value) -> Result<Self, Error> {
        message.deserialize()
    }

    /// The kind of value, for errors. It has no part of the value, which may be a secret.
    pub(in crate::kit) fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Bytes => "bytes",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Plain;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("plain data")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Plain, E> {
                Ok(Plain::Bool(value))
            }

            #[expect(
                clippy::cast_precision_loss,
                reason = "a number that is rounded is out of range"
            )]
            fn visit_i64<E>(self, value: i64) -> Result<Plain, E> {
                Ok(Plain::Number(value as f64))
            }

            #[expect(
                clippy::cast_precision_loss,
                reason = "a number that is rounded is out of range"
            )]
            fn visit_u64<E>(self, value: u64) -> Result<Plain, E> {
                Ok(Plain::Number(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Plain, E> {
                Ok(Plain::Number(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Plain, E> {
                Ok(Plain::Text(value.to_owned()))
            }

            fn visit_bytes<E>(self, _: &[u8]) -> Result<Plain, E> {
                Ok(Plain::Bytes)
            }

            fn visit_unit<E>(self) -> Result<Plain, E> {
                Ok(Plain::Nothing)
            }

            fn visit_none<E>(self) -> Result<Plain, E> {
                Ok(Plain::Nothing)
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Plain, D::Error> {
                Plain::deserialize(deserializer)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Plain, A::Error> {
                let mut list = Vec::new();
                while let Some(element) = elements.next_element()? {
                    list.push(element);
                }
                Ok(Plain::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Plain, A::Error> {
                let mut object = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    object.push(entry);
                }
                Ok(Plain::Object(object))
            }
        }

        deserializer.deserialize_any(Any)
    }
}
