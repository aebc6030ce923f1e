//! Strings, templates, numbers and objects that are not written as they must be.

use super::{
    source::{Advice, Source, first_word, is_name},
    tokens::Bracket,
};

pub(super) fn advice(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    template(source)
        .or_else(|| string(source))
        .or_else(|| quote(source))
        .or_else(|| escape(source))
        .or_else(|| comment(source))
        .or_else(|| unquoted(source))
        .or_else(|| number(source))
        .or_else(|| object(source))
}

/// A template without an end. The parser's place is the last `}` in it, or the backtick in an expression within it.
fn template(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let rest = source.from(source.at);
    if !source.failure.message.starts_with("Unterminated") {
        return None;
    }
    if let Some(innermost) = source.tokens.innermost().copied()
        && innermost.text == "${"
        && rest.starts_with('`')
    {
        let line = source.line(innermost.at);
        return Some(Advice::at(format!("the '${{' on line {line} is not closed"), innermost.at));
    }
    let mut open = source.tokens.open.iter().rev();
    let at = open.find(|bracket| bracket.text == "`" && rest.starts_with('}'))?.at;
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
    // The line with the closing quote has no other one, and the first line ends no statement.
    let closing = lines.find(|line| line.contains(quote))?;
    let single = closing.matches(quote).count() == 1;
    let closes = closing.split(quote).nth(1).is_some_and(may_follow_literal);
    let ends = rest.lines().next().is_some_and(|line| line.trim_end().ends_with(';'));
    (single && closes && !ends)
        .then(|| Advice::new("a string ends on its line: write a template in backticks"))
}

/// Whether a text goes on as it may behind a string: no operand is next.
pub(super) fn may_follow_literal(text: &str) -> bool {
    let next = text.trim_start_matches([' ', '\t']).chars().next();
    next.is_none_or(|char| !is_name(char) && !"'\"`#@\\".contains(char))
}

/// `'It's'`, and a backtick in a template: the literal ends right before a word.
fn quote(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let literal = source.tokens.back(0)?;
    let quote = literal.text.chars().next_back()?;
    let rest = source.from(literal.end).lines().next().unwrap_or_default();
    // A template goes on behind the word, so it has its end there, too.
    let quotes = rest.matches(quote).count();
    let (kind, goes_on) = match quote {
        '\'' | '"' => ("string", quotes > 0),
        '`' => ("template", quotes > 0 && quotes % 2 == 0),
        _ => return None,
    };
    let adjacent = literal.end == source.at && rest.starts_with(char::is_alphabetic);
    (adjacent && goes_on)
        .then(|| Advice::new(format!("the {kind} ends before it: write \\{quote} within a {kind}")))
}

/// `'C:\users'`, `'\033[0m'`
fn escape(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let rest = source.from(source.at);
    let message = &source.failure.message;
    if message == "Invalid escape sequence" && rest.starts_with("\\u") {
        return Some(Advice::new("write \\\\ for a backslash"));
    }
    let line = rest.lines().next().unwrap_or_default();
    (message.contains("octal") && line.starts_with(['\'', '"']) && line.contains("\\033"))
        .then(|| Advice::new("write \\x1b in place of \\033"))
}

/// The end of a comment in which another one ended.
fn comment(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let ends = source.from(source.at).starts_with('/') && source.to(source.at).ends_with('*');
    ends.then(|| Advice::new("a comment ends at its first */"))
}

/// An address or a date that is no string.
fn unquoted(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let word = source.tokens.back(0)?;
    if matches!(word.text, "http" | "https") && source.rest().starts_with("://") {
        return Some(Advice::at("write the address in quotes", word.start));
    }
    let number = source.tokens.back(1)?;
    let digits = first_word(source.rest());
    let date = word.text == "-"
        && number.text.len() == 4
        && [number.text, digits].iter().all(|part| is_digits(part))
        && number.end + 1 == source.at;
    (date && digits.len() == 2).then(|| Advice::at("write the date in quotes", number.start))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `5.toFixed()`, `1,000`, `let 2nd`
fn number(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let before = source.to(source.at);
    let word = first_word(source.from(source.at));
    if let Some(whole) = before.strip_suffix(',') {
        // In a list the comma may as well separate two values.
        let listed = |bracket: &Bracket<'_>| matches!(bracket.text, "(" | "[");
        let group = whole.ends_with(|char: char| char.is_ascii_digit())
            && !source.tokens.innermost().is_some_and(listed);
        return (group && word.len() == 3 && is_digits(word))
            .then(|| Advice::new("write the number without a comma"));
    }
    if !source.failure.message.starts_with("Invalid characters after number") {
        return None;
    }
    let declared = before.trim_end_matches(|char: char| char.is_ascii_digit());
    if ["const ", "let ", "var "].iter().any(|keyword| declared.ends_with(keyword)) {
        return Some(Advice::at("a name does not begin with a digit", declared.len()));
    }
    before.ends_with('.').then(|| Advice::new("put the number in parentheses"))
}

/// An object with `=` for `:`, and an object in the braces of an arrow function.
fn object(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let brace = source.tokens.innermost().filter(|bracket| bracket.text == "{")?;
    let rest = source.rest();
    let inside = source.text.get(brace.at + 1..source.at).unwrap_or_default().trim_start();
    if rest.starts_with(':') && brace.before.text == "=>" && begins_with_key(inside) {
        return Some(Advice::at("an object after => takes parentheses: ({ … })", brace.at));
    }
    let name = first_word(rest);
    let assigns = rest.get(name.len()..).unwrap_or_default().trim_start().starts_with('=');
    let literal = source.failure.message.contains("object literal");
    (literal && assigns).then(|| Advice::new("write ':' in place of '='"))
}

/// Whether the text of an object up to a colon begins with a key, and has no statements.
fn begins_with_key(text: &str) -> bool {
    let quoted = |quote: char| text.strip_prefix(quote)?.split_once(quote);
    let after = match quoted('"').or_else(|| quoted('\'')) {
        Some((_, after)) => after,
        None => text.trim_start_matches(is_name),
    };
    let after = after.trim_start();
    (after.is_empty() || after.starts_with(':')) && !text.contains(';')
}
