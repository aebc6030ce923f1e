//! Arrow functions whose only parameter is named `async`.
//!
//! In: the tree of a module. Out: edits that make `(async) => 1` of `async => 1`. The engine reads the latter as the
//! beginning of an asynchronous function and refuses it.

use oxc_ast::ast::{ArrowFunctionExpression, Program};
use oxc_ast_visit::{VisitJs, walk_js};

use super::blanks::Blanks;

const NAME: &str = "async";

/// Puts the parameters of a program of JavaScript into parentheses where the engine needs them.
pub(in super::super) fn bracket<'t>(program: &Program<'_>, blanks: Blanks<'t>) -> Blanks<'t> {
    let mut arrows = Arrows { blanks };
    let text = program.source_text;
    let before_arrow = |rest: &str| rest.starts_with("=>") || rest.starts_with('/');
    let mut words = text.match_indices(NAME).map(|(at, name)| at + name.len());
    if words.any(|end| text.get(end..).is_some_and(|rest| before_arrow(rest.trim_start()))) {
        arrows.visit_program(program);
    }
    arrows.blanks
}

/// Does so for one function.
pub(in super::super) fn bracket_one(arrow: &ArrowFunctionExpression<'_>, blanks: &mut Blanks<'_>) {
    let (start, end) = (arrow.params.span.start as usize, arrow.params.span.end as usize);
    if !arrow.r#async && blanks.source(start..end) == NAME {
        blanks.insert(start, "(");
        blanks.insert(end, ")");
    }
}

struct Arrows<'t> {
    blanks: Blanks<'t>,
}

impl<'a> VisitJs<'a> for Arrows<'_> {
    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        bracket_one(arrow, &mut self.blanks);
        walk_js::walk_arrow_function_expression(self, arrow);
    }
}
