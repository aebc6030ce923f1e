//! The words about a cell: its status, its times, its error, what it called.
//!
//! In: the result of a cell. Out: short texts, which are safe to show.

use std::fmt;

use serde_json::Value as Json;
use unicode_width::UnicodeWidthStr;

use super::plain::{line, shallow, visible};
use crate::{
    CellError, CellResult, CellStatus, Image, Language, Output, Truncation, text::words::grouped,
};

/// The longest title, and the longest text of an event, in characters.
const MOST_CHARACTERS: usize = 200;

/// The longest line that is shown below an error, in characters: a bundle may have all of its code on one.
const MOST_SCENE: usize = 400;

/// `[2/3] load`, of one cell its title alone.
pub(super) fn heading(index: usize, count: usize, title: Option<&str>) -> String {
    let title = title.map(|title| line(title, MOST_CHARACTERS));
    match (count, title) {
        (1, title) => title.unwrap_or_default(),
        (_, None) => format!("[{}/{count}]", index + 1),
        (_, Some(title)) => format!("[{}/{count}] {title}", index + 1),
    }
}

/// The word for the status, and a sign that stands for the word.
pub(super) fn status(cell: &CellResult) -> (&'static str, &'static str) {
    match cell.status {
        CellStatus::Pending => ("not run", "○"),
        CellStatus::Running => ("running", "…"),
        CellStatus::Complete => ("complete", "✓"),
        CellStatus::Error if is_from_outside(cell) => ("aborted", "✗"),
        CellStatus::Error => ("error", "✗"),
    }
}

/// Whether the cell was ended from outside: by its clock, or by the caller.
pub(super) fn is_from_outside(cell: &CellResult) -> bool {
    cell.status == CellStatus::Error && cell.exit_code.is_none()
}

/// The wall time of a cell that has begun.
pub(super) fn duration(cell: &CellResult) -> Option<String> {
    (cell.status != CellStatus::Pending).then(|| time(cell.duration_ms))
}

/// `12 ms`, `1.5 s`, `2 min 5 s`.
pub(super) fn time(ms: f64) -> String {
    let ms = if ms.is_finite() { ms.max(0.0) } else { 0.0 };
    if ms < 0.5 {
        "0 ms".to_owned()
    } else if ms < 999.5 {
        format!("{ms:.0} ms")
    } else if ms < 59_950.0 {
        format!("{:.1} s", ms / 1e3)
    } else {
        let seconds = (ms / 1e3).round();
        format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0)
    }
}

/// `512 bytes`, `1.2 KB`, `3.4 MiB`.
pub(super) fn size(bytes: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let number = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KB", number / 1024.0),
        _ => format!("{:.1} MiB", number / 1_048_576.0),
    }
}

/// `image/png, 1.2 KB`.
pub(super) fn image(image: &Image) -> String {
    let letters = image.data.trim_end_matches('=').len();
    format!("{}, {}", line(&image.mime_type, 80), size(letters * 3 / 4))
}

/// The sentence about the state of a cell that failed.
pub(super) fn state(cell: &CellResult) -> Option<String> {
    let title = cell.language.title();
    match cell.state {
        Some("rolledBack") => Some(format!("{title} state is as it was before this cell.")),
        Some("reset") => Some(format!("{title} state was lost.")),
        _ => None,
    }
}

/// A status event: `tool search, 12 ms`.
pub(super) fn event(event: &Json) -> String {
    let Json::Object(fields) = event else { return value(event) };
    let mut words = vec![fields.get("op").map_or_else(|| "event".to_owned(), value)];
    let mut time = None;
    for (key, given) in fields {
        match (key.as_str(), given) {
            ("op", _) | ("ok", Json::Bool(true)) | (_, Json::Null) => {}
            ("ok", Json::Bool(false)) => words.push("failed".to_owned()),
            ("ms", Json::Number(ms)) => time = ms.as_f64().map(self::time),
            ("name" | "model" | "path" | "label" | "id" | "status", Json::String(_)) => {
                words.push(value(given));
            }
            _ => words.push(format!("{}: {}", line(key, 80), value(given))),
        }
    }
    let text = line(&words.join(" "), MOST_CHARACTERS);
    time.map_or(text.clone(), |time| format!("{text}, {time}"))
}

fn value(value: &Json) -> String {
    match value {
        Json::String(text) => line(text, MOST_CHARACTERS),
        other => line(&shallow(other, 3).to_string(), MOST_CHARACTERS),
    }
}

/// The frames of a JavaScript error, or Python's traceback, without the name and the message; empty if there are none.
pub(super) fn trace(error: &CellError) -> String {
    let stack = error.stack.as_deref().unwrap_or_default().trim_end();
    let head = message(error);
    let after = |head: &str| {
        stack.strip_prefix(head).filter(|rest| rest.is_empty() || rest.starts_with('\n'))
    };
    let before =
        |head: &str| stack.strip_suffix(head.trim_end()).filter(|rest| rest.ends_with('\n'));
    let frames = after(&head).or_else(|| after(&error.name)).or_else(|| before(&head));
    // The message of a SyntaxError of Python ends with the place, which the traceback has above.
    let placeless = || before(head.strip_suffix(')')?.rsplit_once(" (")?.0);
    let frames = frames.or_else(placeless).unwrap_or(stack);
    visible(frames.trim_matches('\n')).trim_end().to_owned()
}

/// `Name: message`.
pub(super) fn message(error: &CellError) -> String {
    match (error.name.as_str(), error.message.as_str()) {
        (name, "") => name.to_owned(),
        (name, message) => format!("{name}: {message}"),
    }
}

/// The line of code that an error of JavaScript points at, and a caret below its column.
pub(super) fn scene(cell: &CellResult, cells: &[CellResult]) -> Option<[String; 2]> {
    if cell.language != Language::Js || is_from_outside(cell) {
        return None;
    }
    let error = cell.error.as_ref()?;
    let (number, column) = (error.line?, error.column?);
    let is_there = |other: &&CellResult| {
        other.language == Language::Js && other.name.is_some() && other.name == error.filename
    };
    let code = &cells.iter().find(is_there)?.code;
    let source = code.lines().nth(usize::try_from(number.checked_sub(1)?).ok()?)?;
    if source.chars().count() > MOST_SCENE {
        return None;
    }
    let mut units = 1;
    let before: String = source
        .chars()
        .take_while(|letter| {
            units += letter.len_utf16();
            units <= column as usize
        })
        .collect();
    let untabbed = |text: &str| visible(text).replace('\t', "    ");
    let margin = number.to_string();
    let blanks = " ".repeat(untabbed(&before).width());
    Some([
        format!("{margin} | {}", untabbed(source)),
        format!("{} | {blanks}^", " ".repeat(margin.len())),
    ])
}

/// The error of a cell: with its stack if it is known, else that among the outputs.
pub(super) fn error_of(cell: &CellResult) -> Option<CellError> {
    let of_output = |output: &Output| match output {
        Output::Error { name, message } => {
            Some(CellError { name: name.clone(), message: message.clone(), ..CellError::default() })
        }
        _ => None,
    };
    cell.error.clone().or_else(|| cell.outputs.iter().find_map(of_output))
}

/// `10 of 20 lines, 300 of 600 bytes`.
impl fmt::Display for Truncation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lines, all_lines] = [self.shown_lines, self.total_lines].map(grouped);
        let [bytes, all_bytes] = [self.shown_bytes, self.total_bytes].map(grouped);
        write!(out, "{lines} of {all_lines} lines, {bytes} of {all_bytes} bytes")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_sizes_and_events_have_words() {
        let times = [0.2, 1.4, 999.4, 1500.0, 59_949.0, 59_990.0, 125_000.0, f64::NAN, -1.0];
        let expected =
            ["0 ms", "1 ms", "999 ms", "1.5 s", "59.9 s", "1 min 0 s", "2 min 5 s", "0 ms", "0 ms"];
        assert_eq!(times.map(time), expected);
        assert_eq!([12, 1300, 3 << 20].map(size), ["12 bytes", "1.3 KB", "3.0 MiB"]);
        let events = [
            (json!({ "op": "tool", "name": "search", "ok": true, "ms": 12 }), "tool search, 12 ms"),
            (
                json!({ "op": "llm", "model": "smol", "ok": false, "ms": 2000.0 }),
                "llm smol failed, 2.0 s",
            ),
            (
                json!({ "op": "read", "path": "a\n\u{1b}b", "bytes": 3 }),
                "read a \u{fffd}b bytes: 3",
            ),
            (json!(7), "7"),
        ];
        for (given, text) in events {
            assert_eq!(event(&given), text);
        }
    }

    #[test]
    fn a_stack_does_not_say_the_message_again() {
        let error = |stack: &str| CellError {
            name: "E".to_owned(),
            message: "m".to_owned(),
            stack: Some(stack.to_owned()),
            ..CellError::default()
        };
        assert_eq!(trace(&error("E: m\n    at f (<cell 1>:1:1)")), "    at f (<cell 1>:1:1)");
        assert_eq!(trace(&error("Traceback\n  x\nE: m\n")), "Traceback\n  x");
        assert_eq!(trace(&error("Traceback\n  x\na.E: m\n")), "Traceback\n  x\na.E: m");
        assert_eq!(trace(&error("E: me")), "E: me");
        let message = "invalid syntax (<cell 1>, line 1)".to_owned();
        let placed = CellError { message, ..error("  File\n    a = =\nE: invalid syntax") };
        assert_eq!(trace(&placed), "  File\n    a = =");
        assert_eq!(trace(&error("E: m")), "");
    }
}
