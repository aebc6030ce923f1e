//! Brackets that are not closed, and texts that end too early.

use super::{
    source::{Advice, Source, first_word},
    tokens::{Bracket, LONGEST_PARSED},
};

pub(super) fn advice(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    if !source.tokens.complete || source.failure.message.starts_with("Unterminated") {
        return None;
    }
    let rest = source.rest().trim_start();
    let bracket = match rest.chars().next() {
        None if source.tokens.open.is_empty() => {
            return Some(Advice::new("the text ends within a statement"));
        }
        // The bracket whose closing one is at the wrong place, if the indentation shows it.
        None => source.tokens.suspect.or(source.tokens.innermost().copied()),
        Some(closing @ (')' | ']' | '}')) if source.rest().starts_with(closing) => {
            let opening = opening(closing);
            if source.tokens.open.iter().all(|bracket| !bracket.text.ends_with(opening))
                && source.tokens.innermost().is_none_or(|innermost| innermost.text == "{")
            {
                return Some(Advice::new(format!("no '{opening}' is open here")));
            }
            match crossed(source, closing) {
                Some(Crossed::TooMany) => {
                    return Some(Advice::new(format!("leave the '{closing}' out")));
                }
                Some(Crossed::Open(bracket)) => Some(bracket),
                None => None,
            }
        }
        Some(_) => interrupted(source),
    }?;
    let line = source.line(bracket.at);
    Some(Advice::new(match bracket.text {
        "`" => format!("the template that begins on line {line} is not closed"),
        text => format!("the '{text}' on line {line} is not closed"),
    }))
}

fn opening(closing: char) -> char {
    match closing {
        ')' => '(',
        ']' => '[',
        _ => '{',
    }
}

/// The mistake where a bracket is closed and another one is open within it.
enum Crossed<'a> {
    /// The closing bracket is one too many.
    TooMany,
    /// The bracket within is not closed.
    Open(Bracket<'a>),
}

/// The innermost bracket, which is of another kind than the closing one at the error. Where a block of several lines is
/// open, that one may as well be one too many, unless it begins a line.
fn crossed<'a>(source: &mut Source<'_, 'a, '_>, closing: char) -> Option<Crossed<'a>> {
    let innermost = *source.tokens.innermost()?;
    let (here, opening) = (source.text.len() - source.rest().len(), opening(closing));
    let left_out = format!("{}{}", source.to(here), source.from(here + 1));
    if left_out.len() <= LONGEST_PARSED && (source.reader.parses)(&left_out, source.typescript) {
        return Some(Crossed::TooMany);
    }
    let begins_line = source.text.get(source.line_start()..source.at)?.trim().is_empty();
    let near = innermost.at >= source.line_start() || begins_line;
    let open = if innermost.text.ends_with(opening) {
        None
    } else if innermost.text == "{" {
        source.tokens.suspect.or(near.then_some(innermost))
    } else {
        Some(innermost)
    };
    open.map(Crossed::Open)
}

/// The bracket that is open where a statement ends or begins.
fn interrupted<'a>(source: &Source<'_, 'a, '_>) -> Option<Bracket<'a>> {
    let innermost = *source.tokens.innermost()?;
    let rest = source.rest();
    let word = first_word(rest);
    if matches!(innermost.text, "(" | "[") {
        let ends = rest.starts_with(';')
            || matches!(
                word,
                "const"
                    | "let"
                    | "var"
                    | "return"
                    | "if"
                    | "for"
                    | "while"
                    | "throw"
                    | "switch"
                    | "export"
            );
        return (ends && innermost.before.text != "for").then_some(innermost);
    }
    // A declaration of the module begins a line, though a block is open.
    let top = matches!(word, "export" | "import") && source.at == source.line_start();
    (top && innermost.text == "{").then(|| source.tokens.suspect.unwrap_or(innermost))
}
