//! The loop that code was in when it was stopped.
//!
//! In: a module, and the last place that the engine noted before a backward jump, with the next one after it. Out: the
//! start of the loop. The engine notes the places of names and calls, and a loop needs none of either. Parses the text
//! once more: for runs that are ended alone.

use oxc_allocator::Allocator;
use oxc_ast::ast::{ArrowFunctionExpression, Function, Statement};
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

/// The loop around the places. A long text is not read.
pub(in super::super) fn find(
    module: &CompiledModule,
    before: Position,
    after: Option<Position>,
) -> Option<Position> {
    let (text, typescript) = (module.text(), module.typescript);
    if text.len() > LONGEST {
        return None;
    }
    let found = with_stack_for(text, typescript, |_| {
        let allocator = Allocator::default();
        let program = again::parse_again(module, &allocator);
        let line_terminators = line_terminators::find(&program);
        let mut lines = Lines::new(text, &line_terminators);
        let mut offset =
            |place: Position| u32::try_from(lines.utf16_offset(place.line, place.column)?).ok();
        let before = offset(before)?;
        let after = after.and_then(&mut offset).filter(|after| *after > before);
        let whole = Span::new(0, u32::MAX);
        let mut loops = Loops { function: whole, before, innermost: whole, found: Vec::new() };
        loops.visit_program(&program);
        let start = loops.chosen(after)?;
        Some(lines.position(start as usize))
    });
    // The module was parsed before, so it does not nest too deeply.
    found.ok().flatten()
}

struct Loops {
    /// The function around the place that is visited.
    function: Span,
    before: u32,
    /// The innermost function around the place before.
    innermost: Span,
    /// Each loop with its function.
    found: Vec<(Span, Span)>,
}

impl Loops {
    /// The start of the first loop that begins between the two places, else of the innermost loop around the first. The
    /// jump leads to the start of a loop, before the first place in it.
    fn chosen(&self, after: Option<u32>) -> Option<u32> {
        let here = || {
            let here = self.found.iter().filter(|(_, function)| *function == self.innermost);
            here.map(|(span, _)| *span)
        };
        let between = here().filter(|span| {
            span.start >= self.before && after.is_none_or(|after| span.start < after)
        });
        let around = here().filter(|span| (span.start..span.end).contains(&self.before));
        let starts = between.map(|span| span.start).min();
        starts.or_else(|| around.map(|span| span.start).max())
    }

    fn within(&mut self, function: Span, visit: impl FnOnce(&mut Self)) {
        if (function.start..function.end).contains(&self.before) {
            self.innermost = function;
        }
        let outer = std::mem::replace(&mut self.function, function);
        visit(self);
        self.function = outer;
    }
}

impl<'a> VisitJs<'a> for Loops {
    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.within(function.span, |loops| walk_js::walk_function(loops, function, flags));
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        self.within(arrow.span, |loops| walk_js::walk_arrow_function_expression(loops, arrow));
    }

    fn visit_statement(&mut self, statement: &Statement<'a>) {
        if statement.is_iteration_statement() {
            self.found.push((statement.span(), self.function));
        }
        walk_js::walk_statement(self, statement);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::source::Language, modules::compile::compile};

    #[test]
    fn the_loop_is_the_one_that_the_jump_leads_to() {
        let text = "const a = f();\nfor (;;) {\n  a();\n  while (b) {}\n  a();\n}\n\
                    const g = () => { for (;;) {} };\ndo {} while (true);";
        let module = compile(text, Language::JavaScript, &[], usize::MAX).expect("a module");
        let place = |(line, column)| Position { line, column };
        let cases = [
            // The jump of the outer loop.
            ((1, 12), Some((3, 3)), Some((2, 1))),
            // That of the inner one.
            ((3, 4), Some((4, 10)), Some((4, 3))),
            // A place within a loop alone.
            ((5, 4), Some((5, 5)), Some((2, 1))),
            // The loop of another function does not count.
            ((7, 7), None, Some((8, 1))),
            ((7, 11), None, Some((7, 19))),
            ((9, 1), None, None),
        ];
        for (before, after, found) in cases {
            let starts = find(&module, place(before), after.map(place));
            assert_eq!(starts, found.map(place), "{before:?}");
        }
    }
}
