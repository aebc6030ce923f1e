//! Errors that cross, thrown by a host function or by a sandbox function.

use std::{fmt, sync::Arc};

use crate::{
    data::{
        inspect::inspect,
        text::{MESSAGE_LIMIT, bounded},
    },
    error::Source,
    value::{ErrorClass, Event, Fault, Value, Writer},
};

/// An error that crosses with its name and its code.
///
/// If a host function fails with any other error, it throws an `Error` with that error's text. With this one the host
/// chooses the name and the code. The name of a built-in class, such as `TypeError`, makes it an instance of that
/// class.
///
/// Its [`source`](std::error::Error::source) stays with the host: it is part of the chain that a
/// [`StatusError`](crate::StatusError) shows if the sandbox did not catch the error. Two errors are equal when
/// everything but their sources is equal.
#[derive(Clone, Debug)]
pub struct HostError {
    /// The error's name.
    pub name: String,
    /// The error's message.
    pub message: String,
    /// The property `code`, if it has one.
    pub code: Option<ErrorCode>,
    source: Option<Source>,
}

/// The `code` of an error.
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorCode {
    /// Such as `ENOENT`.
    Text(String),
    /// Such as 404.
    Number(f64),
}

impl From<&str> for ErrorCode {
    fn from(code: &str) -> Self {
        Self::Text(code.to_owned())
    }
}

impl From<i32> for ErrorCode {
    fn from(code: i32) -> Self {
        Self::Number(f64::from(code))
    }
}

impl HostError {
    /// An error of that name.
    #[must_use]
    pub fn new(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), message: message.into(), code: None, source: None }
    }

    /// The same with a code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<ErrorCode>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// The same with that source, which never enters the sandbox.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    pub(super) fn source_shared(&self) -> Option<Source> {
        self.source.clone()
    }

    pub(super) fn serialization(fault: Fault, root: &str) -> Self {
        Self::of_fault("SerializationError", fault, root)
    }

    pub(super) fn of_fault(name: &str, fault: Fault, root: &str) -> Self {
        let source = fault.source().cloned();
        Self { source, ..Self::new(name, fault.text(root)) }
    }

    /// The error as a message.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut writer = Writer::new();
        writer.error(class_of(&self.name));
        writer.string(&self.name);
        writer.string(&self.message);
        writer.undefined();
        match &self.code {
            None => writer.undefined(),
            Some(ErrorCode::Text(code)) => writer.string(code),
            Some(ErrorCode::Number(code)) => writer.number(*code),
        }
        writer.finish()
    }

    /// The error that was thrown on the other side; a value that is no Error becomes the text of one.
    pub(super) fn from_value(thrown: &Value) -> Self {
        Self::read(thrown).unwrap_or_else(|| Self::new("Error", inspect(thrown, MESSAGE_LIMIT)))
    }

    fn read(thrown: &Value) -> Option<Self> {
        let mut reader = thrown.reader();
        let limited = |text: String| bounded(text, MESSAGE_LIMIT);
        match reader.event().ok()? {
            Event::Error(_) => {
                let name = limited(reader.text().ok()?.to_string_lossy());
                let message = limited(reader.text().ok()?.to_string_lossy());
                reader.event().ok()?;
                let code = match reader.event().ok()? {
                    Event::Int(code) => Some(ErrorCode::Number(f64::from(code))),
                    Event::Double(code) => Some(ErrorCode::Number(code)),
                    Event::String(code) => Some(ErrorCode::Text(limited(code.to_string_lossy()))),
                    _ => None,
                };
                Some(Self { name, message, code, source: None })
            }
            Event::String(text) => Some(Self::new("Error", limited(text.to_string_lossy()))),
            _ => None,
        }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.name, self.message)
    }
}

impl std::error::Error for HostError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

impl PartialEq for HostError {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.message, &self.code) == (&other.name, &other.message, &other.code)
    }
}

fn class_of(name: &str) -> ErrorClass {
    match name {
        "SerializationError" | "TypeError" => ErrorClass::TypeError,
        "RangeError" => ErrorClass::RangeError,
        "ReferenceError" => ErrorClass::ReferenceError,
        "SyntaxError" => ErrorClass::SyntaxError,
        "URIError" => ErrorClass::URIError,
        "EvalError" => ErrorClass::EvalError,
        _ => ErrorClass::Error,
    }
}
