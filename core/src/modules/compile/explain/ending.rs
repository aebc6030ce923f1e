//! The end of a module whose result did not come about.
//!
//! In: an entry, and the name of the export that the run selects. Out: the places of that export and of the last
//! statement, and a last statement that would export a result. Parses the text once more: for errors alone.

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, ArrowFunctionBody, CallExpression, Declaration, Expression, Program,
    SimpleAssignmentTarget, Statement,
};
use oxc_span::{GetSpan, Span};
use oxc_syntax::operator::{AssignmentOperator, UnaryOperator};

use super::{
    super::{
        bounds::stack::with_stack_for,
        module::CompiledModule,
        text::{line_terminators, lines::Lines},
    },
    again::{self, LONGEST},
};
use crate::data::outcome::Position;

/// The longest expression that a message repeats, in bytes.
const LONGEST_VALUE: usize = 80;

/// The end of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The start of the statement that exports the name.
    pub(crate) export: Option<Position>,
    /// The start of the statement that declares the name without exporting it.
    pub(crate) declared: Option<Position>,
    /// The start of the last statement.
    pub(crate) last: Option<Position>,
    /// A default export of the value that the last statement has or declares, if that is known and short.
    pub(crate) written: Option<String>,
}

/// The end of a module. A long text is not read.
pub(in super::super) fn find(module: &CompiledModule, name: &str) -> Ending {
    let (text, typescript) = (module.text(), module.typescript);
    if text.len() > LONGEST {
        return Ending::default();
    }
    let found = with_stack_for(text, typescript, |_| {
        let allocator = Allocator::default();
        let program = again::parse_again(module, &allocator);
        let line_terminators = line_terminators::find(&program);
        let mut lines = Lines::new(text, &line_terminators);
        let mut position = |span: Span| lines.position(span.start as usize);
        let export = program.body.iter().find(|statement| exports(statement, name));
        let declared = program.body.iter().find(|statement| declares(statement, name));
        let (last, value) = last(&program);
        Ending {
            export: export.map(|statement| position(statement.span())),
            declared: declared.map(|statement| position(statement.span())),
            written: value.map(|value| format!("export default {value}")),
            last: last.map(position),
        }
    });
    // The module was parsed before, so it does not nest too deeply.
    found.unwrap_or_default()
}

fn exports(statement: &Statement<'_>, name: &str) -> bool {
    match statement {
        Statement::ExportDefaultDeclaration(_) => name == "default",
        Statement::ExportDeclaration(export) => gives(&export.declaration, name),
        Statement::ExportNamedDeclaration(export) => {
            export.specifiers.iter().any(|one| one.exported.name() == name)
        }
        _ => false,
    }
}

/// Whether a statement declares a value of that name, and does not export it.
fn declares(statement: &Statement<'_>, name: &str) -> bool {
    let declaration = statement.as_declaration().filter(|declaration| !declaration.is_type());
    declaration.is_some_and(|declaration| gives(declaration, name))
}

fn gives(declaration: &Declaration<'_>, name: &str) -> bool {
    match declaration {
        Declaration::VariableDeclaration(variables) => {
            let mut all = variables.declarations.iter().flat_map(|one| {
                let names = one.id.get_binding_identifiers();
                names.into_iter().map(|id| id.name)
            });
            all.any(|declared| declared == name)
        }
        declaration => declaration.id().is_some_and(|id| id.name == name),
    }
}

/// The last statement, and the text of its value.
fn last(program: &Program<'_>) -> (Option<Span>, Option<String>) {
    let source = program.source_text;
    let runs = |statement: &&Statement<'_>| {
        let is_type = statement.as_declaration().is_some_and(Declaration::is_type);
        !is_type && !matches!(statement, Statement::EmptyStatement(_))
    };
    let Some(statement) = program.body.iter().rev().find(runs) else {
        // A text alone is a directive.
        let directive = program.directives.last();
        let text = directive.and_then(|directive| short(source, directive.expression.span));
        return (directive.map(|directive| directive.span), text);
    };
    let value = match statement {
        Statement::ExpressionStatement(statement) => value(source, &statement.expression),
        Statement::VariableDeclaration(variables) if !variables.declare => {
            let declared = variables.declarations.last();
            declared.and_then(|one| one.id.get_identifier_name()).map(|name| name.to_string())
        }
        Statement::FunctionDeclaration(function) => function.name().map(|name| name.to_string()),
        _ => None,
    };
    (Some(statement.span()), value)
}

/// The text of an expression as a default export: a call is awaited, and a log is the logged value.
fn value(source: &str, expression: &Expression<'_>) -> Option<String> {
    let expression = expression.get_inner_expression();
    match expression {
        Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::Void => {
            value(source, &unary.argument)
        }
        Expression::AwaitExpression(waiting) => {
            let whole = || short(source, expression.span());
            match waiting.argument.get_inner_expression() {
                Expression::CallExpression(_) => value(source, &waiting.argument),
                _ => whole(),
            }
        }
        Expression::CallExpression(call) => called(source, call),
        Expression::ChainExpression(chain) => {
            let text = short(source, chain.span)?;
            Some(if text.ends_with(')') { format!("await {text}") } else { text })
        }
        Expression::AssignmentExpression(assignment) => {
            let target = assignment.left.as_simple_assignment_target();
            let is_plain = assignment.operator == AssignmentOperator::Assign;
            match target.filter(|_| is_plain)? {
                SimpleAssignmentTarget::AssignmentTargetIdentifier(variable) => {
                    short(source, variable.span)
                }
                SimpleAssignmentTarget::StaticMemberExpression(member) => {
                    short(source, member.span)
                }
                _ => None,
            }
        }
        Expression::SequenceExpression(sequence) => value(source, sequence.expressions.last()?),
        Expression::ArrowFunctionExpression(arrow) if arrow.body.as_expression().is_none() => {
            short(source, arrow.span)
                .or_else(|| opened(source, arrow.span.start, arrow.body.span().start))
        }
        Expression::FunctionExpression(function) => short(source, function.span)
            .or_else(|| opened(source, function.span.start, function.body.as_ref()?.span.start)),
        Expression::ObjectExpression(object) => {
            Some(short(source, object.span).unwrap_or_else(|| "{ … }".to_owned()))
        }
        Expression::ArrayExpression(array) => {
            Some(short(source, array.span).unwrap_or_else(|| "[ … ]".to_owned()))
        }
        _ => short(source, expression.span()),
    }
}

fn called(source: &str, call: &CallExpression<'_>) -> Option<String> {
    let callee = call.callee.get_inner_expression();
    if let Some(member) = callee.as_member_expression() {
        if is_console(member.object()) {
            let [argument] = call.arguments.as_slice() else { return None };
            return value(source, argument.as_expression()?);
        }
        let name = member.static_property_name();
        let settles = match name.unwrap_or_default() {
            "catch" | "finally" => true,
            "then" => call.arguments.first().is_some_and(logs),
            _ => false,
        };
        if settles {
            return value(source, member.object());
        }
    }
    let text = short(source, call.span).or_else(|| match callee {
        Expression::ArrowFunctionExpression(arrow) => {
            let head = opened(source, arrow.span.start, arrow.body.span().start)?;
            Some(format!("({head})()"))
        }
        Expression::FunctionExpression(function) => {
            let head = opened(source, function.span.start, function.body.as_ref()?.span.start)?;
            Some(format!("({head})()"))
        }
        _ => {
            let name = short(source, callee.span())?;
            Some(format!("{name}(…)"))
        }
    });
    text.map(|text| format!("await {text}"))
}

/// Whether it is a method of the console, or an arrow function that only calls one.
fn logs(argument: &Argument<'_>) -> bool {
    let Some(given) = argument.as_expression() else { return false };
    let is_method = |callee: &Expression<'_>| {
        callee.as_member_expression().is_some_and(|method| is_console(method.object()))
    };
    let calls = |called: &Expression<'_>| match called.get_inner_expression() {
        Expression::CallExpression(call) => is_method(&call.callee),
        _ => false,
    };
    match given.get_inner_expression() {
        Expression::ArrowFunctionExpression(arrow) => match &arrow.body {
            ArrowFunctionBody::FunctionBody(body) => matches!(
                body.statements.as_slice(),
                [Statement::ExpressionStatement(only)] if calls(&only.expression)
            ),
            body => body.as_expression().is_some_and(calls),
        },
        given => is_method(given),
    }
}

fn is_console(object: &Expression<'_>) -> bool {
    object.get_identifier_reference().is_some_and(|object| object.name == "console")
}

/// The text of a short expression on one line.
fn short(source: &str, span: Span) -> Option<String> {
    let text = source.get(span.start as usize..span.end as usize)?;
    let is_short = text.len() <= LONGEST_VALUE && !text.chars().any(char::is_control);
    (is_short && !text.contains(['\u{2028}', '\u{2029}'])).then(|| text.to_owned())
}

/// A function up to its body.
fn opened(source: &str, start: u32, body: u32) -> Option<String> {
    let head = short(source, Span::new(start, body))?;
    Some(format!("{} {{ … }}", head.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::source::Language, modules::compile::compile};

    fn ending(text: &str) -> Ending {
        let module = compile(text, Language::TypeScript, &[], usize::MAX).expect("a module");
        find(&module, "default")
    }

    #[test]
    fn the_last_statement_is_written_as_an_export() {
        let long = format!("(async () => {{ {} }})();", "f(); ".repeat(40));
        let cases = [
            ("main();", "await main()"),
            ("await main()", "await main()"),
            ("void main();", "await main()"),
            ("main().catch(console.error);", "await main()"),
            ("main().then(console.log).catch((e) => { throw e; });", "await main()"),
            ("main().then((rows) => console.log(rows));", "await main()"),
            ("main().then((rows) => { console.table(rows); });", "await main()"),
            ("main().then((x) => { f(x); });", "await main().then((x) => { f(x); })"),
            ("main().then((x) => x.id)", "await main().then((x) => x.id)"),
            ("console.log(total);", "total"),
            ("console.log(await load());", "await load()"),
            ("console.log('total', total);", "…"),
            ("(async () => { f(); })();", "await (async () => { f(); })()"),
            (&long, "await (async () => { … })()"),
            ("const f = 1;\nconst rows = [f];", "rows"),
            ("async function main() {}", "main"),
            ("() => 1", "() => 1"),
            ("a.b\n  + c", "…"),
            ("a.b + c", "a.b + c"),
            ("total = 5", "total"),
            ("total += 5", "…"),
            ("a, b", "b"),
            ("tools?.run()", "await tools?.run()"),
            ("({ a: 1 })", "{ a: 1 }"),
            ("'text'", "'text'"),
            ("`a\n`", "…"),
            ("1;\ninterface A { b: string }\n;", "1"),
            ("for (;;) break;", "…"),
            ("class A {}", "…"),
        ];
        for (text, written) in cases {
            let written = (written != "…").then(|| format!("export default {written}"));
            assert_eq!(ending(text).written, written, "{text}");
        }
        assert_eq!(ending("// nothing"), Ending::default());
    }

    #[test]
    fn places_are_those_of_the_statements() {
        let found = ending("const a = 1;\n  export { a as default };\nf();");
        assert_eq!(found.declared, None);
        let place = |line, column| Some(Position { line, column });
        assert_eq!((found.export, found.last), (place(2, 3), place(3, 1)));
        assert_eq!(ending(&"f();\n".repeat(LONGEST)), Ending::default());
    }
}
