//! The globals of an execution: `stdout`, `stderr` and `output`.
//!
//! In: calls of the code. Out: calls of the bindings, or an error for the code.

use std::sync::Arc;

use isolane::{
    Completion, Error, ErrorKind, HostError, HostFunction, Inputs, Value,
    value::{Event, ViewKind},
};

use super::Reporter;
use crate::json::{JsonFault, Reading, to_json};

/// Their names.
pub(super) const NAMES: [&str; 3] = ["stdout", "stderr", "output"];

/// The most bytes of a patch that is read at all; the host of the execution has a bound of its own.
const MOST_PATCH_BYTES: usize = 64 << 20;

/// Adds them to what code sees.
pub(super) fn insert(globals: &mut Inputs, bindings: &Reporter) {
    let [out, err, output] = NAMES;
    for (name, is_error) in [(out, false), (err, true)] {
        let bindings = Arc::clone(bindings);
        globals
            .insert(name, HostFunction::raw(move |args| write(&bindings, name, is_error, &args)));
    }
    let bindings = Arc::clone(bindings);
    globals.insert(output, HostFunction::raw(move |args| merge(&bindings, &args)));
}

fn write(bindings: &Reporter, name: &str, is_error: bool, args: &Value) -> Completion {
    let bytes = first_bytes(args)
        .ok_or_else(|| type_error(format!("{name} takes text or a Uint8Array")))?;
    let eid = bindings.eid();
    let done = if is_error { bindings.stderr(eid, bytes) } else { bindings.stdout(eid, bytes) };
    done.map(|()| Value::undefined()).map_err(|error| thrown(&error))
}

fn merge(bindings: &Reporter, args: &Value) -> Completion {
    let how = Reading { is_argument: true, ..Reading::strict("output", MOST_PATCH_BYTES) };
    let read = to_json(args, how).map_err(|fault| of_fault(&fault))?;
    let Some(serde_json::Value::Object(patch)) = read else {
        return Err(type_error("output takes a plain object".to_owned()));
    };
    let done = bindings.output(bindings.eid(), patch);
    done.map(|()| Value::undefined()).map_err(|error| thrown(&error))
}

/// The bytes of the first argument, if it has some.
fn first_bytes(args: &Value) -> Option<Vec<u8>> {
    let mut reader = args.reader();
    reader.event().ok().filter(|event| !matches!(event, Event::Array(0)))?;
    match reader.event().ok()? {
        Event::String(text) => Some(text.to_string_lossy().into_bytes()),
        Event::View { kind: ViewKind::Uint8Array, blob, byte_offset, length } => {
            let bytes = args.blobs().get(usize::try_from(blob).ok()?)?;
            let from = usize::try_from(byte_offset).ok()?;
            let to = from.checked_add(usize::try_from(length).ok()?)?;
            bytes.get(from..to).map(<[u8]>::to_vec)
        }
        _ => None,
    }
}

pub(super) fn type_error(message: String) -> Value {
    HostError::new("TypeError", message).to_value()
}

pub(super) fn of_fault(fault: &JsonFault) -> Value {
    HostError::new(fault.name, fault.message.clone()).to_value()
}

fn thrown(error: &Error) -> Value {
    let name = if error.kind() == ErrorKind::Range { "RangeError" } else { "TypeError" };
    HostError::new(name, error.message()).to_value()
}
