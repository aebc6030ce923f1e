//! The requests and exports of a module, read from its syntax tree.
//!
//! In: a tree without types. Out: a `Record`, what the engine will see: each request with the
//! position of every name in it, and every exported name with what it stands for.

use std::collections::{HashMap, HashSet};

use oxc_ast::ast::{
    Declaration, ExportDefaultDeclarationKind, ExportFromDeclaration, ExportNamedDeclaration,
    ImportDeclaration, ImportDeclarationSpecifier, Program, Statement, StringLiteral,
};
use oxc_span::{GetSpan, Span};

use super::lines::Lines;
use super::module::{Export, ExportTarget, Imported, ImportedName, Record, Request};

/// Reads the record of `program`; `unused` holds the local names that nothing refers to.
pub(super) fn read(
    program: &Program<'_>,
    lines: &mut Lines<'_>,
    unused: &HashSet<String>,
) -> Record {
    let mut reader = Reader { lines, unused, record: Record::default(), bound: HashMap::new() };
    for statement in &program.body {
        reader.request(statement);
    }
    for statement in &program.body {
        reader.exports(statement);
    }
    reader.record
}

struct Reader<'r, 't> {
    lines: &'r mut Lines<'t>,
    unused: &'r HashSet<String>,
    record: Record,
    /// Imported bindings by local name: exporting one is a re-export.
    bound: HashMap<String, (usize, Imported)>,
}

impl Reader<'_, '_> {
    fn request(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::ImportDeclaration(import) => self.import(import),
            Statement::ExportFromDeclaration(export) => self.export_from(export),
            Statement::ExportAllDeclaration(export) => {
                let names = match &export.exported {
                    Some(name) => vec![self.name(Imported::Namespace, None, name.span())],
                    None => Vec::new(),
                };
                let request = self.push(export.span, &export.source, names);
                match &export.exported {
                    Some(name) => self.indirect(name.name().as_str(), request, Imported::Namespace),
                    None => self.record.stars.push(request),
                }
            }
            _ => {}
        }
    }

    fn import(&mut self, import: &ImportDeclaration<'_>) {
        let request = self.record.requests.len();
        let mut names = Vec::new();
        for specifier in import.specifiers.iter().flatten() {
            let (imported, span) = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(named) => {
                    (Imported::Name(named.imported.name().to_string()), named.imported.span())
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(default) => {
                    (Imported::Name("default".to_owned()), default.span)
                }
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(namespace) => {
                    (Imported::Namespace, namespace.span)
                }
            };
            let local = specifier.name().to_string();
            self.bound.insert(local.clone(), (request, imported.clone()));
            names.push(self.name(imported, Some(local), span));
        }
        self.push(import.span, &import.source, names);
    }

    fn export_from(&mut self, export: &ExportFromDeclaration<'_>) {
        let request = self.record.requests.len();
        let mut names = Vec::new();
        for specifier in &export.specifiers {
            let imported = Imported::Name(specifier.local.name().to_string());
            names.push(self.name(imported.clone(), None, specifier.local.span()));
            self.indirect(specifier.exported.name().as_str(), request, imported);
        }
        self.push(export.span, &export.source, names);
    }

    fn exports(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::ExportDeclaration(export) => {
                for name in declared_names(&export.declaration) {
                    self.local(&name);
                }
            }
            Statement::ExportNamedDeclaration(export) => self.export_named(export),
            Statement::ExportDefaultDeclaration(export)
                if !matches!(
                    export.declaration,
                    ExportDefaultDeclarationKind::TSInterfaceDeclaration(_)
                ) =>
            {
                self.local("default");
            }
            _ => {}
        }
    }

    fn export_named(&mut self, export: &ExportNamedDeclaration<'_>) {
        for specifier in &export.specifiers {
            let exported = specifier.exported.name();
            match self.bound.get(specifier.local.name().as_str()).cloned() {
                // A namespace object is a binding of the module that asks for it.
                Some((request, imported @ Imported::Name(_))) => {
                    self.indirect(exported.as_str(), request, imported);
                }
                _ => self.local(exported.as_str()),
            }
        }
    }

    fn name(&mut self, imported: Imported, local: Option<String>, span: Span) -> ImportedName {
        let unused = local.as_ref().is_some_and(|local| self.unused.contains(local));
        ImportedName { imported, local, position: self.lines.position(span.start as usize), unused }
    }

    fn push(&mut self, span: Span, source: &StringLiteral<'_>, names: Vec<ImportedName>) -> usize {
        self.record.requests.push(Request {
            specifier: source.value.to_string(),
            position: self.lines.position(source.span.start as usize),
            statement: self.lines.position(span.start as usize),
            names,
        });
        self.record.requests.len() - 1
    }

    fn local(&mut self, name: &str) {
        self.export(name, ExportTarget::Local);
    }

    fn indirect(&mut self, name: &str, request: usize, imported: Imported) {
        self.export(name, ExportTarget::Indirect { request, imported });
    }

    fn export(&mut self, name: &str, target: ExportTarget) {
        self.record.exports.push(Export { name: name.to_owned(), target });
    }
}

/// The names that a declaration binds, types included.
pub(super) fn declared_names(declaration: &Declaration<'_>) -> Vec<String> {
    if let Declaration::VariableDeclaration(variables) = declaration {
        let patterns = variables.declarations.iter().map(|declarator| &declarator.id);
        return patterns
            .flat_map(|pattern| pattern.get_binding_identifiers())
            .map(|identifier| identifier.name.to_string())
            .collect();
    }
    declaration.id().map(|id| id.name.to_string()).into_iter().collect()
}
