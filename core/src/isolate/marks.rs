//! The marks of files in stacks.
//!
//! In: the label of a file; the text of a stack. Out: the engine's name of the file; the frames of the stack, separated by
//! structure, and its text without marks.
//!
//! A function's name may hold anything, even line breaks and whole frames. So the engine is given file names that begin
//! with a mark, which is random and which no sandbox code ever sees: a text with the mark is ours. A mark of its own tells
//! places that were corrected, and are in the original text, from those of the engine.

use std::sync::OnceLock;

use crate::{
    data::outcome::Position,
    modules::program::{GENERATION, shown},
    os::process::{self, PerProcess},
};

/// The first byte of the mark, which hardly any name has, so that it is found quickly.
pub(super) const FIRST: u8 = 2;

/// The first byte of the mark of a place that is in the original text already.
pub(super) const CORRECTED: u8 = 3;

/// The mark: its first byte, and 96 random bits. It is part of every frame of every error, so it is short.
const MARK_BYTES: usize = 17;

/// Lines that the name of a file may span.
const LONGEST_FILE_LINES: usize = 16;

type Mark = [u8; MARK_BYTES];

/// One frame that has a position, with the parts of the text that it was read from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Site<'t> {
    /// The function's name; only the end of it where frames without a position stand before.
    pub(super) function: &'t [u8],
    pub(super) file: &'t str,
    pub(super) line: u32,
    pub(super) column: u32,
    /// The name of the builtin that it called, if the frame before it is one. Any function may have such a name.
    pub(super) builtin: Option<&'t [u8]>,
    /// Whether line and column are those of the original text.
    pub(super) corrected: bool,
}

fn mark() -> &'static Mark {
    static MARK: PerProcess<OnceLock<Mark>> = PerProcess::new();
    MARK.get_or_init(OnceLock::new).get_or_init(|| {
        const LETTERS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut mark = [FIRST; MARK_BYTES];
        for half in mark[1..].chunks_mut(MARK_BYTES.div_ceil(2) - 1) {
            let mut bits = process::random();
            for byte in half {
                *byte = LETTERS[(bits % 64) as usize];
                bits /= 64;
            }
        }
        mark
    })
}

/// The engine's name of the file with that label.
pub(super) fn marked(label: &str) -> String {
    let mark = String::from_utf8_lossy(mark());
    format!("{mark}{label}")
}

/// The label of the file with that name in the engine.
pub(super) fn label_of(name: &str) -> &str {
    let label = name.as_bytes().strip_prefix(mark());
    label.and_then(|label| str::from_utf8(label).ok()).unwrap_or(name)
}

/// The frames of a stack that have a position in a file, innermost first.
pub(super) fn sites(text: &[u8], is_file: impl Fn(&str) -> bool) -> impl Iterator<Item = Site<'_>> {
    let mark = mark();
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut skipped = false;
        loop {
            let (before, corrected, after) = split(rest, mark)?;
            rest = after;
            if let Some((file, line, column, length)) = place(after, &is_file) {
                rest = &after[length..];
                let (function, builtin) = function(before, skipped);
                return Some(Site { function, file, line, column, builtin, corrected });
            }
            skipped = true;
        }
    })
}

/// The text without marks, as sandbox code reads it; `None` if it has no mark. `original` is the position in the original
/// text of a place in the engine's.
pub(super) fn without_marks(
    text: &[u8],
    is_file: impl Fn(&str) -> bool,
    original: impl Fn(&str, u32, u32) -> Option<Position>,
) -> Option<Vec<u8>> {
    let mark = mark();
    let (before, mut corrected, mut rest) = split(text, mark)?;
    let mut bare = Vec::with_capacity(text.len());
    bare.extend_from_slice(before);
    loop {
        let found = if corrected { None } else { place(rest, &is_file) };
        if let Some((file, line, column, length)) = found
            && let Some(position) = original(file, line, column)
        {
            let (file, Position { line, column }) = (shown(file), position);
            bare.extend_from_slice(format!("{file}:{line}:{column})\n").as_bytes());
            rest = rest.get(length..).unwrap_or_default();
        } else {
            rest = shown_bytes(rest);
        }
        let Some((before, next, after)) = split(rest, mark) else { break };
        bare.extend_from_slice(before);
        (corrected, rest) = (next, after);
    }
    bare.extend_from_slice(rest);
    Some(bare)
}

/// The text that begins with the name of a file, as [`shown`].
fn shown_bytes(text: &[u8]) -> &[u8] {
    /// The longest number.
    const DIGITS: usize = 10;
    let sign = GENERATION as u8;
    let label = text.strip_prefix(&[sign]).and_then(|rest| {
        let end = rest.iter().take(DIGITS + 1).position(|byte| *byte == sign)?;
        rest.get(end + 1..)
    });
    label.unwrap_or(text)
}

/// The text before the next mark, whether it is that of a corrected place, and the text after it.
fn split<'t>(text: &'t [u8], mark: &Mark) -> Option<(&'t [u8], bool, &'t [u8])> {
    let mut from = 0;
    loop {
        let is_first = |byte: &u8| matches!(*byte, FIRST | CORRECTED);
        let at = from + text.get(from..)?.iter().position(is_first)?;
        if let Some(after) = text[at + 1..].strip_prefix(&mark[1..]) {
            return Some((&text[..at], text[at] == CORRECTED, after));
        }
        from = at + 1;
    }
}

/// The `file:line:column)` at the beginning of a text, and its length. The host may choose any file name, so the name
/// ends where `is_file` accepts it.
fn place(text: &[u8], is_file: impl Fn(&str) -> bool) -> Option<(&str, u32, u32, usize)> {
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    ends.take(LONGEST_FILE_LINES).find_map(|end| {
        let place = str::from_utf8(&text[..end]).ok()?;
        let (rest, column) = place.strip_suffix(')').unwrap_or(place).rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        let (line, column) = (line.parse().ok()?, column.parse().ok()?);
        is_file(file).then_some((file, line, column, end + 1))
    })
}

/// The name in `    at name (`, and that of the builtin before it. Frames without a position may stand before it, and
/// it may look like several of those: then the text after the last one is the name.
fn function(before: &[u8], skipped: bool) -> (&[u8], Option<&[u8]>) {
    const AT: &[u8] = b"    at ";
    const BUILTIN: &[u8] = b" (native)";
    let frame = before.strip_suffix(b" (").unwrap_or(before);
    let placeless = skipped
        || [&b" (native)\n"[..], b" (missing)\n"].iter().any(|end| last(frame, end).is_some());
    if placeless && let Some(line) = last(frame, b"\n    at ") {
        let builtin = frame[..line].strip_suffix(BUILTIN).and_then(|builtin| {
            let start = last(builtin, AT)?;
            Some(&builtin[start + AT.len()..])
        });
        return (&frame[line + 1 + AT.len()..], builtin);
    }
    (frame.strip_prefix(AT).unwrap_or(frame), None)
}

/// The position of the last occurrence of a text in another.
fn last(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).rposition(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(lines: &[(&str, &str)]) -> String {
        let line = |(before, after): &(&str, &str)| match *after {
            "" => format!("    at {before}\n"),
            place => format!("    at {before} ({}{place}\n", marked("main.js")),
        };
        lines.iter().map(line).collect()
    }

    fn read(text: &str) -> Vec<(String, u32, u32)> {
        let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        sites(text.as_bytes(), |file| file == "main.js")
            .map(|site| (name(site.function), site.line, site.column))
            .collect()
    }

    #[test]
    fn frames_are_what_the_engine_wrote() {
        let text = stack(&[("f", ":1:2)"), ("map (native)", ""), ("<anonymous>", ":3:4)")]);
        assert_eq!(read(&text), [("f".to_owned(), 1, 2), ("<anonymous>".to_owned(), 3, 4)]);
    }

    #[test]
    fn a_name_is_never_a_frame() {
        let forged = "x (main.js:1:1)\n    at y";
        let text = stack(&[(forged, ":5:6)"), ("g", ":7:8)")]);
        assert_eq!(read(&text), [(forged.to_owned(), 5, 6), ("g".to_owned(), 7, 8)]);
        let text = stack(&[("x (native)\n    at y", ":5:6)")]);
        assert_eq!(read(&text), [("y".to_owned(), 5, 6)]);
        let text = stack(&[("z\n    at main.js:9:9\n (native)", ""), ("g", ":7:8)")]);
        assert_eq!(read(&text), [("g".to_owned(), 7, 8)]);
    }

    #[test]
    fn a_frame_without_a_position_is_none() {
        assert_eq!(read(&stack(&[("f", ")"), ("g", ":7:8)")])), [("g".to_owned(), 7, 8)]);
        assert_eq!(read("    at f (main.js:1:2)\n"), []);
    }

    #[test]
    fn labels_come_back_and_marks_leave_no_trace() {
        let name = marked("a b.js");
        assert_eq!((label_of(&name), label_of("a b.js")), ("a b.js", "a b.js"));
        assert_eq!(name.len(), "a b.js".len() + MARK_BYTES);
        let text = stack(&[("f", ":1:2)"), ("g", ":3:4)")]);
        let odd = text.replace("main.js", "a:1:1)\nb");
        let found: Vec<_> = sites(odd.as_bytes(), |file| file == "a:1:1)\nb").collect();
        assert_eq!((found.len(), found[1].function, found[1].line), (2, &b"g"[..], 3));
        let bare = |text: &[u8], by| {
            let moved = |_: &str, line, column| Some(Position { line, column: column + by });
            without_marks(text, |file| file == "main.js", moved)
        };
        let read = bare(text.as_bytes(), 0).expect("it has marks");
        assert_eq!(read, b"    at f (main.js:1:2)\n    at g (main.js:3:4)\n");
        assert_eq!(bare(&read, 0), None);
        let moved = bare(text.as_bytes(), 10).expect("it has marks");
        assert_eq!(moved, b"    at f (main.js:1:12)\n    at g (main.js:3:14)\n");
    }
}
