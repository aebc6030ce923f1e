//! Status events of helpers that run within a kernel, of which the host trusts nothing.
//!
//! In: an event as a kernel wrote it. Out: the event, if it is one: a helper of the kernel's own, counts, and the key of a
//! variable.

use serde_json::{Map, Value as Json};

/// The helpers that tell of themselves.
const HELPERS: [&str; 4] = ["counter", "env", "sort", "uniq"];

/// The longest text.
const MOST_LETTERS: usize = 200;

/// The event; `None` if it is none.
pub(super) fn event(given: &Json) -> Option<Json> {
    let helper = given.get("op")?.as_str().filter(|helper| HELPERS.contains(helper))?;
    let mut event = Map::from_iter([("op".to_owned(), helper.into())]);
    for key in ["items", "lines", "variables"] {
        let count = given.get(key).and_then(Json::as_u64);
        event.extend(count.map(|count| (key.to_owned(), count.into())));
    }
    if let Some(key) = given.get("key").and_then(Json::as_str) {
        let key: String = key.chars().take(MOST_LETTERS).collect();
        event.insert("key".to_owned(), key.into());
        let sets = given.get("set").and_then(Json::as_bool);
        event.extend(sets.map(|sets| ("set".to_owned(), sets.into())));
    }
    Some(Json::Object(event))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_else_is_kept() {
        let given = json!({ "op": "env", "key": "A", "set": true, "value": "secret", "lines": -1 });
        assert_eq!(event(&given), Some(json!({ "op": "env", "key": "A", "set": true })));
        for forged in [
            json!({ "op": "tool", "ok": true }),
            json!("env"),
            json!({}),
            json!({ "op": ["sort"] }),
        ] {
            assert_eq!(event(&forged), None);
        }
        let long = event(&json!({ "op": "env", "key": "x".repeat(1000) }));
        assert_eq!(long, Some(json!({ "op": "env", "key": "x".repeat(200) })));
    }
}
