//! Strings, templates, numbers and objects that are not written as they must be.

use super::{Advice, Source, first_word};

pub(super) fn advice(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    template(source)
        .or_else(|| string(source))
        .or_else(|| apostrophe(source))
        .or_else(|| number(source))
        .or_else(|| object(source))
}

/// A template without an end. The parser's place is the last `}` in it.
fn template(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let unterminated = source.failure.message.starts_with("Unterminated");
    if !unterminated || !source.from(source.at).starts_with('}') {
        return None;
    }
    let at = source.tokens.open.iter().rev().find(|bracket| bracket.text == "`")?.at;
    let line = source.line(at);
    Some(Advice::at(format!("the template that begins on line {line} is not closed"), at))
}

/// A string over several lines.
fn string(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let rest = source.from(source.at);
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    if !source.failure.message.starts_with("Unterminated") {
        return None;
    }
    let mut lines = rest.lines().skip(1).take(20);
    if rest.lines().nth(1).is_none() {
        return Some(Advice::new("the text ends within it"));
    }
    // The line with the closing quote has no other one.
    let closing = lines.find(|line| line.contains(quote))?;
    (closing.matches(quote).count() == 1)
        .then(|| Advice::new("a string ends on its line: write a template in backticks"))
}

/// `'It's'`: a string right before a word.
fn apostrophe(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let string = source.tokens.back(0)?;
    let quote = string.text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let rest = source.from(string.end).lines().next().unwrap_or_default();
    let adjacent = string.end == source.at && rest.starts_with(char::is_alphabetic);
    (adjacent && rest.contains(quote))
        .then(|| Advice::new(format!("the string ends before it: write \\{quote} within a string")))
}

/// `5.toFixed()`, `5px`.
fn number(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let before = source.to(source.at);
    let digits = before.trim_end_matches('.').ends_with(|char: char| char.is_ascii_digit());
    if !digits || !first_word(source.from(source.at)).starts_with(char::is_alphabetic) {
        return None;
    }
    before.ends_with('.').then(|| Advice::new("put the number in parentheses"))
}

/// An object with `=` for `:`, and an object in the braces of an arrow function.
fn object(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let brace = source.tokens.innermost().filter(|bracket| bracket.text == "{")?;
    let rest = source.rest();
    if rest.starts_with(':') && brace.before.text == "=>" {
        return Some(Advice::at("an object after => takes parentheses: ({ … })", brace.at));
    }
    let name = first_word(rest);
    let assigns = rest.get(name.len()..).unwrap_or_default().trim_start().starts_with('=');
    let literal = source.failure.message.contains("object literal");
    (literal && assigns).then(|| Advice::new("write ':' in place of '='"))
}
