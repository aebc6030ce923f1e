//! Variables at the top of a cell, as assignments.
//!
//! In: a declaration of variables. Out: edits: `let a = 1, { b } = c, d;` becomes
//! `p.a = 1, ({ b: p.b } = c), p.d = void 0;`. A `var` without a value leaves nothing but its name.

use oxc_ast::ast::{
    BindingPattern, VariableDeclaration, VariableDeclarationKind, VariableDeclarator,
};
use oxc_ast_visit::VisitJs;
use oxc_span::{GetSpan, Span};

use super::super::{
    text::blanks::{between, place},
    typescript::types::Types,
};
use crate::data::cell::NameKind;

/// The place of a declaration.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Position {
    Statement {
        in_list: bool,
    },
    /// The first part of a `for (;;)`.
    Init,
    /// The left side of `in` or `of`.
    Target,
}

impl<'a> Types<'_, 'a, '_> {
    /// Writes a declaration. `whole` is its statement, with an `export`.
    pub(super) fn cell_variables(
        &mut self,
        variables: &VariableDeclaration<'a>,
        whole: Span,
        position: Position,
    ) {
        let kind = match variables.kind {
            VariableDeclarationKind::Var => NameKind::Var,
            VariableDeclarationKind::Let => NameKind::Let,
            _ => NameKind::Const,
        };
        for declarator in &variables.declarations {
            for id in declarator.id.get_binding_identifiers() {
                if let Some(cell) = &mut self.cell {
                    cell.declare(id.name.as_str(), kind, id.span.start);
                }
            }
        }
        if variables.kind.is_using() {
            return self.resources(variables);
        }
        let Some(first) = variables.declarations.first() else { return };
        let hoisted = kind == NameKind::Var && position != Position::Target;
        let is_statement = matches!(position, Position::Statement { .. });
        if hoisted && variables.declarations.iter().all(|declarator| declarator.init.is_none()) {
            return match position {
                Position::Statement { in_list } => {
                    self.blanks.erase_statement(place(whole), in_list);
                }
                _ => self.blanks.erase(place(whole)),
            };
        }
        let head = match &first.id {
            _ if hoisted && first.init.is_none() => String::new(),
            BindingPattern::BindingIdentifier(id) => self.qualifier_of(&id.name),
            pattern => {
                let listed = position == Position::Statement { in_list: true };
                let separator = if listed { ";" } else { "" };
                let in_braces = matches!(pattern, BindingPattern::ObjectPattern(_));
                let bracketed = in_braces && position != Position::Target;
                format!("{separator}{}", if bracketed { "(" } else { "" })
            }
        };
        self.blanks.replace(between(whole.start, first.span.start), &head);
        for (index, declarator) in variables.declarations.iter().enumerate() {
            if hoisted && declarator.init.is_none() {
                self.blanks.replace(place(declarator.span), "0");
            } else {
                self.assignment(declarator, index == 0, position);
            }
            self.note_constant(variables.kind, declarator);
        }
        if is_statement {
            self.end(whole);
        }
    }

    fn assignment(&mut self, declarator: &VariableDeclarator<'a>, first: bool, position: Position) {
        let Span { start, end, .. } = declarator.span;
        self.declared_types(declarator);
        let in_braces = matches!(declarator.id, BindingPattern::ObjectPattern(_))
            && position != Position::Target;
        if in_braces && !first {
            self.blanks.insert(start as usize, "(");
        }
        if !(first && declarator.id.is_binding_identifier()) {
            self.cell_target(&declarator.id);
        }
        match (&declarator.init, declarator.id.get_identifier_name()) {
            (Some(value), Some(name)) => self.named_value(&name, value),
            (Some(value), None) => self.visit_expression(value),
            (None, _) if position == Position::Target => {}
            (None, _) => {
                let name = declarator.id.span().end as usize;
                self.blanks.insert(name, "=void 0");
            }
        }
        if in_braces {
            self.blanks.insert(end as usize, ")");
        }
    }

    /// `using a = b` becomes `using u0=(p.a = b)`: the resource is disposed when the cell ends.
    fn resources(&mut self, variables: &VariableDeclaration<'a>) {
        for declarator in &variables.declarations {
            let Some(cell) = &mut self.cell else { return };
            let hidden = &cell.hidden;
            let opening = format!("{}=({}", hidden.resource(cell.resources), hidden.names());
            cell.resources += 1;
            self.blanks.insert(declarator.span.start as usize, &opening);
            self.declared_types(declarator);
            if let (Some(value), Some(name)) =
                (&declarator.init, declarator.id.get_identifier_name())
            {
                self.named_value(&name, value);
            }
            self.blanks.insert(declarator.span.end as usize, ")");
        }
        self.end(variables.span);
    }

    /// The object before a name that is assigned: none for the parameter of a `catch` around.
    fn qualifier_of(&self, name: &str) -> String {
        let Some(cell) = &self.cell else { return String::new() };
        let caught = cell.caught.get(name).is_some_and(|count| *count > 0);
        if caught { String::new() } else { cell.hidden.names() }
    }

    /// Makes assignments of the names in a pattern.
    fn cell_target(&mut self, pattern: &BindingPattern<'a>) {
        match pattern {
            BindingPattern::BindingIdentifier(id) => {
                let qualifier = self.qualifier_of(&id.name);
                self.blanks.insert(id.span.start as usize, &qualifier);
            }
            BindingPattern::ObjectPattern(pattern) => {
                for property in &pattern.properties {
                    if property.shorthand {
                        let name = self.blanks.source(place(property.key.span()));
                        self.blanks.insert(property.span.start as usize, &format!("{name}:"));
                    } else {
                        self.visit_property_key(&property.key);
                    }
                    self.cell_target(&property.value);
                }
                if let Some(rest) = &pattern.rest {
                    self.cell_target(&rest.argument);
                }
            }
            BindingPattern::ArrayPattern(pattern) => {
                for element in pattern.elements.iter().flatten() {
                    self.cell_target(element);
                }
                if let Some(rest) = &pattern.rest {
                    self.cell_target(&rest.argument);
                }
            }
            BindingPattern::AssignmentPattern(pattern) => {
                self.cell_target(&pattern.left);
                match pattern.left.get_identifier_name() {
                    Some(name) => self.named_value(&name, &pattern.right),
                    None => self.visit_expression(&pattern.right),
                }
            }
        }
    }
}
