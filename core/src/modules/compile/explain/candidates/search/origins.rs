//! The functions that values came from.
//!
//! In: operands. Out: for each variable among them whose declaration calls a function, that function, or constructs an
//! object, the first argument; and for each one that a pattern takes from the result of a call, that call.

use oxc_ast::ast::{BindingPattern, Expression, VariableDeclaration, VariableDeclarator};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_semantic::Scoping;

use super::super::operands::{Key, Operand, Root, property_key};

/// The calls that variables have their values from, for the operands that ask for it.
pub(super) struct Origins<'s, 'o> {
    pub(super) source: &'s str,
    pub(super) scoping: &'s Scoping,
    pub(super) operands: Vec<&'o mut Operand>,
}

impl<'o> Origins<'_, 'o> {
    pub(super) fn ask(&mut self, operand: &'o mut Operand) {
        if matches!(&operand.root, Some(Root::Variable(..))) {
            self.operands.push(operand);
        } else if let Some((object, _)) = &mut operand.of {
            self.ask(object);
        }
    }
}

impl<'a> VisitJs<'a> for Origins<'_, '_> {
    fn visit_variable_declaration(&mut self, declaration: &VariableDeclaration<'a>) {
        // The values of other variables may have come later.
        if declaration.kind.is_const() {
            for declarator in &declaration.declarations {
                self.declared(declarator);
            }
        }
        walk_js::walk_variable_declaration(self, declaration);
    }
}

impl Origins<'_, '_> {
    fn declared(&mut self, declarator: &VariableDeclarator<'_>) {
        let init = declarator.init.as_ref().map(Expression::get_inner_expression);
        if let BindingPattern::ObjectPattern(object) = &declarator.id
            && let Some(init @ Expression::CallExpression(_)) = init
        {
            for property in &object.properties {
                if let BindingPattern::BindingIdentifier(name) = &property.value
                    && let Some(key) = property_key(&property.key)
                {
                    self.taken(name.span.start, init, &key);
                }
            }
        }
        if let BindingPattern::BindingIdentifier(name) = &declarator.id
            && let Some(init @ (Expression::CallExpression(_) | Expression::NewExpression(_))) =
                init
        {
            for operand in &mut self.operands {
                let asked =
                    matches!(operand.root, Some(Root::Variable(_, at)) if at == name.span.start);
                if asked && operand.origin.is_none() {
                    let maker = Operand::of(init, self.source, self.scoping);
                    (operand.origin, operand.made_of) = (maker.origin, maker.made_of);
                }
            }
        }
    }

    fn taken(&mut self, declared: u32, from: &Expression<'_>, key: &str) {
        for operand in &mut self.operands {
            if matches!(operand.root, Some(Root::Variable(_, at)) if at == declared) {
                let object = Operand::of(from, self.source, self.scoping);
                operand.taken = Some((Box::new(object), Key::Name(key.to_owned())));
            }
        }
    }
}
