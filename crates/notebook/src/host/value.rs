//! Values between cells and functions of the host.
//!
//! In: messages of either side. Out: the refusal of parts that only a run can hold, functions and promises. `seen` makes
//! JSON of a value.

use isolane::{
    Collection, HostError, MessageVisitor, Refused, Value,
    value::{Event, Writer},
};

/// Refuses functions and promises in a value, whose place is `root`.
///
/// # Errors
/// For the side that sent the value: a `SerializationError` that names the first of them.
pub(crate) fn refuse_links(value: &Value, root: &str) -> Result<(), HostError> {
    match isolane::refusal(value, &mut DataAlone) {
        Some(refusal) => Err(HostError::new("SerializationError", refusal.text(root))),
        None => Ok(()),
    }
}

/// Refuses functions and promises.
struct DataAlone;

impl<'a> MessageVisitor<'a> for DataAlone {
    fn node(&mut self, event: &Event<'a>) -> Result<(), Refused> {
        match event {
            Event::HostFunction(_) | Event::SandboxFunction(_) => Err("a function"),
            Event::HostPromise(_) | Event::SandboxPromise(_) => Err("a promise"),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, _collection: Collection, _entries: u32) {}

    fn key(&mut self, _event: &Event<'a>) -> Result<(), Refused> {
        Ok(())
    }

    fn end(&mut self) {}
}

/// The bytes of a value as it crosses, without its weight for a reader.
pub(crate) fn crossing_bytes(value: &Value) -> usize {
    value.nodes().len() + value.blobs().iter().map(Vec::len).sum::<usize>()
}

/// Whether a value is a plain object.
pub(crate) fn is_object(value: &Value) -> bool {
    matches!(value.reader().event(), Ok(Event::Object))
}

/// A text as a value.
pub(crate) fn text(text: &str) -> Value {
    let mut writer = Writer::new();
    writer.string(text);
    writer.finish()
}

/// The text that a value is.
pub(crate) fn as_text(value: &Value) -> Option<String> {
    match value.reader().event() {
        Ok(Event::String(text)) => Some(text.to_string_lossy()),
        _ => None,
    }
}
