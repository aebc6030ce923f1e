//! JSON as a message for the sandbox.
//!
//! In: JSON. Out: the value that `JSON.parse` would make of its text.

use isolane::value::Writer;
use serde_json::Value;

/// The message. Its recursion is bounded by the depth of the value, which the caller has checked.
pub(crate) fn to_message(value: &Value) -> isolane::Value {
    let mut writer = Writer::new();
    write(value, &mut writer);
    writer.finish()
}

fn write(value: &Value, writer: &mut Writer) {
    match value {
        Value::Null => writer.null(),
        Value::Bool(is) => writer.bool(*is),
        Value::Number(number) => writer.number(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => writer.string(text),
        Value::Array(list) => {
            writer.array(u32::try_from(list.len()).unwrap_or(u32::MAX));
            for value in list {
                write(value, writer);
            }
        }
        Value::Object(map) => {
            writer.object();
            for (key, value) in map {
                writer.key(key);
                write(value, writer);
            }
            writer.end_object();
        }
    }
}
