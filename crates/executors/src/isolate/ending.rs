//! The end of a call: the result of a cell as that of a program.
//!
//! In: a cell's result, and the console of the call. Out: the exit code, and the last lines of both streams. The status of
//! the cell decides, never a text of its code.

use std::time::Duration;

use isolane::{ExecutionError, ExecutionResult, STALLED, SessionState, Status};

use super::console::Console;
use crate::local::shown_time;

/// The exit code of a program in a language that the isolate has not.
pub(super) const NO_SUCH_LANGUAGE: i32 = 2;
const FAILED: i32 = 1;
/// 128 and the number of the signal that a process of that end has: SIGABRT, SIGKILL, SIGXCPU.
const WORKER_LOST: i32 = 134;
const OUT_OF_MEMORY: i32 = 137;
const OUT_OF_CPU_TIME: i32 = 152;

/// The longest line that is shown of a source, in characters.
const MOST_LINE_CHARS: usize = 160;

/// How a call ended.
pub(super) struct Ending {
    /// `None` after a timeout.
    pub(super) exit_code: Option<i32>,
    /// The line that stands last, after a timeout.
    pub(super) last_line: Option<String>,
    /// Whether the session has lost its state.
    pub(super) is_reset: bool,
}

/// Tells the end of a cell on the console.
pub(super) fn end(
    result: &ExecutionResult,
    code: &str,
    console: &Console,
    (timeout, show_value): (Option<Duration>, bool),
) -> Ending {
    let cell = result.cell.as_deref();
    let is_reset = cell.is_some_and(|cell| cell.session == SessionState::Reset);
    let name = result.error.as_ref().map_or("", |error| error.name.as_str());
    if result.status == Status::Terminated && name == "Timeout" {
        let time = shown_time(timeout.unwrap_or_default());
        let last_line = Some(format!("isolate execution timed out after {time}"));
        return Ending { exit_code: None, last_line, is_reset };
    }
    if let Some(text) = cell.and_then(|cell| cell.text.as_ref()).filter(|_| show_value) {
        console.out(text);
    }
    if let Some(error) = &result.error {
        console.err(&shown(error, code, result.status));
    }
    let exit_code = match result.status {
        Status::Success => 0,
        // Of all errors only a lost worker takes the session with it.
        Status::Error if is_reset => WORKER_LOST,
        Status::Memory => OUT_OF_MEMORY,
        // Nothing but the library gives an end this name and this message.
        Status::Terminated if name == "SafetyCap" && !is_stalled(result) => OUT_OF_CPU_TIME,
        Status::Error | Status::LinkError | Status::Terminated => FAILED,
    };
    Ending { exit_code: Some(exit_code), last_line: None, is_reset }
}

fn is_stalled(result: &ExecutionResult) -> bool {
    result.error.as_ref().is_some_and(|error| error.message == STALLED)
}

/// An error as a console shows it; of a link error also the line.
fn shown(error: &ExecutionError, code: &str, status: Status) -> String {
    let ExecutionError { name, message, stack, filename, line, column, .. } = error;
    let mut text = format!("{name}: {message}");
    let mut add = |more: &str| {
        text.push('\n');
        text.push_str(more);
    };
    if let (Status::LinkError, Some(file), Some(line), Some(column)) =
        (status, filename, line, column)
    {
        add(&format!("    at {file}:{line}:{column}"));
        // Modules have other names than cells.
        let source = code.lines().nth(line.saturating_sub(1) as usize);
        if let Some(source) = source.filter(|_| file.starts_with("<cell ")) {
            for line in excerpt(source, *column) {
                add(&line);
            }
        }
    } else if let Some(stack) = stack {
        // It begins with the name and the message.
        text.clone_from(stack);
    }
    text
}

/// The part of a line around a column, and a caret below it.
fn excerpt(line: &str, column: u32) -> [String; 2] {
    let mut units = 1;
    let before = line.chars().take_while(|char| {
        let is_before = units < column as usize;
        units += char.len_utf16();
        is_before
    });
    let before = before.count();
    let skipped = before.saturating_sub(MOST_LINE_CHARS / 2);
    let shown: String = line.chars().skip(skipped).take(MOST_LINE_CHARS).collect();
    let blank = |char| if char == '\t' { '\t' } else { ' ' };
    let blanks: String = shown.chars().take(before - skipped).map(blank).collect();
    [shown, format!("{blanks}^")]
}

#[cfg(test)]
mod tests {
    use isolane::CellOutcome;

    use super::*;
    use crate::InvocationContext;

    fn result(status: Status, session: SessionState, name: &str, message: &str) -> ExecutionResult {
        let error = ExecutionError {
            name: name.to_owned(),
            message: message.to_owned(),
            ..ExecutionError::default()
        };
        let cell =
            CellOutcome { session, ended_by: None, text: None, uncloned: None, value_from: None };
        ExecutionResult {
            status,
            result: None,
            reports: Vec::new(),
            logs: Vec::new(),
            error: (status != Status::Success).then_some(error),
            duration_ms: 1.0,
            memory_used_bytes: None,
            cell: Some(Box::new(cell)),
        }
    }

    fn ended(status: Status, session: SessionState, name: &str, message: &str) -> (Ending, String) {
        let console = Console::new(InvocationContext::default(), 1000);
        let options = (Some(Duration::from_millis(1500)), true);
        let ending = end(&result(status, session, name, message), "", &console, options);
        (ending, console.take().1)
    }

    #[test]
    fn the_status_decides_the_exit_code() {
        use SessionState::{Kept, Reset, RolledBack};
        let code = |status, session, name: &str, message: &str| {
            ended(status, session, name, message).0.exit_code
        };
        assert_eq!(code(Status::Success, Kept, "", ""), Some(0));
        assert_eq!(code(Status::Error, Kept, "Error", "no"), Some(1));
        assert_eq!(code(Status::LinkError, Kept, "SyntaxError", "no"), Some(1));
        assert_eq!(code(Status::Memory, RolledBack, "MemoryLimit", "full"), Some(137));
        assert_eq!(code(Status::Error, Reset, "WorkerLost", "gone"), Some(134));
        assert_eq!(code(Status::Terminated, RolledBack, "Timeout", "late"), None);
        assert_eq!(
            code(Status::Terminated, RolledBack, "SafetyCap", "the run computed"),
            Some(152)
        );
        assert_eq!(code(Status::Terminated, RolledBack, "SafetyCap", STALLED), Some(1));
        assert_eq!(code(Status::Terminated, Reset, "SessionClosed", "closed"), Some(1));
        assert_eq!(code(Status::Terminated, RolledBack, "Terminated", "runtime closed"), Some(1));
    }

    #[test]
    fn code_cannot_forge_an_end() {
        let code = |name| ended(Status::Error, SessionState::Kept, name, STALLED).0.exit_code;
        for name in ["WorkerLost", "Timeout", "SafetyCap", "MemoryLimit"] {
            assert_eq!(code(name), Some(1), "{name}");
        }
    }

    #[test]
    fn a_timeout_has_the_last_line_and_no_other() {
        let (ending, stderr) =
            ended(Status::Terminated, SessionState::Reset, "Timeout", "the cell took longer");
        assert_eq!(stderr, "");
        assert_eq!(ending.last_line.as_deref(), Some("isolate execution timed out after 1500ms"));
        assert!(ending.is_reset);
    }

    #[test]
    fn the_caret_stands_below_its_column() {
        assert_eq!(excerpt("a b", 3), ["a b", "  ^"]);
        assert_eq!(excerpt("\tä😀x", 5), ["\tä😀x", "\t  ^"]);
        assert_eq!(excerpt("ab", 9), ["ab", "  ^"]);
        let long = "x".repeat(10_000) + "y" + &"z".repeat(10_000);
        let [line, caret] = excerpt(&long, 10_001);
        assert_eq!(line.chars().count(), MOST_LINE_CHARS);
        assert_eq!(line.chars().nth(caret.len() - 1), Some('y'));
    }
}
