//! The types that a host function may return.
//!
//! In: anything that serde can write, or a `Result` of that. Out: the value that the call returns or throws in the
//! sandbox. `Result` implements serde's trait itself if its error does, so each way of reading a return type has a
//! marker of its own, which the compiler finds.

use std::{error::Error, sync::Arc};

use serde::Serialize;

use super::HostError;
use crate::{
    Completion, Value,
    error::Source,
    value::{Event, Fault, Message, Thrown, to_outcome},
};

/// The outcome of a host function, on its way to the sandbox. Opaque.
pub struct Returned {
    pub(super) outcome: Result<Message, Message>,
    /// The error that was thrown, which the host keeps.
    pub(super) cause: Option<Source>,
    /// The reason for which no message could be written of the value. It takes the place of `outcome`.
    pub(super) unwritten: Option<Fault>,
}

/// A type that a host function may return.
///
/// - Anything that implements [`Serialize`], [`Value`], [`Input`](crate::Input) and functions included.
/// - `Result<T, E>` of such a `T`, where `E` is a string, a [`HostError`], any other
///   [`std::error::Error`], or `Box<dyn Error + Send + Sync>`. An `Err` is thrown: a [`HostError`]
///   with its name and code, any other error as an `Error` with its text. An error that implements
///   [`Serialize`] and not [`Error`] is thrown as that value.
///
/// An [`Error`] that the sandbox does not catch is the source of the [`StatusError`](crate::StatusError) of its run,
/// so it has to be [`Send`] and [`Sync`].
///
/// If an error implements both traits, the compiler finds the type ambiguous: convert the error, for example with `?`
/// into the box. Convert errors that do not implement [`Error`], such as anyhow's, in the same way.
#[diagnostic::on_unimplemented(
    message = "a host function cannot return `{Self}`",
    note = "it returns what implements `serde::Serialize`, or a `Result` of that with an error \
            that implements `std::error::Error`"
)]
pub trait IntoOutput<Marker> {
    /// Writes the value that was returned or thrown.
    fn into_output(self) -> Returned;
}

/// Marks a value that is returned as it is.
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
            Ok(Ok(message)) => Returned::from_outcome(Ok(message)),
            Ok(Err(Thrown(message))) => match message.value.reader().event() {
                Ok(Event::String(text)) => {
                    Returned::refused(&HostError::new("Error", text.to_string_lossy()))
                }
                _ => Returned::from_outcome(Err(message)),
            },
            Err(fault) => {
                Returned { unwritten: Some(fault), ..Completion::Ok(Value::undefined()).into() }
            }
        }
    }
}

impl<T: Serialize, E: Error + Send + Sync + 'static> IntoOutput<Fallible> for Result<T, E> {
    fn into_output(self) -> Returned {
        match self {
            Ok(value) => value.into_output(),
            Err(error) => Returned::thrown(Arc::new(error)),
        }
    }
}

impl<T: Serialize> IntoOutput<BoxedError> for Result<T, Box<dyn Error + Send + Sync>> {
    fn into_output(self) -> Returned {
        match self {
            Ok(value) => value.into_output(),
            Err(error) => Returned::thrown(Arc::from(error)),
        }
    }
}

impl Returned {
    /// The throw of an error of this library; its cause is that error's source.
    pub(super) fn refused(error: &HostError) -> Self {
        Self { cause: error.source_shared(), ..Self::from(Err(error.to_value())) }
    }

    fn thrown(error: Source) -> Self {
        let value = match error.downcast_ref::<HostError>() {
            Some(error) => error.to_value(),
            None => HostError::new("Error", error.to_string()).to_value(),
        };
        Self { cause: Some(error), ..Self::from(Err(value)) }
    }

    pub(super) fn from_outcome(outcome: Result<Message, Message>) -> Self {
        Self { outcome, cause: None, unwritten: None }
    }
}

impl From<Completion> for Returned {
    fn from(completion: Completion) -> Self {
        let message = |value: Value| Message { value, links: Vec::new() };
        Self::from_outcome(completion.map(message).map_err(message))
    }
}

impl std::fmt::Debug for Returned {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Returned").field("threw", &self.outcome.is_err()).finish_non_exhaustive()
    }
}
