//! A function that evaluates a text elsewhere, such as in the page of a browser.
//!
//! In: a text of JavaScript, which may be anything. Out: the text of an asynchronous function that evaluates it. A text with
//! errors is given on as it is: the engine there tells of them.

use oxc_allocator::Allocator;
use oxc_ast::ast::{ArrowFunctionBody, Expression, Statement};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType, Span};

use super::{bounds::stack::with_stack_for, parse::without_mark};

/// A longer text is the body of its function, as it is: the process of the host parses a text, outside of the memory limit of
/// a run, and other runs wait for the parser.
const MOST_TEXT_BYTES: usize = 1 << 20;

/// A text that takes more memory to parse is the body of its function, too.
const MOST_BYTES: usize = 32 << 20;

const BODY_BEGINS: &str = "async () => {\n";

/// The text of an asynchronous function, for sloppy code, that evaluates a text: an expression, or the body of a function,
/// whose value is that of `return`, else of its last statement if that is an expression. A text of more than 1 MiB, or
/// one that takes more than 32 MiB to parse, is a body whose value is that of `return` alone. To read a text takes some 10 ms
/// for a MiB, and 32 MiB at most.
///
/// ```
/// use isolane::async_function;
///
/// assert_eq!(async_function("1 + 1"), "async () => (\n1 + 1\n)");
/// assert_eq!(async_function("return 2"), "async () => {\nreturn 2\n}");
/// assert_eq!(async_function("let x = 3; x;"), "async () => {\nlet x = 3; return (x\n);\n}");
/// ```
#[must_use]
pub fn async_function(text: &str) -> String {
    let text = without_mark(text);
    let whole = || format!("{BODY_BEGINS}{text}\n}}");
    if text.len() > MOST_TEXT_BYTES {
        return whole();
    }
    let expression = format!("async () => (\n{text}\n)");
    let written = with_stack_for(&expression, false, |weight| {
        if weight.bytes > MOST_BYTES {
            return None;
        }
        if of_body(&expression, |_| ()).is_some() {
            return Some(expression.clone());
        }
        let body = whole();
        let value = of_body(&body, last_value)??;
        let (start, end) = (value.start as usize, value.end as usize);
        let (before, value, after) = (&body[..start], &body[start..end], &body[end..]);
        Some(format!("{before}return ({value}\n){after}"))
    });
    written.ok().flatten().unwrap_or_else(whole)
}

/// Reads the body of a function, if its text has no errors.
fn of_body<T>(function: &str, read: impl FnOnce(&ArrowFunctionBody<'_>) -> T) -> Option<T> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, function, SourceType::cjs()).parse();
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        return None;
    }
    match parsed.program.body.as_slice() {
        [Statement::ExpressionStatement(only)] => match &only.expression {
            Expression::ArrowFunctionExpression(arrow) => Some(read(&arrow.body)),
            _ => None,
        },
        _ => None,
    }
}

/// The place of the value of a body: its last statement, if that is an expression. A text alone is a directive.
fn last_value(body: &ArrowFunctionBody<'_>) -> Option<Span> {
    let ArrowFunctionBody::FunctionBody(body) = body else { return None };
    let runs = |statement: &&Statement<'_>| !matches!(statement, Statement::EmptyStatement(_));
    match body.statements.iter().rev().find(runs) {
        Some(Statement::ExpressionStatement(last)) => Some(last.expression.span()),
        Some(_) => None,
        None => body.directives.last().map(|directive| directive.expression.span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_and_bodies_give_their_values() {
        let body = |text: &str| format!("{BODY_BEGINS}{text}\n}}");
        for (text, written) in [
            ("{ a: 1 }", "async () => (\n{ a: 1 }\n)".to_owned()),
            ("() => 1 // one", "async () => (\n() => 1 // one\n)".to_owned()),
            ("await f()", "async () => (\nawait f()\n)".to_owned()),
            ("document.title;", body("return (document.title\n);")),
            ("f(); // last", body("return (f()\n); // last")),
            ("'use strict'; with_it()", body("'use strict'; return (with_it()\n)")),
            ("'text';", body("return ('text'\n);")),
            ("const x = 5; x ;;", body("const x = 5; return (x\n) ;;")),
            ("if (a) return 1; f()", body("if (a) return 1; return (f()\n)")),
            ("for (;;) ;", body("for (;;) ;")),
            ("// nothing", body("// nothing")),
            ("with (a) b = 1", body("with (a) b = 1")),
            (") ; (", body(") ; (")),
            ("}, () => {", body("}, () => {")),
            ("let", "async () => (\nlet\n)".to_owned()),
        ] {
            assert_eq!(async_function(text), written, "{text}");
        }
    }

    #[test]
    fn texts_that_cost_much_are_bodies() {
        let long = format!("f();{}g()", " ".repeat(MOST_TEXT_BYTES));
        let deep = "(".repeat(1_000_000);
        let dense = format!("{}g()", "f();".repeat(200_000));
        for text in [long, deep, dense] {
            assert_eq!(async_function(&text), format!("{BODY_BEGINS}{text}\n}}"));
        }
        let large = format!("f('{}'); g()", "x".repeat(1_000_000));
        assert!(async_function(&large).ends_with("return (g()\n)\n}"));
    }
}
