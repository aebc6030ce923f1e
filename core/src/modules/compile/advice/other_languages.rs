//! Words and signs of other languages than Python.

use super::{Advice, Source, first_word};

pub(super) fn advice(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    declaration(source).or_else(|| head(source)).or_else(|| operator(source))
}

/// `int total = 0`, `let mut total`, `func total(…)`, `total := 0`.
fn declaration(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let tokens = &source.tokens;
    let word = tokens.back(0)?;
    let rest = source.rest();
    let name = first_word(rest);
    if source.to(source.at).ends_with(':') && rest.starts_with('=') {
        return Some(Advice::at("a variable is declared with let or const", word.start));
    }
    if name.is_empty() || !tokens.begins_statement(0) && word.text != "mut" {
        return None;
    }
    let clause = match word.text {
        "func" | "fn" | "fun" | "def" | "sub" => "a function is declared with 'function'",
        "mut" if matches!(tokens.text(1), "let" | "const") => "leave 'mut' out",
        "int" | "float" | "double" | "string" | "String" | "bool" | "boolean" | "char" | "long"
        | "auto" | "val" | "local" | "dim" | "my" | "final" => {
            "a variable is declared with let or const"
        }
        _ => return None,
    };
    Some(Advice::at(clause, word.start))
}

/// `if count > 2 {`, and `elif (…) {`.
fn head(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let word = source.tokens.back(0)?;
    if matches!(word.text, "if" | "while" | "switch" | "for") && !source.rest().starts_with('(') {
        let parses = source.failure.message.starts_with("Expected `(`");
        return parses.then(|| Advice::new(format!("write parentheses after '{}'", word.text)));
    }
    let called = source.tokens.closed.filter(|bracket| bracket.text == "(")?.before;
    let clause = match called.text {
        "elif" | "elsif" | "elseif" => format!("write else if in place of '{}'", called.text),
        "foreach" => "write for (const … of …)".to_owned(),
        "unless" => "write if (!…) in place of 'unless'".to_owned(),
        _ => return None,
    };
    Some(Advice::at(clause, called.start))
}

/// `=<`, and `=` for `===`.
fn operator(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let rest = source.rest();
    if rest.starts_with('<') && source.to(source.at).ends_with('=') {
        return Some(Advice::at("write <= in place of =<", source.at - 1));
    }
    let message = &source.failure.message;
    if first_word(rest) == "else" {
        return Some(Advice::new("no 'if' ends right before it"));
    }
    let assigns = message.starts_with("Cannot assign to this expression");
    let target = source.from(source.at).split('=').next().unwrap_or_default();
    if assigns && target.len() < 200 && target.contains("?.") {
        return Some(Advice::new("write it without ?."));
    }
    let bracket = source.tokens.innermost()?;
    let head = bracket.before.text;
    let first = source.text.get(bracket.at..source.at).unwrap_or_default();
    let ends = rest.trim_start().is_empty() || rest.starts_with(')');
    let parts = head == "for" && first.contains('=') && !ends;
    if parts && message.starts_with("Expected `;`") {
        return Some(Advice::new("write ; between the parts of a for"));
    }
    let compares = assigns && matches!(head, "if" | "while");
    compares.then(|| Advice::new("write === to compare"))
}
