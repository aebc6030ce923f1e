//! A source text and its language.

/// The language of the entry and of every module whose name does not determine it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// Standard ECMAScript modules, run unchanged.
    JavaScript,
    /// TypeScript, whose types are erased and not checked.
    #[default]
    TypeScript,
}

/// A source text as the caller gave it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceText {
    /// The text, lone surrogates replaced by U+FFFD.
    pub text: String,
    /// The place of the first lone surrogate, in UTF-16 code units from the start.
    pub lone_surrogate: Option<usize>,
}

impl SourceText {
    /// A source given as UTF-16.
    #[must_use]
    pub fn from_utf16(units: &[u16]) -> Self {
        let mut at = 0;
        let mut lone_surrogate = None;
        for unit in char::decode_utf16(units.iter().copied()) {
            match unit {
                Ok(char) => at += char.len_utf16(),
                Err(_) => {
                    lone_surrogate = Some(at);
                    break;
                }
            }
        }
        Self { text: String::from_utf16_lossy(units), lone_surrogate }
    }
}

impl From<String> for SourceText {
    fn from(text: String) -> Self {
        Self { text, lone_surrogate: None }
    }
}
