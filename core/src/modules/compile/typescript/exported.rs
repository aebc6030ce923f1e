//! The variables, functions and classes that a namespace exports, as properties of its object.
//!
//! In: an exported declaration in a namespace. Out: edits: `export let a = 1, { b } = c, d;` becomes
//! `N.a = 1, ({ b: N.b } = c);`, and `N.f = f;` is added behind a function or a class.

use oxc_ast::ast::{BindingPattern, Declaration, ExportDeclaration, VariableDeclaration};
use oxc_ast_visit::VisitJs;
use oxc_span::{GetSpan, Span};

use super::{
    super::text::blanks::{between, place},
    types::Types,
};

impl<'a> Types<'_, 'a, '_> {
    /// A variable, a function or a class that a namespace exports.
    pub(in super::super) fn member_of_namespace(&mut self, export: &ExportDeclaration<'a>) {
        let Some(object) = self.blocks.last().map(|block| block.parameter.clone()) else { return };
        let declaration = &export.declaration;
        if let Declaration::VariableDeclaration(variables) = declaration {
            return self.exported_variables(export.span, variables, &object);
        }
        self.blanks.erase(between(export.span.start, declaration.span().start));
        self.visit_declaration(declaration);
        if let Some(id) = declaration.id() {
            let name = &id.name;
            self.blanks.insert(export.span.end as usize, &format!(" {object}.{name} = {name};"));
        }
    }

    /// `export let a = 1, { b } = c, d;` becomes `N.a = 1, ({ b: N.b } = c);`.
    fn exported_variables(
        &mut self,
        statement: Span,
        variables: &VariableDeclaration<'a>,
        object: &str,
    ) {
        let declarators = &variables.declarations;
        let Some(first) = declarators.first() else { return };
        if declarators.iter().all(|declarator| declarator.init.is_none()) {
            return self.blanks.erase_statement(place(statement), true);
        }
        let head = between(statement.start, first.span.start);
        let in_head = first.init.is_some() && first.id.is_binding_identifier();
        let member = format!(";{object}.");
        self.blanks.replace(head, if in_head { &member } else { ";" });
        let mut separator = "";
        for (index, declarator) in declarators.iter().enumerate() {
            let start = declarator.span.start as usize;
            if let Some(value) = &declarator.init {
                let in_braces = matches!(declarator.id, BindingPattern::ObjectPattern(_));
                let bracket = if in_braces { "(" } else { "" };
                if index > 0 || in_braces {
                    self.blanks.insert(start, &format!("{separator}{bracket}"));
                }
                separator = ", ";
                self.declared_types(declarator);
                if index > 0 || !in_head {
                    self.target(&declarator.id, object);
                }
                self.visit_expression(value);
                if in_braces {
                    self.blanks.insert(declarator.span.end as usize, ")");
                }
            } else {
                self.blanks.erase(place(declarator.span));
            }
            let comma = self.blanks.next_token(declarator.span.end as usize);
            if self.blanks.byte(comma) == Some(b',') && comma < statement.end as usize {
                self.blanks.erase(comma..comma + 1);
            }
            self.note_constant(variables.kind, declarator);
        }
        self.end(statement);
    }

    /// Makes properties of an object of the names in a pattern.
    fn target(&mut self, pattern: &BindingPattern<'a>, object: &str) {
        match pattern {
            BindingPattern::BindingIdentifier(id) => {
                self.blanks.insert(id.span.start as usize, &format!("{object}."));
            }
            BindingPattern::ObjectPattern(pattern) => {
                for property in &pattern.properties {
                    if property.shorthand {
                        let name = self.blanks.source(place(property.key.span()));
                        self.blanks.insert(property.span.start as usize, &format!("{name}: "));
                    } else {
                        self.visit_property_key(&property.key);
                    }
                    self.target(&property.value, object);
                }
                if let Some(rest) = &pattern.rest {
                    self.target(&rest.argument, object);
                }
            }
            BindingPattern::ArrayPattern(pattern) => {
                for element in pattern.elements.iter().flatten() {
                    self.target(element, object);
                }
                if let Some(rest) = &pattern.rest {
                    self.target(&rest.argument, object);
                }
            }
            BindingPattern::AssignmentPattern(pattern) => {
                self.target(&pattern.left, object);
                self.visit_expression(&pattern.right);
            }
        }
    }
}
