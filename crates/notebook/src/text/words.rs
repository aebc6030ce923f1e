//! The fixed texts of results, to the letter.
//!
//! In: what happened. Out: sentences for the model.

use crate::{Language, SessionState, artifacts::Kept};

/// A number with commas: `120,000`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 second`, `30 seconds`.
fn seconds(number: u64) -> String {
    if number == 1 { "1 second".to_owned() } else { format!("{number} seconds") }
}

/// A kernel was ended after that time without a cell.
pub(crate) fn idle(language: Language, ms: u64) -> String {
    let time = if ms.is_multiple_of(1000) { seconds(ms / 1000) } else { format!("{ms} ms") };
    format!("{} was ended after {time} without a cell; its state was lost.", language.title())
}

/// A kernel of Python was ended because there were too many.
pub(crate) const EVICTED: &str =
    "Python was ended to make room for the kernels of other sessions; its state was lost.";

/// The kit of JavaScript cells is closed.
pub(crate) const KIT_CLOSED: &str = "the kit is closed";

/// No kernel of Python can be started beside those that run.
pub(crate) fn too_many_run(most: u64) -> String {
    match most {
        1 => "a kernel runs already, and no more may".to_owned(),
        _ => format!("{most} kernels run already, and no more may"),
    }
}

/// The clock ran out; it stood still for so many seconds.
pub(crate) fn timed_out(limit: u64, waited: u64) -> String {
    let text = format!("Command timed out after {}", seconds(limit));
    if waited == 0 { text } else { format!("{text} ({} of waiting not counted)", seconds(waited)) }
}

/// The caller ended the call.
pub(crate) fn aborted(reason: Option<&str>) -> String {
    match reason.filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("Command aborted: {reason}"),
        None => "Command aborted".to_owned(),
    }
}

/// The text of a call that shows nothing.
pub(crate) fn nothing(images: usize) -> String {
    match images {
        0 => "(no output)".to_owned(),
        1 => "(displayed 1 image; no text output)".to_owned(),
        _ => format!("(displayed {images} images; no text output)"),
    }
}

/// The head of one of several cells.
pub(crate) fn head(index: usize, count: usize, title: Option<&str>) -> String {
    let number = format!("[{}/{count}]", index + 1);
    match title {
        // A title is one line.
        Some(title) => {
            format!("{number} {}", title.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        None => number,
    }
}

/// A cell failed, or was ended from outside.
pub(crate) fn failed(index: usize, count: usize, is_from_outside: bool) -> String {
    let end = if is_from_outside { "aborted" } else { "failed (exit code 1)" };
    if count == 1 {
        format!("Cell {end}.")
    } else {
        format!("Cell {} of {count} {end}.", index + 1)
    }
}

/// The cells that did not run.
pub(crate) fn did_not_run(cells: &[usize]) -> Option<String> {
    let numbers: Vec<String> = cells.iter().map(|index| (index + 1).to_string()).collect();
    match numbers.split_last()? {
        (last, []) => Some(format!("Cell {last} did not run.")),
        (last, others) => Some(format!("Cells {} and {last} did not run.", others.join(", "))),
    }
}

/// The state of JavaScript after a cell that failed; `completed` is the last other cell that has completed since it began.
pub(crate) fn javascript_state(state: SessionState, completed: Option<&str>) -> String {
    match (state, completed) {
        (SessionState::Kept, _) => KEPT.to_owned(),
        (SessionState::RolledBack, None) => {
            "JavaScript state is as it was before this cell.".to_owned()
        }
        (SessionState::RolledBack, Some(cell)) => {
            format!("JavaScript state is as it was when {cell} ended.")
        }
        (SessionState::Reset, _) => lost(Language::Js),
    }
}

/// The state after a reset.
pub(crate) fn lost(language: Language) -> String {
    format!("{} state was lost.", language.title())
}

/// The state after a cell that threw.
pub(crate) const KEPT: &str = "State is kept up to the error.";

/// The state of Python after an interruption.
pub(crate) const INTERRUPTED: &str = "Python was interrupted; its state is kept.";

/// The state of Python after a kill.
pub(crate) const KILLED: &str = "Python did not react and was killed; its state was lost.";

/// A kernel that ended by itself.
pub(crate) fn ended(how: &str) -> String {
    format!("Python ended unexpectedly ({how}); its state was lost.")
}

/// A kernel that needed more memory than it may have.
pub(crate) fn out_of_memory(limit_bytes: u64) -> String {
    format!("Python exceeded its memory limit of {} MiB; its state was lost.", limit_bytes >> 20)
}

/// A kernel that is not replaced any more.
pub(crate) fn died_again(how: &str) -> String {
    format!("Python died again ({how}); run a cell with reset: true to start it anew")
}

/// A backend that cannot run.
pub(crate) fn unavailable(language: Language, reason: &str) -> String {
    format!("{} backend is unavailable: {reason}", language.title())
}

/// A text that was cut, and the file that has all of it.
pub(crate) fn truncated(missing: &str, kept: Option<&Kept>) -> String {
    let kept = match kept {
        None => String::new(),
        Some(Ok(artifact)) if artifact.dropped_bytes == 0 => {
            format!("; all of it: {}", artifact.uri)
        }
        Some(Ok(artifact)) => {
            format!("; its first {} bytes: {}", grouped(artifact.bytes), artifact.uri)
        }
        Some(Err(reason)) => format!("; all of it could not be kept: {reason}"),
    };
    format!("[output truncated: {missing}{kept}]")
}

/// A display that is too large for the result.
pub(crate) fn left_out(what: &str, bytes: u64, kept: Option<&Kept>) -> String {
    let what = format!("{what} of {} bytes", grouped(bytes));
    match kept {
        None => format!("[{what} left out]"),
        Some(Ok(artifact)) if artifact.dropped_bytes == 0 => format!("[{what}: {}]", artifact.uri),
        Some(Ok(artifact)) => {
            format!("[{what}; its first {} bytes: {}]", grouped(artifact.bytes), artifact.uri)
        }
        Some(Err(reason)) => format!("[{what} could not be kept: {reason}]"),
    }
}

/// A helper whose option was not given.
pub(crate) fn not_given(helper: &str) -> String {
    format!("{helper} is not available in this notebook")
}

/// A helper that would write files that are only to be read.
pub(crate) fn read_only(helper: &str) -> String {
    format!("{helper} is not available: files are read-only")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_plurals() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(timed_out(1, 0), "Command timed out after 1 second");
        assert_eq!(
            timed_out(30, 45),
            "Command timed out after 30 seconds (45 seconds of waiting not counted)"
        );
        assert_eq!(did_not_run(&[2]).as_deref(), Some("Cell 3 did not run."));
        assert_eq!(did_not_run(&[2, 3]).as_deref(), Some("Cells 3 and 4 did not run."));
        assert_eq!(did_not_run(&[0, 2, 3]).as_deref(), Some("Cells 1, 3 and 4 did not run."));
        assert_eq!(did_not_run(&[]), None);
    }
}
