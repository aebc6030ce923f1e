//! `await`, `yield`, `return` and `break` outside of the function or loop that they belong to.
//!
//! The parser goes on after these errors, so the function around them is in the tree.

use oxc_ast::{
    AstKind,
    ast::{
        Argument, ArrowFunctionExpression, Expression, Function, MethodDefinitionKind, PropertyKey,
    },
};
use oxc_ast_visit::{
    Visit,
    walk::{walk_arrow_function_expression, walk_function},
};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use super::source::{Advice, Source, first_word, shown};

pub(super) fn advice(source: &mut Source<'_, '_, '_>) -> Option<Advice> {
    let word = first_word(source.from(source.at));
    if !matches!(word, "await" | "yield" | "return" | "break" | "continue") {
        return None;
    }
    let at = u32::try_from(source.at).ok()?;
    let mut finder = Finder { at, next: None, found: None };
    finder.visit_program(source.program);
    let Some(around) = finder.found else {
        let statement = word == "return" && source.failure.message.starts_with("A 'return'");
        // Else the function around it may have ended too early.
        let outermost = source.tokens.open.first().map(|bracket| bracket.indent);
        let alone = outermost.unwrap_or(source.at - source.line_start()) == 0;
        return (statement && alone)
            .then(|| Advice::new("export default gives the result of a module"));
    };
    match word {
        "await" if !around.asynchronous => Some(source.asynchronous(&around)),
        "yield" if !around.generator => Some(generator(&around)),
        "break" | "continue" if around.name == Some(Name::Callback("forEach")) => {
            Some(Advice::new(NO_LOOP))
        }
        _ => None,
    }
}

const NO_LOOP: &str = "a callback is no loop: write for (const … of …)";

/// Whether a method of arrays uses what its callback returns at once: it does not wait for a promise.
fn uses_at_once(method: &str) -> bool {
    matches!(
        method,
        "every"
            | "filter"
            | "find"
            | "findIndex"
            | "findLast"
            | "findLastIndex"
            | "flatMap"
            | "forEach"
            | "reduce"
            | "reduceRight"
            | "some"
            | "sort"
            | "toSorted"
    )
}

impl Source<'_, '_, '_> {
    fn asynchronous(&mut self, around: &Around<'_>) -> Advice {
        Advice::new(match around.name {
            Some(Name::Fixed(kind)) => format!("a {kind} cannot be async"),
            Some(Name::Function(name)) => format!("mark '{}' as async", shown(name)),
            Some(Name::Callback("forEach")) => NO_LOOP.to_owned(),
            Some(Name::Callback(method)) if uses_at_once(method) => {
                format!(
                    "'{method}' does not wait for its callback: await before it, or write a loop"
                )
            }
            name => {
                let line = self.line(around.span.start as usize);
                let mark = format!("mark the function that begins on line {line} as async");
                match name {
                    Some(Name::Callback("map")) => {
                        format!("{mark}, and await Promise.all(…) of the results")
                    }
                    _ => mark,
                }
            }
        })
    }
}

fn generator(around: &Around<'_>) -> Advice {
    Advice::new(match around.name {
        Some(Name::Callback(method)) if uses_at_once(method) || method == "map" => {
            NO_LOOP.to_owned()
        }
        _ if around.arrow => "an arrow function is no generator: write function*".to_owned(),
        Some(Name::Function(name)) => {
            format!("make '{}' a generator: write function*", shown(name))
        }
        _ => "make its function a generator: write function*".to_owned(),
    })
}

/// The name of a function, or its kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name<'a> {
    Function(&'a str),
    /// A constructor, a getter or a setter.
    Fixed(&'static str),
    /// The argument of a call of that method.
    Callback(&'a str),
}

/// The innermost function around a place.
#[derive(Clone, Copy)]
struct Around<'a> {
    span: Span,
    name: Option<Name<'a>>,
    asynchronous: bool,
    generator: bool,
    arrow: bool,
}

struct Finder<'a> {
    at: u32,
    /// The name of the next function, and where that starts.
    next: Option<(u32, Name<'a>)>,
    found: Option<Around<'a>>,
}

impl<'a> Finder<'a> {
    fn is_within(&self, span: Span) -> bool {
        (span.start..=span.end).contains(&self.at)
    }

    fn name(&mut self, value: Span, name: Name<'a>) {
        if self.is_within(value) {
            self.next = Some((value.start, name));
        }
    }

    fn key(&mut self, value: Span, key: &PropertyKey<'a>) {
        if let PropertyKey::StaticIdentifier(key) = key {
            self.name(value, Name::Function(key.name.as_str()));
        }
    }

    fn find(&mut self, around: Around<'a>) {
        let known = self.next.filter(|(start, _)| *start == around.span.start);
        let name = around.name.or_else(|| known.map(|(_, name)| name));
        self.found = Some(Around { name, ..around });
    }
}

impl<'a> Visit<'a> for Finder<'a> {
    fn enter_node(&mut self, kind: AstKind<'a>) {
        match kind {
            AstKind::VariableDeclarator(declarator) => {
                if let (Some(value), Some(id)) =
                    (&declarator.init, declarator.id.get_identifier_name())
                {
                    self.name(value.span(), Name::Function(id.as_str()));
                }
            }
            AstKind::ObjectProperty(property) => self.key(property.value.span(), &property.key),
            AstKind::PropertyDefinition(property) => {
                if let Some(value) = &property.value {
                    self.key(value.span(), &property.key);
                }
            }
            AstKind::MethodDefinition(method) => match method.kind {
                MethodDefinitionKind::Constructor => {
                    self.name(method.value.span, Name::Fixed("constructor"));
                }
                MethodDefinitionKind::Get => self.name(method.value.span, Name::Fixed("getter")),
                MethodDefinitionKind::Set => self.name(method.value.span, Name::Fixed("setter")),
                MethodDefinitionKind::Method => self.key(method.value.span, &method.key),
            },
            AstKind::CallExpression(call) => {
                if let Expression::StaticMemberExpression(callee) = &call.callee
                    && let Some(callback) = call.arguments.first().and_then(Argument::as_expression)
                {
                    self.name(callback.span(), Name::Callback(callee.property.name.as_str()));
                }
            }
            _ => {}
        }
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        if self.is_within(function.span) {
            self.find(Around {
                span: function.span,
                name: function.id.as_ref().map(|id| Name::Function(id.name.as_str())),
                asynchronous: function.r#async,
                generator: function.generator,
                arrow: false,
            });
            walk_function(self, function, flags);
        }
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        if self.is_within(arrow.span) {
            self.find(Around {
                span: arrow.span,
                name: None,
                asynchronous: arrow.r#async,
                generator: false,
                arrow: true,
            });
            walk_arrow_function_expression(self, arrow);
        }
    }
}
