//! Async functions that are called where they are written.
//!
//! In: places in functions that have waited. Out: for each whether its function is called at once by a statement of its
//! own, as in `(async () => { … })();`. Nobody can miss the value of such a function. Parses the text once more, so it is
//! for warnings alone.

use oxc_allocator::Allocator;
use oxc_ast::ast::{ArrowFunctionExpression, Expression, ExpressionStatement, Function};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use super::{
    super::{
        bounds::stack::with_stack_for,
        module::CompiledModule,
        text::{line_terminators, lines::Lines},
    },
    again::{self, LONGEST},
};
use crate::data::outcome::Position;

pub(in super::super) fn find(module: &CompiledModule, places: &[Position]) -> Vec<bool> {
    let (text, typescript) = (module.text(), module.typescript);
    if text.len() > LONGEST {
        return Vec::new();
    }
    let found = with_stack_for(text, typescript, |_| {
        let allocator = Allocator::default();
        let program = again::parse_again(module, &allocator);
        let line_terminators = line_terminators::find(&program);
        let lines = Lines::new(text, &line_terminators);
        let offset = |place: &Position| {
            let at = lines.utf16_offset(place.line, place.column)?;
            Some((u32::try_from(at).ok()?, false))
        };
        let places = places.iter().map(offset).map(|place| place.unwrap_or((u32::MAX, false)));
        let mut finder = Finder { called: None, places: places.collect() };
        finder.visit_program(&program);
        finder.places.into_iter().map(|(_, is_immediate)| is_immediate).collect()
    });
    // The module was parsed before, so it does not nest too deeply.
    found.unwrap_or_default()
}

struct Finder {
    /// The function that the last statement calls.
    called: Option<Span>,
    /// Each place, and whether the innermost function around it so far is called at once.
    places: Vec<(u32, bool)>,
}

impl Finder {
    fn enter(&mut self, function: Span) {
        let is_called = self.called == Some(function);
        for (at, is_immediate) in &mut self.places {
            if (function.start..function.end).contains(at) {
                *is_immediate = is_called;
            }
        }
    }
}

impl<'a> VisitJs<'a> for Finder {
    fn visit_expression_statement(&mut self, statement: &ExpressionStatement<'a>) {
        if let Expression::CallExpression(call) = statement.expression.get_inner_expression() {
            self.called = Some(call.callee.get_inner_expression().span());
        }
        walk_js::walk_expression_statement(self, statement);
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.enter(function.span);
        walk_js::walk_function(self, function, flags);
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        self.enter(arrow.span);
        walk_js::walk_arrow_function_expression(self, arrow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::source::Language, modules::compile::compile};

    #[test]
    fn a_function_is_immediate_if_its_statement_calls_it_and_drops_its_value() {
        let text = "(async () => { await a(); })();\n(async function () { await b(); }());\n\
                    const kept = (async () => await c())();\nasync function main() { await d(); }\n\
                    main();\n(async () => { e(async () => { await f(); }); await g(); })();";
        let module = compile(text, Language::JavaScript, &[], usize::MAX).expect("a module");
        let columns = [(1, 22), (2, 28), (3, 35), (4, 31), (6, 16), (6, 38), (6, 55)];
        let places = columns.map(|(line, column)| Position { line, column });
        assert_eq!(find(&module, &places), [true, true, false, false, true, false, true]);
    }
}
