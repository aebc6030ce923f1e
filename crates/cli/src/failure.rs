//! A run that did not succeed, for people: the error, its place, the line with a caret below.
//!
//! In: a result, and the sources. Out: a text with colours, which the streams show on a terminal alone.

use anstyle::{AnsiColor, Style};
use isolane::ExecutionError;
use unicode_width::UnicodeWidthChar;

use crate::{sources::Sources, streams::harmless};

const RED: Style = AnsiColor::Red.on_default();
const BOLD: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const TAB: usize = 4;

/// The longest line that is shown, in characters: a bundle may have all of its code on one.
const MOST_CHARS: usize = 200;

/// The error, with line breaks at its end.
pub(crate) fn text(status: &str, error: &ExecutionError, sources: &Sources) -> String {
    let ExecutionError { name, message, filename, line, column, .. } = error;
    let (name, message) = (harmless(name), harmless(message));
    let mut text = format!("{RED}{status}{RED:#}  {BOLD}{name}{BOLD:#}: {message}");
    let Some(filename) = filename else { return text + "\n" };
    text.push_str("  ");
    text.push_str(&harmless(filename));
    let (Some(line), Some(column)) = (*line, *column) else { return text + "\n" };
    text.push_str(&format!(":{line}:{column}\n"));
    if let Some(source) = sources.text(filename)
        && let Some(source) = source.lines().nth(line as usize - 1)
        && source.chars().count() <= MOST_CHARS
    {
        let (shown, caret) = underlined(&harmless(source), column);
        let margin = line.to_string();
        let blanks = " ".repeat(margin.len());
        text.push_str(&format!("  {FAINT}{margin} |{FAINT:#} {shown}\n"));
        text.push_str(&format!("  {FAINT}{blanks} |{FAINT:#} {RED}{caret}{RED:#}\n"));
    }
    text
}

/// A line as a terminal shows it, and a line with a caret below its column, which counts UTF-16 units from 1. Tabs become
/// blanks; a wide character takes two cells.
fn underlined(text: &str, column: u32) -> (String, String) {
    let (mut shown, mut cells, mut unit, mut caret) = (String::new(), 0, 0, None);
    for char in text.chars() {
        if unit + 1 >= column as usize {
            caret.get_or_insert(cells);
        }
        unit += char.len_utf16();
        if char == '\t' {
            let blanks = TAB - cells % TAB;
            shown.push_str(&" ".repeat(blanks));
            cells += blanks;
        } else {
            shown.push(char);
            cells += char.width().unwrap_or(0);
        }
    }
    (shown, " ".repeat(caret.unwrap_or(cells)) + "^")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_below_wide_characters_and_tabs() {
        assert_eq!(underlined("\t担x", 3), ("    担x".to_owned(), "      ^".to_owned()));
        assert_eq!(underlined("ab", 9), ("ab".to_owned(), "  ^".to_owned()));
    }
}
