//! The functions that values came from.
//!
//! In: operands. Out: for each variable among them whose declaration calls a function, that function.

use oxc_ast::ast::{BindingPattern, Expression, VariableDeclarator};
use oxc_ast_visit::{VisitJs, walk_js};

use super::super::{Operand, Root};

/// The calls that variables have their values from, for the operands that ask for it.
pub(super) struct Origins<'s, 'o> {
    pub(super) source: &'s str,
    pub(super) operands: Vec<&'o mut Operand>,
}

impl<'o> Origins<'_, 'o> {
    pub(super) fn ask(&mut self, operand: &'o mut Operand) {
        if matches!(&operand.root, Some(Root::Name(_))) {
            self.operands.push(operand);
        } else if let Some((object, _)) = &mut operand.of {
            self.ask(object);
        }
    }
}

impl<'a> VisitJs<'a> for Origins<'_, '_> {
    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let BindingPattern::BindingIdentifier(name) = &declarator.id
            && let Some(init @ Expression::CallExpression(_)) =
                declarator.init.as_ref().map(Expression::get_inner_expression)
        {
            for operand in &mut self.operands {
                if matches!(&operand.root, Some(Root::Name(asked)) if *asked == name.name.as_str())
                {
                    operand.origin = Operand::of(init, self.source).origin;
                }
            }
        }
        walk_js::walk_variable_declarator(self, declarator);
    }
}
