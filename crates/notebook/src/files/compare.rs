//! How two files differ, as a unified diff.
//!
//! In: the bytes of two files and their names. Out: text within a bound. The files may be made to be hard to compare: after
//! some seconds the diff is right, but not the shortest.

use std::time::Duration;

use isolane::HostError;
use similar::TextDiff;

use crate::text::words::grouped;

/// The lines of both files together.
const MOST_LINES: usize = 500_000;

/// The time for the shortest diff.
const PATIENCE: Duration = Duration::from_secs(3);

/// The lines around a change.
const CONTEXT_LINES: usize = 3;

/// The unified diff; empty if the files are equal.
pub(super) fn unified(
    names: &[String; 2],
    old: &[u8],
    new: &[u8],
    most_bytes: u64,
) -> Result<String, HostError> {
    if old == new {
        return Ok(String::new());
    }
    let lines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').count();
    if lines(old) + lines(new) > MOST_LINES {
        let message =
            format!("the files have more than {} lines together", grouped(MOST_LINES as u64));
        return Err(HostError::new("RangeError", message));
    }
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(&*old, &*new);
    let [old_name, new_name] = names;
    let mut text = diff.unified_diff();
    let text = text.context_radius(CONTEXT_LINES).header(old_name, new_name).to_string();
    if text.len() as u64 > most_bytes {
        let message = format!("the diff has more than {} bytes", grouped(most_bytes));
        return Err(HostError::new("RangeError", message));
    }
    Ok(text)
}
