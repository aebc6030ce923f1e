//! Names of artifacts: `<label>-<n>`.
//!
//! In: labels of anybody, and what is in the folder. Out: labels that are safe in names of files, and numbers that are new.

use std::{io, path::Path};

use cap_std::fs::Dir;

use crate::given::MOST;

/// The longest label.
const MOST_LABEL_LETTERS: usize = 64;

/// The largest number of a label in a folder, 0 if there is none.
pub(super) fn last_number(dir: &Dir, label: &str) -> io::Result<u64> {
    let mut last = 0;
    for entry in dir.entries()? {
        let name = entry?.file_name();
        let stem = Path::new(&name).file_stem().and_then(|stem| stem.to_str());
        let number = stem.and_then(|stem| stem.strip_prefix(label)?.strip_prefix('-'));
        let number = number.and_then(|digits| digits.parse().ok()).filter(|number| *number < MOST);
        last = last.max(number.unwrap_or_default());
    }
    Ok(last)
}

/// A label that is a part of a file's name on every system.
pub(super) fn safe_label(label: &str) -> String {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let safe = label.chars().take(MOST_LABEL_LETTERS);
    let safe: String = safe.map(|letter| if is_safe(letter) { letter } else { '-' }).collect();
    if safe.is_empty() { "artifact".to_owned() } else { safe }
}

/// Whether a text is a safe label, a hyphen and a number.
pub(super) fn is_id(text: &str) -> bool {
    let is_number = |digits: &str| {
        !digits.is_empty() && digits.len() <= 20 && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let parts = text.rsplit_once('-');
    parts.is_some_and(|(label, digits)| safe_label(label) == label && is_number(digits))
}
