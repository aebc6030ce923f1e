//! Plain data of a host: options and arguments, before anybody knows their types.
//!
//! In: a message. Out: a tree of owned values. Texts with lone surrogates are found before, as owned texts have none.

use std::fmt;

use isolane::{
    Error, ErrorKind, Value,
    value::{Event, Str},
};
use isolane_door::Given;

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
    List(Vec<Plain>),
    Object(Vec<(String, Plain)>),
    /// Another kind of value, with its name, such as `a Set`.
    Other(&'static str),
}

impl Plain {
    /// Reads a message. Values that are no data, such as functions, are of another kind.
    ///
    /// # Errors
    /// It nests too deeply, or is too large.
    pub(in crate::kit) fn read(message: &Value) -> Result<Self, Error> {
        Given::read(message, None).map(Self::of)
    }

    fn of(given: Given) -> Self {
        match given {
            Given::Undefined | Given::Null => Self::Nothing,
            Given::Bool(value) => Self::Bool(value),
            Given::Number(value) => Self::Number(value),
            // One that is rounded is out of range.
            Given::BigInt(digits) => Self::Number(digits.parse().unwrap_or(f64::NAN)),
            Given::Text(text) | Given::Torn(text) => Self::Text(text),
            Given::List(items) => Self::List(items.into_iter().map(Self::of).collect()),
            Given::Object(entries) => {
                let entries = entries.into_iter().map(|(name, value)| (name, Self::of(value)));
                Self::Object(entries.collect())
            }
            other => Self::Other(other.kind()),
        }
    }

    /// The kind of value, for errors. It has no part of the value, which may be a secret.
    pub(in crate::kit) fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
            Self::Other(kind) => kind,
        }
    }
}
