//! The regular expressions of a source text.
//!
//! In: a module that the engine refused without a position, which it does only for a regular expression. Out: each of
//! them and its position, so that the caller can ask the engine which one is wrong. Parses the text once more: for
//! errors alone.

use oxc_allocator::Allocator;
use oxc_ast::ast::RegExpLiteral;
use oxc_ast_visit::Visit;

use super::{
    super::{
        bounds::stack::with_stack_for,
        module::CompiledModule,
        text::{line_terminators, lines::Lines, unicode_sets},
    },
    again,
};
use crate::data::outcome::Position;

/// A literal in a source text.
#[derive(Debug)]
pub(crate) struct RegularExpression {
    /// The text between the slashes.
    pub(crate) pattern: String,
    /// The flags for the engine.
    pub(crate) flags: String,
    /// The start of the literal.
    pub(crate) position: Position,
}

/// All of them, in source order.
pub(in super::super) fn find(module: &CompiledModule) -> Vec<RegularExpression> {
    let (text, typescript) = (module.text(), module.typescript);
    let found = with_stack_for(text, typescript, |_| {
        let allocator = Allocator::default();
        let program = again::parse_again(module, &allocator);
        let line_terminators = line_terminators::find(&program);
        let mut finder = Finder { lines: Lines::new(text, &line_terminators), found: Vec::new() };
        finder.visit_program(&program);
        finder.found
    });
    // The module was parsed before, so it does not nest too deeply.
    found.unwrap_or_default()
}

struct Finder<'t> {
    lines: Lines<'t>,
    found: Vec<RegularExpression>,
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_reg_exp_literal(&mut self, literal: &RegExpLiteral<'a>) {
        self.found.push(RegularExpression {
            pattern: literal.regex.pattern.text.to_string(),
            flags: unicode_sets::flags(literal),
            position: self.lines.position(literal.span.start as usize),
        });
    }
}
