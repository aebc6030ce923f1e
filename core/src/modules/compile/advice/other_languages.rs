//! Words and signs of other languages than Python.

use super::{Advice, Source, first_word};

/// Beginnings of texts, with their language.
const BEGINNINGS: &[(&str, &str)] = &[
    ("#include", "C"),
    ("<?php", "PHP"),
    ("package main", "Go"),
    ("using System;", "C#"),
    ("import java.", "Java"),
    ("public class ", "Java"),
    ("SELECT ", "SQL"),
    ("$ ", "a command"),
    ("npm ", "a command"),
    ("pip ", "a command"),
];

pub(super) fn advice(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    language(source)
        .or_else(|| declaration(source))
        .or_else(|| head(source))
        .or_else(|| arrow(source))
        .or_else(|| method(source))
        .or_else(|| operator(source))
}

/// A text in a language that its beginning shows.
fn language(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let text = source.text.trim_start();
    let (_, language) = BEGINNINGS.iter().find(|(beginning, _)| text.starts_with(beginning))?;
    let start = source.text.len() - text.len();
    // These beginnings may be names of a program, which has its error elsewhere.
    let doubtful = matches!(*language, "SQL" | "a command") && source.line_start() > start;
    let clause = format!("this is {language}: write JavaScript or TypeScript");
    (!doubtful).then(|| Advice::at(clause, start))
}

/// `(a) -> a`, and a body without an arrow before it.
fn arrow(source: &Source<'_, '_, '_>) -> Option<Advice> {
    if source.from(source.at).starts_with('>') && source.to(source.at).ends_with('-') {
        return Some(Advice::at("write => in place of ->", source.at - 1));
    }
    let parameters = source.tokens.closed.filter(|bracket| bracket.text == "(")?;
    let begins = matches!(parameters.before.text, "=" | "async" | "," | "(" | "return");
    (begins && source.rest().starts_with('{')).then(|| Advice::new("write => before the body"))
}

/// A method with the word `function`, and a name with a hyphen.
fn method(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let tokens = &source.tokens;
    let brace = tokens.innermost().is_some_and(|bracket| bracket.text == "{");
    let expects = ["Expected `;`", "Expected `:`"];
    let function = tokens.back(0).filter(|token| token.text == "function");
    // At the start of a line it is a function of the module behind a class that is not closed.
    let function = function.filter(|token| token.start > source.line_start());
    if let Some(function) = function.filter(|_| brace)
        && expects.iter().any(|expected| source.failure.message.starts_with(expected))
    {
        return Some(Advice::at("a method is written without 'function'", function.start));
    }
    // The error is behind the name, or at a constant without a value.
    let declares = |word| matches!(word, "const" | "let" | "var" | "function" | "class");
    let rest = source.from(source.at);
    let behind = declares(tokens.text(1)) && rest.starts_with('-');
    let name = first_word(rest);
    let constant = source.failure.message.starts_with("Missing initializer in const")
        && rest.get(name.len()..).is_some_and(|rest| rest.starts_with('-'));
    (behind || constant).then(|| Advice::new("a name has no '-'"))
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
    if word.text == "then" && source.tokens.text(1) == ")" {
        return Some(Advice::at("leave 'then' out", word.start));
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
    if source.from(source.at).starts_with('>') && source.to(source.at).ends_with('<') {
        return Some(Advice::at("write !== in place of <>", source.at - 1));
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
