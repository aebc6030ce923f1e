//! Whether a text needs more lines.
//!
//! In: a text that does not parse, and its error. Out: whether more lines could make it parse: the error stands at the
//! end of the text, or at the beginning of a template or comment that is not closed.

use isolane::ExecutionError;

pub(super) fn needs_more(text: &str, error: &ExecutionError) -> bool {
    let (Some(line), Some(column)) = (error.line, error.column) else { return false };
    let (line, column) = (line as usize, column as usize);
    let lines: Vec<&str> = text.split('\n').collect();
    let Some(found) = line.checked_sub(1).and_then(|at| lines.get(at)) else { return false };
    let end = 1 + found.trim_end().encode_utf16().count();
    if line == lines.len() && column >= end {
        return true;
    }
    let mut unit = 1;
    let rest = found.char_indices().find_map(|(at, char)| {
        let is_here = unit >= column;
        unit += char.len_utf16();
        is_here.then(|| &found[at..])
    });
    let opens = rest.is_some_and(|rest| rest.starts_with('`') || rest.starts_with("/*"));
    opens && error.message.starts_with("Unterminated")
}

#[cfg(test)]
mod tests {
    use isolane::{ExecutionOptions, run_code};

    use super::*;

    fn needs_more_lines(text: &str) -> bool {
        let result = run_code(text, ExecutionOptions::default()).wait().expect("no misuse");
        needs_more(text, &result.error.expect("it does not parse"))
    }

    #[test]
    fn an_open_text_needs_more_lines() {
        for text in [
            "function f() {",
            "f(1,",
            "const a = [1,\n  2",
            "const text = `abc\n",
            "1; /* a comment\n goes on",
            "const a =",
            "a + ",
            "if (x)",
            "'ä𝒳' +",
            "import { a",
        ] {
            assert!(needs_more_lines(text), "{text}");
        }
    }

    #[test]
    fn a_wrong_text_stays_wrong() {
        for text in ["}", "const a = 5 5", "const a = ;", "const a = \"abc", "/abc", "a b\nc ("] {
            assert!(!needs_more_lines(text), "{text}");
        }
    }
}
