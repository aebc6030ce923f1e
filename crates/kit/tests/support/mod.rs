//! Functions of the store for runs of tests.
//!
//! In: native functions. Out: an object of the sandbox. The kit's own JSON form has its own tests, so the text of plain
//! data takes its place here.

use std::{collections::BTreeMap, sync::Arc};

use isolane::{HostError, HostFunction, Input, NativeFunction, Value};

/// The JSON text of plain data.
pub(crate) fn json_form(value: &Value) -> Result<String, HostError> {
    let plain: Result<serde_json::Value, _> = value.deserialize();
    Ok(plain.map_err(|error| HostError::new("SerializationError", error.to_string()))?.to_string())
}

/// An object with these functions.
pub(crate) fn input(
    functions: impl IntoIterator<Item = (&'static str, Arc<dyn NativeFunction>)>,
) -> Input {
    let functions = functions.into_iter().map(|(name, f)| (name, HostFunction::native(f)));
    Input::new(functions.collect::<BTreeMap<_, _>>())
}
