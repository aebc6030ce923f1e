//! Values for the sandbox, with functions at any depth.
//!
//! In: anything that serde can write; a [`HostFunction`](super::HostFunction), a `Value` and an [`Input`] inside cross
//! as themselves. Out: one message. A value that cannot be written becomes an error, which is kept until a run starts
//! and knows the path.

use serde::{Serialize, Serializer, ser::Error as _};

use super::{HostFunction, HostPromise};
use crate::{
    Value,
    value::{
        Fault, Message, Writer,
        serde::host_object::{self, Cargo, MESSAGE},
        to_message,
    },
};

/// A value for the sandbox: data, functions, or both.
///
/// Made of anything that serde can write, as [`Value::serialize`] does it, with one addition: a [`HostFunction`], a
/// [`HostPromise`], a [`Value`] or another `Input` inside crosses as itself. A struct with functions in its fields is a
/// fine input.
///
/// ```
/// use isolane::{HostFunction, Input};
///
/// #[derive(serde::Serialize)]
/// struct Tools {
///     version: u32,
///     upper: HostFunction,
/// }
/// let tools = Tools { version: 1, upper: HostFunction::new(|text: String| text.to_uppercase()) };
/// let input = Input::new(vec![tools]);
/// ```
#[derive(Clone)]
pub struct Input(Result<Message, Fault>);

impl Input {
    /// The value. If it cannot be written, the run that receives it fails as misuse, with the path. To find out at once
    /// use [`Input::serialize`].
    pub fn new(value: impl Serialize) -> Self {
        Self(to_message(&value))
    }

    /// The value, or an error if it cannot be written.
    ///
    /// # Errors
    /// An error of the type itself, or nesting deeper than 128.
    pub fn serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, crate::Error> {
        let message = to_message(value).map_err(|fault| fault.into_error("value"))?;
        Ok(Self(Ok(message)))
    }

    /// `undefined`
    #[must_use]
    pub fn undefined() -> Self {
        Self::written(Writer::undefined)
    }

    /// `null`
    #[must_use]
    pub fn null() -> Self {
        Self::written(Writer::null)
    }

    /// A `Date`, by its epoch milliseconds; NaN makes an invalid one.
    #[must_use]
    pub fn date(epoch_ms: f64) -> Self {
        Self::written(|writer| writer.date(epoch_ms))
    }

    /// A `Uint8Array`.
    #[must_use]
    pub fn bytes(bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        Self::written(|writer| {
            let blob = writer.blob(bytes);
            writer.view(crate::value::ViewKind::Uint8Array, blob, 0, length);
        })
    }

    /// An array.
    #[must_use]
    pub fn array(elements: impl IntoIterator<Item = Self>) -> Self {
        Self::new(elements.into_iter().collect::<Vec<_>>())
    }

    /// A plain object, its keys in that order.
    #[must_use]
    pub fn object<K: Into<String>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let mut inputs = Inputs::new();
        for (key, value) in entries {
            inputs.insert(key, value);
        }
        Self::new(inputs)
    }

    pub(super) fn message(&self) -> Result<&Message, Fault> {
        self.0.as_ref().map_err(Clone::clone)
    }

    fn written(write: impl FnOnce(&mut Writer)) -> Self {
        let mut writer = Writer::new();
        write(&mut writer);
        Self(Ok(Message { value: writer.finish(), links: Vec::new() }))
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Ok(message) => {
                write!(out, "Input({})", crate::data::inspect::inspect(&message.value, 200))
            }
            Err(fault) => write!(out, "Input({fault})"),
        }
    }
}

impl Default for Input {
    fn default() -> Self {
        Self::undefined()
    }
}

impl Serialize for Input {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(MESSAGE, &Payload(self))
    }
}

struct Payload<'i>(&'i Input);

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0.message().map_err(S::Error::custom)?;
        if host_object::answer(|| Cargo::Message(message.clone())) {
            serializer.serialize_unit()
        } else {
            message.value.serialize(serializer)
        }
    }
}

macro_rules! from {
    ($($from:ty),*) => {$(
        impl From<$from> for Input {
            fn from(value: $from) -> Self {
                Self::new(value)
            }
        }
    )*};
}

from!((), bool, i32, u32, i64, u64, f64, &str, String, Value, HostFunction, HostPromise);

/// Values by name, in order: globals, or the exports of a bridged module.
///
/// As a value of its own it is a plain object. Giving a name again replaces its value.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    entries: Vec<(String, Input)>,
    places: rustc_hash::FxHashMap<String, usize>,
}

impl Inputs {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Serialize) -> Self {
        self.insert(name, value);
        self
    }

    /// Adds one, made as [`Input::new`] does it.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Serialize) {
        let (name, value) = (name.into(), Input::new(value));
        let next = self.entries.len();
        let place = *self.places.entry(name.clone()).or_insert(next);
        match self.entries.get_mut(place) {
            Some((_, known)) => *known = value,
            None => self.entries.push((name, value)),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// Names and values, in the order in which the names were added first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Input)> {
        self.entries.iter().map(|(name, input)| (name.as_str(), input))
    }
}

impl Serialize for Inputs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<K: Into<String>, V: Serialize> FromIterator<(K, V)> for Inputs {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut inputs = Self::new();
        inputs.extend(entries);
        inputs
    }
}

impl<K: Into<String>, V: Serialize> Extend<(K, V)> for Inputs {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(name, value)| self.insert(name, value));
    }
}

impl<K: Into<String>, V: Serialize, const N: usize> From<[(K, V); N]> for Inputs {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}
