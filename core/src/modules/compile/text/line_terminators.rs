//! The literals and comments of a program whose lines depend on them.
//!
//! In: a syntax tree. Out: for the rare text with U+2028, U+2029 or a lone carriage return, the spans in which the
//! engine does not end a line at them. Any other text has none, at no cost.

use oxc_ast::ast::{Program, StringLiteral, TemplateElement};
use oxc_ast_visit::Visit;
use oxc_span::Span;

use super::lines::{Silent, has_rare_terminators};

/// The spans of `program` in which some line terminators do not count.
pub(in super::super) fn find(program: &Program<'_>) -> Silent {
    if !has_rare_terminators(program.source_text) {
        return Silent::default();
    }
    let mut literals = Literals::default();
    literals.visit_program(program);
    let comments = program.comments.iter();
    let mut line_terminators = Silent {
        comments: comments
            .clone()
            .filter(|comment| !comment.is_line())
            .map(|comment| comment.span.start as usize..comment.span.end as usize)
            .collect(),
        swallowed: comments
            .clone()
            .filter(|comment| comment.is_line())
            .map(|comment| comment.span.end as usize)
            .filter(|end| {
                let rest = program.source_text.get(*end..).unwrap_or_default();
                rest.starts_with(['\u{2028}', '\u{2029}'])
            })
            .collect(),
        ..Silent::default()
    };
    line_terminators.spans = literals
        .spans
        .iter()
        .chain(comments.map(|comment| &comment.span))
        .map(|span| span.start as usize..span.end as usize)
        .collect();
    line_terminators.spans.sort_by_key(|span| span.start);
    line_terminators
}

#[derive(Default)]
struct Literals {
    spans: Vec<Span>,
}

impl<'a> Visit<'a> for Literals {
    fn visit_string_literal(&mut self, literal: &StringLiteral<'a>) {
        self.spans.push(literal.span);
    }

    fn visit_template_element(&mut self, element: &TemplateElement<'a>) {
        self.spans.push(element.span);
    }
}
