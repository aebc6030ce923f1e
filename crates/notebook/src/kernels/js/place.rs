//! The place of a throw in a cell.
//!
//! In: a stack, and the code of cells. Out: the stack without the notebook's own frames, and the place that an error
//! points at: the one of `throw new MyError()`, where the stack begins in the constructor of that class.

/// The file of the notebook's own code.
pub(super) const OWN_FILE: &str = "<notebook>";

/// A frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'s> {
    pub(super) file: &'s str,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl<'s> Place<'s> {
    /// Reads `    at name (file:line:column)`.
    fn of(frame: &'s str) -> Option<Self> {
        let (_, place) = frame.strip_suffix(')')?.rsplit_once('(')?;
        let (place, column) = place.rsplit_once(':')?;
        let (file, line) = place.rsplit_once(':')?;
        Some(Self { file, line: line.parse().ok()?, column: column.parse().ok()? })
    }
}

/// The stack without frames of the notebook.
pub(super) fn without_own(stack: &str) -> String {
    let is_own = |frame: &&str| Place::of(frame).is_some_and(|place| place.file == OWN_FILE);
    stack.lines().filter(|frame| !is_own(frame)).collect::<Vec<_>>().join("\n")
}

/// The place of the throw; `None` if the stack has none. `code` gives the code of a cell.
pub(super) fn thrown_at<'s, 'c>(
    stack: &'s str,
    code: impl Fn(&str) -> Option<&'c str>,
) -> Option<Place<'s>> {
    let mut frames = stack.lines().filter_map(Place::of).peekable();
    while let Some(place) = frames.next() {
        let line = code(place.file).and_then(|code| line_of(code, place.line));
        if frames.peek().is_none() || !line.is_some_and(|line| constructs(line, place.column)) {
            return Some(place);
        }
    }
    None
}

/// A line of code, counted from 1.
pub(super) fn line_of(code: &str, line: u32) -> Option<&str> {
    code.lines().nth(usize::try_from(line.checked_sub(1)?).ok()?)
}

/// Whether a class stands there, which has no constructor of its own, or a call of `super`.
fn constructs(line: &str, column: u32) -> bool {
    let mut units = 0;
    let before: usize = line
        .chars()
        .take_while(|letter| {
            units += letter.len_utf16();
            units < column as usize
        })
        .map(char::len_utf8)
        .sum();
    let (before, after) = line.split_at(before);
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    let begins = |word: &str| {
        after.strip_prefix(word).is_some_and(|rest| !rest.starts_with(is_word))
            && !before.ends_with(is_word)
    };
    begins("class") || begins("super") || is_within_super(before)
}

/// Whether a call of `super` is open at the end of a text: the engine may name an argument.
fn is_within_super(before: &str) -> bool {
    let Some((_, arguments)) = before.rsplit_once("super(") else { return false };
    let mut open = 1_u32;
    for letter in arguments.chars() {
        match letter {
            '(' => open += 1,
            ')' if open == 1 => return false,
            ')' => open -= 1,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thrown(stack: &str, code: &str) -> Option<(u32, u32)> {
        let code = |file: &str| (file == "<cell 1>").then_some(code);
        thrown_at(stack, code).map(|place| (place.line, place.column))
    }

    #[test]
    fn constructors_of_classes_of_errors_are_passed_over() {
        let stack = "    at MyError (<cell 1>:1:1)\n    at f (<cell 1>:2:13)";
        assert_eq!(thrown(stack, "class MyError extends Error {}\n"), Some((2, 13)));
        let stack =
            "    at A (<cell 1>:1:26)\n    at B (<cell 1>:2:3)\n    at <anonymous> (<cell 1>:9:2)";
        assert_eq!(thrown(stack, "é constructor(m) { super(m) }\n  super()"), Some((9, 2)));
        let stack = "    at A (<cell 1>:1:31)\n    at <anonymous> (<cell 1>:2:5)";
        assert_eq!(thrown(stack, "constructor(m) { super(f(m), `${m}`) }\n"), Some((2, 5)));
        // The engine threw within a constructor.
        let stack = "    at A (<cell 1>:1:27)\n    at <anonymous> (<cell 1>:2:5)";
        assert_eq!(
            thrown(stack, "class A { constructor() { undefined.y } }\nnew A()"),
            Some((1, 27))
        );
        assert_eq!(
            thrown("    at superior (<cell 1>:1:1)\n    at f (<cell 1>:2:1)", "superior()"),
            Some((1, 1))
        );
    }

    #[test]
    fn any_text_is_a_stack() {
        for stack in
            ["", "x", "    at f ()", "    at f (a:b:c)", "    at f (<cell 1>:0:0)\n)", "(:1:1)"]
        {
            let _ = thrown(stack, "é");
        }
        assert_eq!(
            thrown("    at f (<cell 1>:4294967295:4294967295)", "é"),
            Some((u32::MAX, u32::MAX))
        );
        assert_eq!(
            without_own("    at check (<notebook>:1:2)\n    at f (<cell 1>:1:2)"),
            "    at f (<cell 1>:1:2)"
        );
    }
}
