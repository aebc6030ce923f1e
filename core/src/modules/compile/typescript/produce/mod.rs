//! Enums, namespaces and aliases, written anew in place.
//!
//! In: such a declaration. Out: edits that turn it into the code that TypeScript emits. `enum E { A }` becomes
//! `var E;(function (E) { E[E["A"] = 0] = "A"; })(E || (E = {}));`, where the braces, and all that stands between them
//! and runs, are the original's. So is the inside of a namespace, in which the name of an exported variable becomes a
//! property of the namespace.

use std::ops::Range;

use oxc_ast::ast::{
    BindingIdentifier, Declaration, ExportDefaultDeclarationKind, IdentifierReference, Statement,
    TSImportEqualsDeclaration, TSModuleReference, TSNamespaceDeclaration,
    TSNamespaceDeclarationBody, TSTypeName,
};
use oxc_ast_visit::VisitJs;
use oxc_semantic::SymbolId;
use oxc_span::{GetSpan, Span};

use super::{
    super::text::blanks::place,
    fate::{self, Fate},
    namespaces::Owner,
    types::Types,
};

/// The longest name of a parameter. Every use of a member repeats it.
const MAX_PARAMETER: usize = 16;

/// An enum or a block of a namespace around the place that is visited.
pub(in super::super) struct Block {
    /// Its braces, and what is between them.
    pub(in super::super) body: Range<u32>,
    pub(in super::super) owner: Owner,
    /// The name of the object inside.
    pub(in super::super) parameter: String,
}

/// The place of a declaration among others.
#[derive(Clone, Copy)]
pub(in super::super) struct Site {
    statement: Span,
    exported: bool,
    in_list: bool,
}

/// The text before and after the braces of an enum or a block.
pub(in super::super) struct Frame {
    pub(in super::super) opening: String,
    pub(in super::super) closing: String,
    pub(in super::super) parameter: String,
}

impl Frame {
    /// Makes one statement of several where only one may stand.
    pub(in super::super) fn embed(&mut self, site: Site) {
        if !site.in_list {
            self.opening.insert(0, '{');
            self.closing.push('}');
        }
    }
}

impl<'a> Types<'_, 'a, '_> {
    /// The enum or namespace whose member a name is, and the symbol that it otherwise names.
    pub(in super::super) fn named(
        &self,
        id: &IdentifierReference<'_>,
    ) -> (Option<Owner>, Option<SymbolId>) {
        let symbol =
            id.reference_id.get().and_then(|id| self.scoping.get_reference(id).symbol_id());
        (self.block_of(id, symbol).map(|block| block.owner), symbol)
    }

    /// The text to write before a name: the object whose property it is.
    fn qualifier(&self, id: &IdentifierReference<'_>) -> Option<String> {
        let symbol =
            id.reference_id.get().and_then(|id| self.scoping.get_reference(id).symbol_id());
        self.block_of(id, symbol).map(|block| format!("{}.", block.parameter))
    }

    /// The innermost block in which a name is that of a member, unless it is bound closer.
    fn block_of(&self, id: &IdentifierReference<'_>, symbol: Option<SymbolId>) -> Option<&Block> {
        if self.blocks.is_empty() || !self.namespaces.names(id.name.as_str()) {
            return None;
        }
        let bound = symbol.map(|symbol| self.scoping.symbol_span(symbol).start);
        for block in self.blocks.iter().rev() {
            if bound.is_some_and(|bound| block.body.contains(&bound)) {
                let member = symbol.is_some_and(|symbol| {
                    self.namespaces.exported.contains(&symbol)
                        || self.scoping.symbol_flags(symbol).is_enum_member()
                });
                return member.then_some(block);
            }
            let name = id.name.as_str();
            let exported = self.namespaces.member(block.owner, name);
            if exported.is_some_and(|member| member.is_value)
                || self.constants.members.contains_key(&(block.owner, name))
            {
                return Some(block);
            }
        }
        None
    }

    /// Writes the object of a member before its name. In a shorthand property the name is written first.
    pub(in super::super) fn qualify(&mut self, id: &IdentifierReference<'_>, shorthand: bool) {
        if let Some(mut text) = self.qualifier(id) {
            if shorthand {
                text.insert_str(0, ": ");
                text.insert_str(0, self.blanks.source(place(id.span)));
            }
            self.blanks.insert(id.span.start as usize, &text);
        }
    }

    /// Notes the functions and classes of a list, which an enum or a namespace of their name adds to.
    pub(in super::super) fn note_bound(&mut self, statements: &[Statement<'a>]) {
        let produces =
            |statement| fate::of_statement(statement, &self.namespaces) == Fate::Produces;
        if !statements.iter().any(produces) {
            return;
        }
        for statement in statements {
            if fate::of_statement(statement, &self.namespaces) != Fate::Runs {
                continue;
            }
            let (id, exported) = match statement {
                Statement::FunctionDeclaration(function) => (function.id.as_ref(), false),
                Statement::ClassDeclaration(class) => (class.id.as_ref(), false),
                Statement::ExportDeclaration(export) => match &export.declaration {
                    Declaration::FunctionDeclaration(function) => (function.id.as_ref(), true),
                    Declaration::ClassDeclaration(class) => (class.id.as_ref(), true),
                    _ => continue,
                },
                Statement::ExportDefaultDeclaration(export) => {
                    let id = match &export.declaration {
                        ExportDefaultDeclarationKind::FunctionDeclaration(function) => &function.id,
                        ExportDefaultDeclarationKind::ClassDeclaration(class) => &class.id,
                        _ => continue,
                    };
                    (id.as_ref(), false)
                }
                _ => continue,
            };
            if let Some(id) = id {
                self.bound.insert(id.symbol_id());
                if exported {
                    self.exports.insert(id.symbol_id());
                }
            }
        }
    }

    /// Writes an enum, a namespace or an alias.
    pub(in super::super) fn produce(&mut self, statement: &Statement<'a>, in_list: bool) {
        let (declaration, exported) = match statement {
            Statement::ExportDeclaration(export) => (Some(&export.declaration), true),
            other => (other.as_declaration(), false),
        };
        let site = Site { statement: statement.span(), exported, in_list };
        if let Some(declaration) = declaration {
            self.note_produced(declaration);
        }
        match declaration {
            Some(Declaration::TSEnumDeclaration(declaration)) => {
                self.enumeration(declaration, site);
            }
            Some(Declaration::TSNamespaceDeclaration(namespace)) => self.namespace(namespace, site),
            Some(Declaration::TSImportEqualsDeclaration(alias)) => self.alias(alias, site),
            _ => {}
        }
    }

    /// The block that a statement of it exports to.
    pub(in super::super) fn exporter(&self, site: Site) -> Option<&Block> {
        self.blocks.last().filter(|_| site.exported)
    }

    fn namespace(&mut self, namespace: &TSNamespaceDeclaration<'a>, site: Site) {
        let outer = self.blocks.len();
        let (head, export) = self.head(&namespace.id, site);
        let mut object = self.exporter(site).map(|block| block.parameter.clone());
        let (mut opening, mut closing) = (String::new(), String::new());
        let mut inner = namespace;
        let block = loop {
            let body = match &inner.body {
                TSNamespaceDeclarationBody::TSNamespaceDeclaration(next) => {
                    next.id.span.start..inner.span.end
                }
                TSNamespaceDeclarationBody::TSModuleBlock(block) => {
                    block.span.start..block.span.end
                }
            };
            let frame = self.frame(&inner.id, body.clone(), object.as_deref());
            opening.push_str(&frame.opening);
            closing.insert_str(0, &frame.closing);
            object = Some(frame.parameter.clone());
            let owner = self.namespaces.owner(inner).unwrap_or_default();
            self.blocks.push(Block { body, owner, parameter: frame.parameter });
            match &inner.body {
                TSNamespaceDeclarationBody::TSNamespaceDeclaration(next) => {
                    opening.push('{');
                    closing.insert(0, '}');
                    inner = next;
                }
                TSNamespaceDeclarationBody::TSModuleBlock(block) => break block,
            }
        };
        closing.push_str(&export);
        let mut frame = Frame { opening, closing, parameter: String::new() };
        frame.embed(site);
        self.blanks.replace(head..block.span.start as usize, &frame.opening);
        self.visit_statements(&block.body);
        self.blocks.truncate(outer);
        self.blanks.insert(block.span.end as usize, &frame.closing);
    }

    /// The place from which a declaration is written anew, with its `export` unless that stays; and a statement that
    /// exports it, if its name was bound by another statement, which does not export it.
    pub(in super::super) fn head(
        &mut self,
        id: &BindingIdentifier<'_>,
        site: Site,
    ) -> (usize, String) {
        let (start, symbol) = (site.statement.start as usize, id.symbol_id());
        let in_module = site.exported && self.blocks.is_empty() && self.cell.is_none();
        let exports = in_module && self.exports.insert(symbol);
        if !exports {
            (start, String::new())
        } else if self.bound.contains(&symbol) {
            (start, format!("export {{ {} }};", id.name))
        } else {
            (self.blanks.next_token(start + "export".len()), String::new())
        }
    }

    /// The text around the braces of an enum or a block. `object` is the namespace that exports it.
    pub(in super::super) fn frame(
        &mut self,
        id: &BindingIdentifier<'_>,
        body: Range<u32>,
        object: Option<&str>,
    ) -> Frame {
        let (name, symbol) = (id.name.as_str(), id.symbol_id());
        let parameter = self.parameter(name, body);
        let first = self.bound.insert(symbol);
        if let Some(closing) = self.cell_object(symbol, name, first) {
            return Frame { opening: format!(";(function ({parameter}) "), closing, parameter };
        }
        let opening = if first {
            let in_module = self.scoping.symbol_scope_id(symbol) == self.scoping.root_scope_id();
            let word = if in_module { "var" } else { "let" };
            format!("{word} {name};(function ({parameter}) ")
        } else {
            format!(";(function ({parameter}) ")
        };
        let closing = match object {
            Some(object) => format!(")({name} = {object}.{name} || ({object}.{name} = {{}}));"),
            None => format!(")({name} || ({name} = {{}}));"),
        };
        Frame { opening, closing, parameter }
    }

    /// The name for an object within its braces: its own, unless that is long or means something else in there.
    fn parameter(&mut self, name: &str, body: Range<u32>) -> String {
        if name.len() <= MAX_PARAMETER && !self.names.declares(self.scoping, name, body) {
            return name.to_owned();
        }
        self.names.unused(self.scoping)
    }

    /// `import a = b.c`.
    fn alias(&mut self, alias: &TSImportEqualsDeclaration<'a>, site: Site) {
        let object = self.exporter(site).map(|block| block.parameter.clone());
        let (start, _) = self.head(&alias.id, site);
        let written = match object {
            Some(object) => format!(";{object}."),
            None => self.cell_alias(alias.id.symbol_id()).unwrap_or_else(|| "var ".to_owned()),
        };
        self.blanks.replace(start..alias.id.span.start as usize, &written);
        let head = match &alias.module_reference {
            TSModuleReference::IdentifierReference(id) => Some(id),
            TSModuleReference::QualifiedName(name) => {
                let mut left = &name.left;
                while let TSTypeName::QualifiedName(name) = left {
                    left = &name.left;
                }
                match left {
                    TSTypeName::IdentifierReference(id) => Some(id),
                    TSTypeName::QualifiedName(_) | TSTypeName::ThisExpression(_) => None,
                }
            }
            TSModuleReference::ExternalModuleReference(_) => None,
        };
        if let Some(head) = head {
            self.qualify(head, false);
        }
        self.end(site.statement);
    }

    /// Ends a statement that another could continue now.
    pub(in super::super) fn end(&mut self, statement: Span) {
        if self.blanks.byte(statement.end as usize - 1) != Some(b';') {
            self.blanks.insert(statement.end as usize, ";");
        }
    }
}

#[cfg(test)]
mod tests;
