//! Output of the demo: headings, reports as they come, a table, and failed runs.
//!
//! A failed run is shown as the author of its code would want to see it. Control characters of the sandbox's texts are
//! replaced, because a terminal obeys them.

use std::{
    io::{IsTerminal, stdout},
    sync::LazyLock,
    time::Duration,
};

use isolane::{ExecutionLog, ExecutionResult, LogLevel, Value};
use serde::Deserialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{Line, Progress, Sources};

const TAB: usize = 4;
const FRAMES: usize = 5;

const BOLD: u8 = 1;
const FAINT: u8 = 2;
const RED: u8 = 31;
const GREEN: u8 = 32;
const YELLOW: u8 = 33;

pub(crate) fn heading(text: &str) {
    println!("\n{}", paint(BOLD, text));
}

pub(crate) fn note(text: &str) {
    println!("  {text}");
}

/// One report, with the time since the run began.
pub(crate) fn progress(elapsed: Duration, progress: &Progress) {
    let (step, fields) = match progress {
        Progress::Read { done, of } => ("read", format!("done {done}  of {of}")),
        Progress::Customers { done } => ("customers", format!("done {done}")),
        Progress::Counted { category, refunded } => {
            ("counted", format!("category {category}  refunded {}", cents(*refunded)))
        }
    };
    let time = paint(FAINT, &format!("+{:>4} ms", elapsed.as_millis()));
    println!("  {time}  {step:<10}{}", harmless(&fields));
}

pub(crate) fn logs(logs: &[ExecutionLog]) {
    for log in logs {
        let color = match log.level {
            LogLevel::Error => RED,
            LogLevel::Warn => YELLOW,
            _ => FAINT,
        };
        let args: Vec<Value> = log.args.deserialize().unwrap_or_default();
        let text = args.iter().map(text).collect::<Vec<_>>().join(" ").replace('\n', "\n        ");
        println!("  {}{text}", paint(color, &format!("{:<6}", log.level.as_str())));
    }
}

/// The agent's lines as a table; numbers are aligned to the right.
pub(crate) fn lines(lines: &[Line]) {
    let head = [
        "category",
        "tickets",
        "open",
        "median hours",
        "refunded €",
        "businesses €",
        "best article",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(lines.iter().map(|line| {
        [
            harmless(&line.category),
            whole(line.tickets),
            whole(line.open),
            cents(line.median_hours),
            cents(line.refunded),
            cents(line.from_businesses),
            harmless(&line.article),
        ]
    }));
    let widths: Vec<usize> = (0..head.len())
        .map(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0))
        .collect();
    for (index, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let blanks = " ".repeat(width - cell.width());
            if (1..6).contains(&column) { blanks + cell } else { cell.clone() + &blanks }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        println!(
            "  {}",
            if index == 0 { paint(FAINT, line.trim_end()) } else { line.trim_end().to_owned() }
        );
    }
}

/// The time and memory of a run.
pub(crate) fn cost(result: &ExecutionResult) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let peak = result.memory_used_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
    let memory = peak.map_or_else(String::new, |peak| format!(", {peak:.1} MiB at its peak"));
    paint(FAINT, &format!("{:.1} ms{memory}", result.duration_ms))
}

/// A run that did not succeed: the error, its place, the line with a caret below the place, and the stack.
pub(crate) fn failure(result: &ExecutionResult, sources: &Sources) {
    let error = result.error.clone().unwrap_or_default();
    let place = error.filename.as_deref().zip(error.line).zip(error.column);
    let shown = place.map_or_else(String::new, |((file, line), column)| {
        paint(FAINT, &format!("  {file}:{line}:{column}"))
    });
    let (status, name) = (paint(RED, result.status.as_str()), paint(BOLD, &harmless(&error.name)));
    println!("  {status}  {name}: {}{shown}", harmless(&error.message));
    if let Some(((file, line), column)) = place
        && let Some(source) = sources.get(file)
        && let Some(text) = source.split('\n').nth(line.saturating_sub(1) as usize)
    {
        let (shown, caret) = underlined(&harmless(text), column);
        let margin = line.to_string();
        println!("  {} {shown}", paint(FAINT, &format!("{margin} |")));
        let blank = " ".repeat(margin.len());
        println!("  {} {}", paint(FAINT, &format!("{blank} |")), paint(RED, &caret));
    }
    let lines = error.stack.as_deref().unwrap_or_default().lines();
    let frames: Vec<&str> = lines.filter(|line| line.starts_with("    at ")).collect();
    for frame in frames.iter().take(FRAMES) {
        println!("  {}", paint(FAINT, &harmless(frame)));
    }
    if frames.len() > FRAMES {
        println!("{}", paint(FAINT, &format!("      … {} more", frames.len() - FRAMES)));
    }
    logs(&result.logs);
}

pub(crate) fn verdict(wrong: &[String]) {
    if wrong.is_empty() {
        println!("  {}", paint(GREEN, "as intended"));
    }
    for text in wrong {
        println!("  {}  {text}", paint(RED, "NOT AS INTENDED"));
    }
}

/// A whole number with separators between thousands.
pub(crate) fn whole(number: usize) -> String {
    apart(&number.to_string())
}

/// A number with two decimals and separators between thousands.
pub(crate) fn cents(number: f64) -> String {
    let text = format!("{number:.2}");
    match text.split_once('.') {
        Some((whole, decimals)) => format!("{}.{decimals}", apart(whole)),
        None => text,
    }
}

/// The UTC day of a moment in epoch milliseconds.
pub(crate) fn date(epoch_ms: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a day of our times")]
    let mut day = (epoch_ms / 86_400_000.0).floor() as i64;
    for year in 1970.. {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for (month, days) in
            (1..).zip([31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
        {
            if day < days {
                return format!("{year}-{month:02}-{:02}", day + 1);
            }
            day -= days;
        }
    }
    String::new()
}

fn apart(digits: &str) -> String {
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

/// A logged value: a text unchanged, an error as its name and message, any other value as JSON.
fn text(value: &Value) -> String {
    #[derive(Deserialize)]
    struct Thrown {
        name: String,
        message: String,
    }
    let thrown =
        || value.deserialize().map(|Thrown { name, message }| format!("{name}: {message}"));
    let shown = value.deserialize::<String>().or_else(|_| thrown());
    let json = || serde_json::to_string(value).unwrap_or_else(|error| error.to_string());
    harmless(&shown.unwrap_or_else(|_| json()))
}

/// A source line as a terminal shows it, and a line with a caret below its `column` (from 1, in
/// UTF-16 units, as in errors). Tabs become blanks; a wide character takes two cells, a combining one
/// none.
fn underlined(text: &str, column: u32) -> (String, String) {
    let (mut shown, mut cells, mut unit, mut caret) = (String::new(), 0, 0, None);
    for char in text.chars() {
        if unit + 1 >= column as usize {
            caret.get_or_insert(cells);
        }
        unit += char.len_utf16();
        if char == '\t' {
            let blanks = TAB - cells % TAB;
            shown += &" ".repeat(blanks);
            cells += blanks;
        } else {
            shown.push(char);
            cells += char.width().unwrap_or(0);
        }
    }
    (shown, " ".repeat(caret.unwrap_or(cells)) + "^")
}

/// A text of the sandbox with each control character except tab and line break replaced.
fn harmless(text: &str) -> String {
    let obeyed = |char: char| char.is_control() && char != '\t' && char != '\n';
    text.replace(obeyed, "\u{fffd}")
}

fn paint(code: u8, text: &str) -> String {
    static COLORED: LazyLock<bool> =
        LazyLock::new(|| stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    if *COLORED { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}
