//! The requests and exports of a module, read from its syntax tree.
//!
//! In: a tree without types. Out: a `Record` as the engine will see it: each request with the position of every name in
//! it, and every exported name with its target.

use std::collections::{HashMap, HashSet};

use oxc_ast::ast::{
    Declaration, ExportDefaultDeclarationKind, ExportFromDeclaration, ExportNamedDeclaration,
    ImportDeclaration, ImportDeclarationSpecifier, Program, Statement, StringLiteral,
};
use oxc_span::{GetSpan, Span};

use super::{
    lines::Lines,
    module::{CompileError, Export, ExportTarget, Imported, ImportedName, Record, Request},
};
use crate::data::outcome::Position;

/// Reads the record of `program`; `unused` holds the local names without references.
///
/// Fails at a name that is exported twice. In TypeScript the parser leaves that check to us.
pub(super) fn read(
    program: &Program<'_>,
    lines: &mut Lines<'_>,
    unused: &HashSet<String>,
) -> Result<Record, CompileError> {
    let mut reader = Reader {
        lines,
        unused,
        record: Record::default(),
        bound: HashMap::new(),
        exported: HashSet::new(),
        declared: HashSet::new(),
        duplicate: None,
    };
    for statement in &program.body {
        reader.request(statement);
    }
    for statement in &program.body {
        reader.exports(statement);
    }
    match reader.duplicate {
        Some((name, position)) => {
            Err(CompileError::new(&format!("Duplicate export '{name}'"), position))
        }
        None => Ok(reader.record),
    }
}

struct Reader<'r, 't> {
    lines: &'r mut Lines<'t>,
    unused: &'r HashSet<String>,
    record: Record,
    /// Imported bindings by local name: exporting one is a re-export.
    bound: HashMap<String, (usize, Imported)>,
    exported: HashSet<String>,
    /// The names that exported declarations bind.
    declared: HashSet<String>,
    /// The first name that is exported a second time.
    duplicate: Option<(String, Position)>,
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
                    Some(name) => {
                        let target =
                            ExportTarget::Indirect { request, imported: Imported::Namespace };
                        self.export(name.name().as_str(), target, name.span());
                    }
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
                ImportDeclarationSpecifier::ImportSpecifier(one) => {
                    (Imported::Name(one.imported.name().to_string()), one.imported.span())
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
            let target = ExportTarget::Indirect { request, imported };
            self.export(specifier.exported.name().as_str(), target, specifier.exported.span());
        }
        self.push(export.span, &export.source, names);
    }

    fn exports(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::ExportDeclaration(export) => {
                let merges = matches!(
                    export.declaration,
                    Declaration::TSEnumDeclaration(_) | Declaration::TSNamespaceDeclaration(_)
                );
                for name in declared_names(&export.declaration) {
                    // It adds to an enum, a namespace, a function or a class that is exported.
                    if merges && self.declared.contains(&name) {
                        continue;
                    }
                    self.declared.insert(name.clone());
                    let target = ExportTarget::Local { binding: name.clone() };
                    self.export(&name, target, export.declaration.span());
                }
            }
            Statement::ExportNamedDeclaration(export) => self.export_named(export),
            Statement::ExportDefaultDeclaration(export)
                if !matches!(
                    export.declaration,
                    ExportDefaultDeclarationKind::TSInterfaceDeclaration(_)
                ) =>
            {
                let binding = match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.name(),
                    ExportDefaultDeclarationKind::ClassDeclaration(class) => class.name(),
                    _ => None,
                };
                let binding = binding.map_or("*default*", |name| name.as_str()).to_owned();
                self.export("default", ExportTarget::Local { binding }, export.span);
            }
            _ => {}
        }
    }

    fn export_named(&mut self, export: &ExportNamedDeclaration<'_>) {
        for specifier in &export.specifiers {
            let local = specifier.local.name();
            let target = match self.bound.get(local.as_str()).cloned() {
                // A namespace object is a binding of the importing module.
                Some((request, imported @ Imported::Name(_))) => {
                    ExportTarget::Indirect { request, imported }
                }
                _ => ExportTarget::Local { binding: local.to_string() },
            };
            self.export(specifier.exported.name().as_str(), target, specifier.exported.span());
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

    fn export(&mut self, name: &str, target: ExportTarget, span: Span) {
        if !self.exported.insert(name.to_owned()) && self.duplicate.is_none() {
            self.duplicate = Some((name.to_owned(), self.lines.position(span.start as usize)));
        }
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
