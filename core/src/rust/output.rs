//! What a host function may return.
//!
//! In: anything that serde can write, or a `Result` of that. Out: what the sandbox sees returned or
//! thrown. `Result` implements serde's trait itself wherever its error does, so each way of reading
//! a return type has a marker of its own, which the compiler finds.

use std::error::Error;

use serde::Serialize;

use super::HostError;
use crate::{
    Completion, Value,
    value::{Event, Message, Thrown, to_outcome},
};

/// What a host function came to, on its way to the sandbox. Opaque.
pub struct Returned(pub(super) Result<Message, Message>);

/// A type that a host function may return.
///
/// - Anything that implements [`Serialize`], [`Value`], [`Input`](crate::Input) and functions
///   included.
/// - `Result<T, E>` of such a `T`, where `E` is a string, a [`HostError`], any other
///   [`std::error::Error`], or `Box<dyn Error + Send + Sync>`. An `Err` is thrown: a [`HostError`]
///   with its name and code, any other error as an `Error` with its text. An error that implements
///   [`Serialize`] and not [`Error`] is thrown as that value.
///
/// Where an error implements both traits the compiler asks which is meant: convert it, for example
/// with `?` into the box. So are errors that are no [`Error`] themselves, such as anyhow's.
#[diagnostic::on_unimplemented(
    message = "a host function cannot return `{Self}`",
    note = "it returns what implements `serde::Serialize`, or a `Result` of that with an error \
            that implements `std::error::Error`"
)]
pub trait IntoOutput<Marker> {
    /// Writes what was returned or thrown.
    fn into_output(self) -> Returned;
}

/// Marks what is returned as it is.
#[derive(Debug)]
pub enum Plain {}

/// Marks a `Result` of any error.
#[derive(Debug)]
pub enum Fallible {}

/// Marks a `Result` of a boxed error.
#[derive(Debug)]
pub enum BoxedError {}

impl<T: Serialize> IntoOutput<Plain> for T {
    fn into_output(self) -> Returned {
        match to_outcome(&self) {
            Ok(Ok(message)) => Returned(Ok(message)),
            Ok(Err(Thrown(message))) => match message.value.reader().event() {
                Ok(Event::String(text)) => {
                    Returned::error(&HostError::new("Error", text.to_string_lossy()))
                }
                _ => Returned(Err(message)),
            },
            Err(fault) => Returned::error(&HostError::serialization(fault, "result")),
        }
    }
}

impl<T: Serialize, E: Error + 'static> IntoOutput<Fallible> for Result<T, E> {
    fn into_output(self) -> Returned {
        match self {
            Ok(value) => value.into_output(),
            Err(error) => Returned::thrown(&error),
        }
    }
}

impl<T: Serialize> IntoOutput<BoxedError> for Result<T, Box<dyn Error + Send + Sync>> {
    fn into_output(self) -> Returned {
        match self {
            Ok(value) => value.into_output(),
            Err(error) => Returned::thrown(&*error),
        }
    }
}

impl Returned {
    pub(super) fn error(error: &HostError) -> Self {
        Self::from(Err(error.to_value()))
    }

    fn thrown(error: &(dyn Error + 'static)) -> Self {
        match error.downcast_ref::<HostError>() {
            Some(error) => Self::error(error),
            None => Self::error(&HostError::new("Error", error.to_string())),
        }
    }
}

impl From<Completion> for Returned {
    fn from(completion: Completion) -> Self {
        let message = |value: Value| Message { value, links: Vec::new() };
        Self(completion.map(message).map_err(message))
    }
}

impl std::fmt::Debug for Returned {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Returned").field("threw", &self.0.is_err()).finish_non_exhaustive()
    }
}
