//! Functions, classes and exports at the top of a cell.
//!
//! In: such a declaration. Out: edits: `class A {}` becomes `p.A=class A {};`. A function gets another name, by which the
//! first line of the code hands it over; so its own name is that of the session, which can change. `export default a`
//! becomes `d=(a);`.

use oxc_ast::ast::{
    Class, Declaration, ExportDefaultDeclaration, ExportDefaultDeclarationKind, Expression,
    Function, Statement,
};
use oxc_ast_visit::VisitJs;
use oxc_semantic::SymbolId;
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use super::{
    super::{
        text::blanks::between,
        typescript::{erase, types::Types},
    },
    variables::Position,
};
use crate::data::cell::NameKind;

/// Whether an expression takes the name of what it is assigned to.
pub(super) fn is_anonymous(expression: &Expression<'_>) -> bool {
    match expression.get_inner_expression() {
        Expression::ArrowFunctionExpression(_) => true,
        Expression::FunctionExpression(function) => function.id.is_none(),
        Expression::ClassExpression(class) => class.id.is_none(),
        _ => false,
    }
}

impl<'a> Types<'_, 'a, '_> {
    /// Writes a declaration; false for any other statement.
    pub(super) fn cell_declaration(&mut self, statement: &Statement<'a>) -> bool {
        match statement {
            Statement::FunctionDeclaration(function) => self.cell_function(function),
            Statement::ClassDeclaration(class) => self.cell_class(class, ""),
            Statement::ExportDeclaration(export) => {
                let declaration = &export.declaration;
                if let Declaration::VariableDeclaration(variables) = declaration {
                    let position = Position::Statement { in_list: true };
                    self.cell_variables(variables, export.span, position);
                    return true;
                }
                self.blanks.erase(between(export.span.start, declaration.span().start));
                match declaration {
                    Declaration::FunctionDeclaration(function) => self.cell_function(function),
                    Declaration::ClassDeclaration(class) => self.cell_class(class, ""),
                    _ => {}
                }
            }
            Statement::ExportDefaultDeclaration(export) => self.cell_default(export),
            // They are erased when it is known which of their names are types.
            Statement::ImportDeclaration(_)
            | Statement::ExportNamedDeclaration(_)
            | Statement::ExportFromDeclaration(_)
            | Statement::ExportAllDeclaration(_) => {}
            _ => return false,
        }
        true
    }

    /// Whether a statement gives the cell its default value.
    pub(super) fn is_default(&self, statement: &Statement<'a>) -> bool {
        let Statement::ExportDefaultDeclaration(export) = statement else { return false };
        match &export.declaration {
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => false,
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.body.is_some(),
            ExportDefaultDeclarationKind::Identifier(name) => {
                !erase::is_no_value(name, self.scoping, &self.namespaces)
            }
            _ => true,
        }
    }

    fn cell_function(&mut self, function: &Function<'a>) {
        if let (Some(cell), Some(id)) = (&mut self.cell, &function.id) {
            cell.declare(id.name.as_str(), NameKind::Function, id.span.start);
            cell.functions.push(id.name.as_str());
            let name = cell.hidden.function();
            self.blanks.insert(id.span.start as usize, &name);
        }
        self.visit_function(function, ScopeFlags::Function);
    }

    /// `before` is text to write before the assignment.
    fn cell_class(&mut self, class: &Class<'a>, before: &str) {
        if let (Some(cell), Some(id)) = (&mut self.cell, &class.id) {
            cell.declare(id.name.as_str(), NameKind::Class, id.span.start);
            let text = format!("{before}{}{}=", cell.hidden.names(), id.name);
            self.blanks.insert(class.span.start as usize, &text);
        }
        self.visit_class(class);
        self.blanks.insert(class.span.end as usize, ";");
    }

    fn cell_default(&mut self, export: &ExportDefaultDeclaration<'a>) {
        let value = self.cell.as_ref().map(|cell| format!("{}=", cell.hidden.default()));
        let value = value.unwrap_or_default();
        let declaration = &export.declaration;
        let head = between(export.span.start, declaration.span().start);
        let end = declaration.span().end as usize;
        match declaration {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => match &function.id {
                Some(id) => {
                    if let Some(cell) = &mut self.cell {
                        cell.default_function = Some(id.name.as_str());
                    }
                    self.blanks.erase(head);
                    self.cell_function(function);
                }
                None => {
                    self.blanks.replace(head, &format!("{value}{{[\"default\"]:"));
                    self.visit_function(function, ScopeFlags::Function);
                    self.blanks.insert(end, "}[\"default\"];");
                }
            },
            ExportDefaultDeclarationKind::ClassDeclaration(class) if class.id.is_some() => {
                self.blanks.erase(head);
                self.cell_class(class, &value);
            }
            ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                self.blanks.replace(head, &format!("{value}{{[\"default\"]:"));
                self.visit_class(class);
                self.blanks.insert(end, "}[\"default\"];");
            }
            // It is erased with the other exports of types.
            ExportDefaultDeclarationKind::Identifier(name)
                if erase::is_no_value(name, self.scoping, &self.namespaces) => {}
            other => {
                let Some(expression) = other.as_expression() else { return };
                self.blanks.replace(head, &format!("{value}("));
                self.named_value("default", expression);
                self.blanks.insert(end, ")");
                self.end(export.span);
            }
        }
    }

    /// The text before and after the function of an enum or a namespace at the top of a cell; none for any other.
    pub(in super::super) fn cell_object(
        &self,
        symbol: SymbolId,
        name: &str,
        first: bool,
    ) -> Option<String> {
        let cell = self.cell.as_ref().filter(|cell| !cell.is_body() && self.is_top(symbol))?;
        let names = cell.hidden.names();
        Some(if first { format!(")({names}{name}={{}});") } else { format!(")({name});") })
    }

    /// Whether a symbol is one of the program, and not of something within.
    fn is_top(&self, symbol: SymbolId) -> bool {
        self.scoping.symbol_scope_id(symbol) == self.scoping.root_scope_id()
    }

    /// Notes an enum, a namespace or an alias at the top.
    pub(in super::super) fn note_produced(&mut self, declaration: &Declaration<'a>) {
        let (id, kind) = match declaration {
            Declaration::TSEnumDeclaration(it) => (&it.id, NameKind::Enum),
            Declaration::TSNamespaceDeclaration(it) => (&it.id, NameKind::Namespace),
            Declaration::TSImportEqualsDeclaration(it) => (&it.id, NameKind::Const),
            _ => return,
        };
        let (top, Span { start, .. }) = (self.is_top(id.symbol_id()), id.span);
        if let Some(cell) = self.cell.as_mut().filter(|cell| top && !cell.is_body()) {
            cell.declare(id.name.as_str(), kind, start);
        }
    }

    /// The object that an alias at the top of a cell is assigned to.
    pub(in super::super) fn cell_alias(&self, symbol: SymbolId) -> Option<String> {
        let cell = self.cell.as_ref().filter(|cell| !cell.is_body() && self.is_top(symbol))?;
        Some(cell.hidden.names())
    }
}
