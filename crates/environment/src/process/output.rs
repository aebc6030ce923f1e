//! The output of a process: fields that are merged.
//!
//! In: patches. Out: the fields, as `Object.assign` makes them; `__proto__` is a field like any other. The bytes of the
//! output's JSON are bounded.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::json::{json_bytes, text_bytes};

/// The output so far.
#[derive(Debug, Default)]
pub(crate) struct Output {
    fields: Map<String, Value>,
    /// The bytes of each field's JSON, with its key, a colon and a comma.
    sizes: HashMap<String, usize>,
    bytes: usize,
}

impl Output {
    /// Merges a patch.
    ///
    /// # Errors
    /// The size that the output would have, if that is more than it may have. Nothing is merged then.
    pub(crate) fn merge(
        &mut self,
        patch: Map<String, Value>,
        most_bytes: usize,
    ) -> Result<(), usize> {
        let sizes: Vec<usize> =
            patch.iter().map(|(key, value)| text_bytes(key) + json_bytes(value) + 2).collect();
        let mut bytes = self.bytes;
        for ((key, _), size) in patch.iter().zip(&sizes) {
            bytes = bytes - self.sizes.get(key).copied().unwrap_or_default() + size;
        }
        // Of the braces and commas: `{}` for none, and else one comma less than fields.
        if bytes + 1 > most_bytes {
            return Err(bytes + 1);
        }
        self.bytes = bytes;
        for ((key, value), size) in patch.into_iter().zip(sizes) {
            self.sizes.insert(key.clone(), size);
            self.fields.insert(key, value);
        }
        Ok(())
    }

    /// The bytes of the fields' JSON.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    #[test]
    fn fields_merge_as_object_assign_does() {
        let mut output = Output::default();
        output.merge(map(json!({ "a": { "x": 1 }, "b": 2 })), 1000).expect("small");
        output
            .merge(map(json!({ "c": 3, "a": { "y": 2 }, "__proto__": { "z": 1 } })), 1000)
            .expect("small");
        let text = Value::Object(output.fields().clone()).to_string();
        assert_eq!(text, r#"{"a":{"y":2},"b":2,"c":3,"__proto__":{"z":1}}"#);
        assert_eq!(output.bytes + 1, text.len());
    }

    #[test]
    fn the_size_is_that_of_the_json() {
        let mut output = Output::default();
        let most = json!({ "a": "ä\n" }).to_string().len();
        assert_eq!(output.merge(map(json!({ "a": "ä\nx" })), most), Err(most + 1));
        assert!(output.fields().is_empty());
        output.merge(map(json!({ "a": "ä\n" })), most).expect("exactly as large as it may be");
        output.merge(map(json!({ "a": 1 })), most).expect("smaller");
        assert_eq!(output.fields(), &map(json!({ "a": 1 })));
    }
}
