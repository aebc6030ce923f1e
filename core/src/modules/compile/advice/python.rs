//! Python in place of JavaScript.

use super::source::{Advice, Source, first_word, is_name};

const PYTHON: &str = "this is Python: write JavaScript or TypeScript";

/// Longer imports are not written anew.
const LONGEST_LINE: usize = 200;

pub(super) fn advice(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    import(source)
        .or_else(|| block(source))
        .or_else(|| comment(source))
        .or_else(|| docstring(source))
        .or_else(|| word_after(source))
        .or_else(|| word_before(source))
}

/// `from shop import orders`, `import json`, `import numpy as np`. The form of JavaScript is a remedy only for a module
/// of the run.
fn import(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let start = source.tokens.backwards().find(|token| token.first)?;
    let line = source.from(start.start).lines().next()?.trim_end();
    let (keyword, rest) = line.split_once(' ')?;
    let (module, names) = match keyword {
        "from" => rest.trim_start().split_once(" import ")?,
        "import" => rest.split_once(" as ").unwrap_or((rest, "")),
        _ => return None,
    };
    let (module, names) = (module.trim(), names.trim());
    let several = keyword == "import" && module.split(',').all(|module| is_module(module.trim()));
    if !is_module(module) && !several || !names.split(',').all(|name| is_named(name.trim())) {
        return None;
    }
    let form = match (keyword, names) {
        ("import", "") | ("from", "*") => format!("* as {module}"),
        ("import", local) => format!("* as {local}"),
        _ => format!("{{ {names} }}"),
    };
    let named = || (module.to_owned(), format!("write import {form} from '{module}'"));
    let if_given = (line.len() <= LONGEST_LINE).then(named);
    Some(Advice { if_given, ..Advice::at(PYTHON, start.start) })
}

fn is_module(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || "._".contains(char))
}

/// Whether a text is nothing, a star, a name, or a name with another one.
fn is_named(text: &str) -> bool {
    let words = text.split_ascii_whitespace();
    let plain = |word: &str| word.chars().all(is_name);
    text == "*" || words.clone().count() <= 3 && words.clone().all(plain)
}

/// A line that begins a block of Python: `def total(rows):`.
fn block(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let line = source.error_line();
    let head = line.split(" #").next().unwrap_or_default().trim_end().strip_suffix(':')?;
    let first = first_word(head);
    let more = head.len() > first.len();
    let python = match first {
        "def" | "elif" | "class" | "with" | "except" | "for" | "while" | "if" => {
            more || first == "except"
        }
        "async" => head.starts_with("async def ") || head.starts_with("async with "),
        "try" | "finally" | "else" => !more,
        _ => false,
    };
    let braces = head.contains(['{', '?', ';']);
    (python && !braces).then(|| {
        let indent = source.from(source.line_start());
        let blanks = indent.len() - indent.trim_start().len();
        Advice::at(PYTHON, source.line_start() + blanks)
    })
}

/// `# a comment`
fn comment(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let line = source.error_line();
    let hash = source.from(source.line_start()).find('#')? + source.line_start();
    let here = hash == source.at || hash + 1 == source.at;
    (here && line.starts_with('#') && line.trim_start_matches('#').starts_with(' '))
        .then(|| Advice::at("a comment begins with //", hash))
}

/// `"""a text"""`: an empty string right before another one.
fn docstring(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let empty = source.tokens.back(0).filter(|token| matches!(token.text, "\"\"" | "''"))?;
    let third = source.from(empty.end).starts_with(empty.text.get(..1)?);
    let here = empty.end == source.at;
    (third && here)
        .then(|| Advice::at("a text of several lines is written in backticks", empty.start))
}

/// An operator that is a word: the parser ended a statement before it.
fn word_after(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let rest = source.rest();
    let word = first_word(rest);
    let line = rest.lines().next().unwrap_or_default();
    let listed = source.tokens.innermost().is_some_and(|bracket| matches!(bracket.text, "[" | "("));
    let clause = match word {
        "and" => "write && in place of 'and'",
        "or" => "write || in place of 'or'",
        "is" if is_spaced(line) => "write === in place of 'is'",
        "if" if line.contains(" else ") && !line.contains('{') => {
            "write condition ? value : otherwise"
        }
        "for" if listed && (line.contains(" in ") || line.contains(" of ")) => {
            "a list is made of another with map and filter"
        }
        _ => return None,
    };
    // After an operand alone; a statement may begin with any word on a line of its own. Right behind a string the word may
    // be a part of that.
    let operand = source.tokens.back(0)?;
    if source.from(operand.end).starts_with(word) && operand.text.ends_with(['\'', '"', '`']) {
        return None;
    }
    let same_line = !source.from(operand.end).starts_with(['\n', '\r']);
    same_line.then(|| Advice::at(clause, source.text.len() - rest.len()))
}

fn is_spaced(line: &str) -> bool {
    line.split(' ')
        .nth(1)
        .is_some_and(|word| matches!(first_word(word), "not" | "None" | "True" | "False"))
}

/// A word before an operand: `not done`, `lambda x: x`, `f"…"`, `print x`.
fn word_before(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let word = source.tokens.back(0)?;
    let rest = source.rest();
    let quoted = rest.starts_with(['"', '\'']);
    let name = rest.starts_with(|char: char| char.is_alphabetic());
    let clause = match word.text {
        "not" if name || rest.starts_with('(') => "write ! in place of 'not'",
        "lambda" if name || rest.starts_with(':') => "an arrow function is written (x) => …",
        "f" | "F" if quoted && word.end == source.at => {
            "write a template in backticks: `… ${name}`"
        }
        "print" | "echo" | "puts" if quoted || name => "console.log(…) writes a line",
        "raise" if name => "write throw new in place of 'raise'",
        "except" => PYTHON,
        _ => return None,
    };
    Some(Advice::at(clause, word.start))
}
