//! Values that no message may show: tokens, and what else a configuration hands to servers.
//!
//! In: values, and texts that may repeat them. Out: the texts without them.

use std::{fmt, sync::Arc};

/// The shortest value that is hidden: `1` or `true` is no secret, and is a part of many texts.
const LEAST_BYTES: usize = 6;

/// The text in the place of a value.
const MARK: &str = "[hidden]";

/// Values that no message may show. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Hidden(Arc<[String]>);

impl Hidden {
    /// Hides these values. Short ones are left out.
    pub(crate) fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut values: Vec<String> =
            values.into_iter().filter(|value| value.len() >= LEAST_BYTES).collect();
        // A value may be a part of another one, which goes first.
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self(values.into())
    }

    /// The text without them.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, value| text.replace(value.as_str(), MARK))
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Hidden").field("count", &self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_and_short_ones_are_not() {
        let hidden = Hidden::new(["1", "token-1", "Bearer token-1"].map(str::to_owned));
        assert_eq!(hidden.hide("1: Bearer token-1, token-1"), "1: [hidden], [hidden]");
        assert_eq!(format!("{hidden:?}"), "Hidden { count: 2 }");
    }
}
