//! The cut of texts that are longer than a call may show.
//!
//! In: the texts of cells, and the limits of a call. Out: the part of each that is shown, and the words about the rest. The
//! largest are cut first, to an equal share. Cuts fall between lines, unless a line alone is too long.

use super::{kept::Kept, words::grouped};
use crate::Window;

/// The shown part of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) text: String,
    /// The words about what is missing.
    pub(crate) missing: Option<String>,
}

/// The largest size that each of these may have, so that all together have at most `total`.
pub(crate) fn share(sizes: &[u64], total: u64) -> u64 {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut left = total;
    for (index, size) in sorted.iter().enumerate() {
        let others = (sorted.len() - index) as u64;
        let share = left / others;
        if *size > share {
            return share;
        }
        left -= size;
    }
    u64::MAX
}

/// The part of a text that fits into so many bytes and lines.
pub(crate) fn cut(text: &Kept, window: Window, most_bytes: u64, most_lines: u64) -> Shown {
    if text.bytes() <= most_bytes
        && text.lines() <= most_lines
        && let Some(text) = text.whole()
    {
        return Shown { text, missing: None };
    }
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (start_bytes, start_lines) = match window {
        Window::Tail => (0, 0),
        Window::Head => (most_bytes, most_lines),
        Window::Ends => (most_bytes / 5, most_lines / 5),
    };
    let whole = text.whole();
    let from_start = whole.clone().unwrap_or_else(|| text.start());
    let from_end = whole.unwrap_or_else(|| text.end());
    let first = first_part(&from_start, size(start_bytes), size(start_lines));
    let (end_bytes, end_lines) = (most_bytes - start_bytes, most_lines - start_lines);
    let last = last_part(&from_end, size(end_bytes), size(end_lines));
    let is_in_line =
        (window != Window::Tail && first.is_in_line) || (window != Window::Head && last.is_in_line);
    let count = |part: &Part<'_>| if is_in_line { part.text.len() } else { part.lines() } as u64;
    let (unit, total) = if is_in_line { ("bytes", text.bytes()) } else { ("lines", text.lines()) };
    let (head, tail, total) = (grouped(count(&first)), grouped(count(&last)), grouped(total));
    let (text, missing) = match window {
        Window::Tail => (last.text.to_owned(), format!("last {tail} of {total} {unit}")),
        Window::Head => (first.text.to_owned(), format!("first {head} of {total} {unit}")),
        Window::Ends => {
            let text = [first.text, "…", last.text];
            let text: Vec<&str> = text.into_iter().filter(|part| !part.is_empty()).collect();
            (text.join("\n"), format!("first {head} and last {tail} of {total} {unit}"))
        }
    };
    Shown { text, missing: Some(missing) }
}

/// A part of a text.
struct Part<'t> {
    text: &'t str,
    /// Whether a line is cut.
    is_in_line: bool,
}

impl Part<'_> {
    fn lines(&self) -> usize {
        if self.text.is_empty() { 0 } else { self.text.matches('\n').count() + 1 }
    }
}

/// The first lines that fit.
fn first_part(text: &str, bytes: usize, lines: usize) -> Part<'_> {
    let of_lines =
        text.match_indices('\n').nth(lines.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    let end = if lines == 0 { 0 } else { of_lines };
    if end <= bytes {
        return Part { text: &text[..end], is_in_line: false };
    }
    // A newline right behind the bytes ends a line as well.
    let end = text.floor_char_boundary(bytes);
    match text.get(..(end + 1).min(text.len())).unwrap_or(&text[..end]).rfind('\n') {
        Some(newline) => Part { text: &text[..newline], is_in_line: false },
        None => Part { text: &text[..end], is_in_line: true },
    }
}

/// The last lines that fit.
fn last_part(text: &str, bytes: usize, lines: usize) -> Part<'_> {
    let of_lines =
        text.rmatch_indices('\n').nth(lines.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
    let start = if lines == 0 { text.len() } else { of_lines };
    if text.len() - start <= bytes {
        return Part { text: &text[start..], is_in_line: false };
    }
    let start = text.ceil_char_boundary(text.len() - bytes.min(text.len()));
    // A newline right before the bytes begins a line as well.
    let before = text.floor_char_boundary(start.saturating_sub(1));
    match text[before..].find('\n') {
        Some(newline) if before + newline + 1 < text.len() => {
            Part { text: &text[before + newline + 1..], is_in_line: false }
        }
        Some(_) | None => Part { text: &text[start..], is_in_line: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Kept {
        let mut kept = Kept::new(1000);
        kept.push(text);
        kept
    }

    fn shown(text: &str, window: Window, bytes: u64, lines: u64) -> (String, Option<String>) {
        let shown = cut(&kept(text), window, bytes, lines);
        (shown.text, shown.missing)
    }

    #[test]
    fn the_largest_are_cut_to_an_equal_share() {
        assert_eq!(share(&[10, 10], 20), u64::MAX);
        assert_eq!(share(&[10, 100, 100], 50), 20);
        assert_eq!(share(&[1, 2, 100], 50), 47);
        assert_eq!(share(&[], 50), u64::MAX);
    }

    #[test]
    fn windows_cut_between_lines() {
        let text = "one\ntwo\nthree\nfour";
        let words = |text: &str, missing: &str| (text.to_owned(), Some(missing.to_owned()));
        assert_eq!(shown(text, Window::Tail, 100, 100), (text.to_owned(), None));
        assert_eq!(shown(text, Window::Tail, 100, 2), words("three\nfour", "last 2 of 4 lines"));
        assert_eq!(shown(text, Window::Tail, 11, 9), words("three\nfour", "last 2 of 4 lines"));
        assert_eq!(shown(text, Window::Tail, 10, 9), words("three\nfour", "last 2 of 4 lines"));
        assert_eq!(shown(text, Window::Tail, 9, 9), words("four", "last 1 of 4 lines"));
        assert_eq!(shown(text, Window::Head, 7, 9), words("one\ntwo", "first 2 of 4 lines"));
        assert_eq!(shown(text, Window::Head, 100, 1), words("one", "first 1 of 4 lines"));
        let ends = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12";
        assert_eq!(
            shown(ends, Window::Ends, 100, 10),
            words("1\n2\n…\n5\n6\n7\n8\n9\n10\n11\n12", "first 2 and last 8 of 12 lines")
        );
    }

    #[test]
    fn a_line_alone_that_is_too_long_is_cut_within() {
        let words = |text: &str, missing: &str| (text.to_owned(), Some(missing.to_owned()));
        assert_eq!(shown("abcdefghij", Window::Tail, 4, 9), words("ghij", "last 4 of 10 bytes"));
        assert_eq!(shown("abcdefghij", Window::Head, 4, 9), words("abcd", "first 4 of 10 bytes"));
        assert_eq!(shown("ééé", Window::Tail, 3, 9), words("é", "last 2 of 6 bytes"));
    }
}
