//! The tree of a text that was compiled before.

use oxc_allocator::Allocator;
use oxc_ast::{
    ast::{Program, Statement},
    builder::AstBuilder,
};
use oxc_span::GetSpan;

use super::super::{module::CompiledModule, parse::parser};

/// Texts longer than this are not parsed again: that would take more than some milliseconds.
pub(crate) const LONGEST: usize = 32 << 10;

/// The tree of a module that was compiled before.
pub(super) fn parse_again<'a>(module: &'a CompiledModule, allocator: &'a Allocator) -> Program<'a> {
    let parser = || parser(allocator, module.text(), module.typescript, true);
    let mut program = parser().parse().program;
    if module.is_object
        && let Ok(object) = parser().parse_expression()
    {
        let builder = AstBuilder::new(allocator);
        program.directives.clear();
        program.body.clear();
        program.body.push(Statement::new_expression_statement(object.span(), object, &builder));
    }
    program
}
