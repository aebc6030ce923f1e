//! Words and signs of other languages than Python.

use super::{
    source::{Advice, Source, begins_name, first_word, is_name, mentions},
    tokens::{Bracket, LONGEST_PARSED, Token, Tokens},
    words::{is_plain, is_reserved},
};

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

/// `(a) -> a`, `user->name`, and a body without an arrow before it.
fn arrow(source: &Source<'_, '_, '_>) -> Option<Advice> {
    if source.from(source.at).starts_with('>') && source.to(source.at).ends_with('-') {
        let thin = ThinArrow::new(source)?;
        let leads_on = thin.leads_to_member();
        let sign = if leads_on { "." } else { "=>" };
        return (leads_on || thin.begins_body())
            .then(|| Advice::at(format!("write {sign} in place of ->"), source.at - 1));
    }
    let rest = source.from(source.at);
    if let Some(after) = rest.strip_prefix("()")
        && after.trim_start().starts_with("->")
    {
        let at = source.at + rest.find("->")?;
        return Some(Advice::at("write => in place of ->", at));
    }
    let parameters = source.tokens.closed.filter(|bracket| bracket.text == "(")?;
    let begins = matches!(parameters.before.text, "=" | "async" | "," | "(" | "return");
    (begins && source.rest().starts_with('{')).then(|| Advice::new("write => before the body"))
}

/// `->`, which leads to a member in some languages, and to the body of a function in others.
struct ThinArrow<'a> {
    /// The tokens before it.
    tokens: Tokens<'a>,
    /// The last of them.
    operand: Token<'a>,
    before: &'a str,
    /// The text after it, up to the end of that line.
    after: &'a str,
    /// Whether no blanks are around it.
    tight: bool,
}

impl<'a> ThinArrow<'a> {
    fn new(source: &Source<'_, 'a, '_>) -> Option<Self> {
        let start = source.at - 1;
        let tokens = Tokens::before(source.text, start);
        let operand = *tokens.back(0)?;
        let after = source.from(source.at + 1);
        let tight = operand.end == start && !after.starts_with(char::is_whitespace);
        let after = after.trim_start().lines().next().unwrap_or_default();
        Some(Self { tokens, operand, before: source.to(operand.start), after, tight })
    }

    /// Whether no parameters are before it, and the name of a member is behind it.
    fn leads_to_member(&self) -> bool {
        let member = first_word(self.after);
        let behind = self.after.get(member.len()..).unwrap_or_default().trim_start();
        // A function of Rust has the type of its result there.
        if !self.tight || !begins_name(member) || behind.starts_with('{') {
            return false;
        }
        if let Some(bracket) = self.tokens.closed {
            return self.is_call_or_index(bracket);
        }
        let name = self.operand.text;
        if name == "this" || is_plain(name) && self.tokens.begins_statement(0) {
            return true;
        }
        let head = |bracket: &Bracket<'_>| is_reserved(bracket.before.text);
        let argument =
            matches!(self.tokens.text(1), "(" | ",") && !self.tokens.innermost().is_some_and(head);
        is_plain(name) && !mentions(behind, name) && (!argument || mentions(self.before, name))
    }

    /// Whether that bracket, which is closed, holds no parameters: a name or another bracket is right before it.
    fn is_call_or_index(&self, bracket: Bracket<'_>) -> bool {
        let callee = bracket.before;
        let mut before = self.tokens.backwards().skip_while(|token| token.start > callee.start);
        let declares = |token: &Token<'_>| {
            matches!(token.text, "function" | "fn" | "func" | "fun" | "def" | "async")
        };
        matches!(bracket.text, "(" | "[")
            && callee.end == bracket.at
            && (matches!(callee.text, ")" | "]") || is_plain(callee.text) && callee.text != "async")
            && before.nth(1).is_some_and(|token| !declares(token))
    }

    /// Whether parameters are before it, and the body of their function is behind it.
    fn begins_body(&self) -> bool {
        let is_expression = !begins_name(self.after)
            || matches!(first_word(self.after), "true" | "false" | "null" | "new" | "await");
        let Some(bracket) = self.tokens.closed else {
            let name = self.operand.text;
            let begins = first_word(self.after) == name;
            let own = !self.tight || begins || !mentions(self.before, name);
            let function = is_expression || own && mentions(self.after, name);
            return is_plain(name) && !self.tokens.begins_statement(0) && function;
        };
        let begins = matches!(
            bracket.before.text,
            "=" | "(" | "," | ":" | "=>" | "[" | "?" | "return" | "async" | "default"
        );
        let parameters = self.before.get(bracket.at + 1..).unwrap_or_default().trim();
        let several = !parameters.chars().all(is_name) || !self.tight;
        let function = is_expression || several || mentions(self.after, parameters);
        bracket.text == "(" && begins && function
    }
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
    let goes_on = |rest: &str| rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(is_name));
    let behind = declares(tokens.text(1)) && goes_on(rest);
    let name = first_word(rest);
    let constant = source.failure.message.starts_with("Missing initializer in const")
        && rest.get(name.len()..).is_some_and(goes_on);
    (behind || constant).then(|| Advice::new("a name has no '-'"))
}

/// `int total = 0`, `let mut total`, `func total(…)`, `total := 0`.
fn declaration(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let tokens = &source.tokens;
    let word = tokens.back(0)?;
    let rest = source.rest();
    let name = first_word(rest);
    if source.to(source.at).ends_with(':') && rest.starts_with('=') {
        let colon = source.at - 1;
        return if matches!(tokens.text(2), "let" | "const" | "var") {
            Some(Advice::at("write = in place of :=", colon))
        } else {
            let statement = tokens.begins_statement(1);
            statement.then(|| Advice::at("a variable is declared with let or const", colon))
        };
    }
    if rest.starts_with(":=") && matches!(tokens.text(1), "let" | "const" | "var") {
        let at = source.text.len() - rest.len();
        return Some(Advice::at("write = in place of :=", at));
    }
    // The error is at a constant without a value.
    let behind = rest.get(name.len()..).unwrap_or_default();
    if behind.trim_start().starts_with(":=") && matches!(word.text, "let" | "const" | "var") {
        let at = source.text.len() - behind.trim_start().len();
        return Some(Advice::at("write = in place of :=", at));
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
    if word.text == "for" && first_word(source.rest()) == "each" {
        return Some(Advice::new("write for (const … of …)"));
    }
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

/// The place of `=<`. In TypeScript a type follows it, up to the error.
fn at_most(source: &Source<'_, '_, '_>) -> Option<usize> {
    let message = &source.failure.message;
    let line = source.text.get(source.line_start()..source.at)?;
    let at = source.line_start() + line.rfind("=<")?;
    let parses = || {
        let text = format!("{}<={}", source.to(at), source.from(at + 2));
        text.len() <= LONGEST_PARSED && (source.reader.parses)(&text, source.typescript)
    };
    (message.starts_with("Expected `>`") && parses()).then_some(at)
}

/// Whether an operand ends with a token.
fn ends_operand(token: &Token<'_>) -> bool {
    let name = token.text.starts_with(is_name) && !is_reserved(token.text);
    name || token.text == "this" || token.text.ends_with([')', ']', '\'', '"', '`'])
}

/// `=<`, and `=` for `===`.
fn operator(source: &Source<'_, '_, '_>) -> Option<Advice> {
    let rest = source.rest();
    if rest.starts_with('<') && source.to(source.at).ends_with('=') {
        return Some(Advice::at("write <= in place of =<", source.at - 1));
    }
    if let Some(at) = at_most(source) {
        return Some(Advice::at("write <= in place of =<", at));
    }
    let unequal = source.from(source.at).starts_with('>') && source.to(source.at).ends_with('<');
    if unequal && source.tokens.back(1).is_some_and(ends_operand) {
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
