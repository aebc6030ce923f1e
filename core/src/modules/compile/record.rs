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
    failure::Failure,
    module::{Export, ExportTarget, Imported, ImportedName, Record, Request},
    text::lines::Lines,
};

/// Reads the record of `program`; `unused` holds the local names without references.
///
/// Fails at a name that is exported twice. In TypeScript the parser leaves that check to us.
pub(super) fn read(
    program: &Program<'_>,
    lines: &mut Lines<'_>,
    unused: &HashSet<String>,
) -> Result<Record, Failure> {
    let mut reader = Reader {
        text: program.source_text,
        lines,
        unused,
        record: Record::default(),
        bound: HashMap::new(),
        exported: HashMap::new(),
        declared: HashSet::new(),
        duplicate: None,
    };
    for statement in &program.body {
        reader.request(statement);
    }
    for statement in &program.body {
        reader.exports(statement);
    }
    reader.duplicate.map_or(Ok(reader.record), Err)
}

struct Reader<'r, 't> {
    text: &'r str,
    lines: &'r mut Lines<'t>,
    unused: &'r HashSet<String>,
    record: Record,
    /// Imported bindings by local name: exporting one is a re-export.
    bound: HashMap<String, (usize, Imported)>,
    /// Each exported name, and where it is exported first.
    exported: HashMap<String, usize>,
    /// The names that exported declarations bind.
    declared: HashSet<String>,
    /// The first name that is exported a second time.
    duplicate: Option<Failure>,
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
                let target = ExportTarget::Local { binding };
                self.export("default", target, self.keyword("default", export.span));
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

    /// The place of a keyword in a statement.
    fn keyword(&self, keyword: &str, statement: Span) -> Span {
        let text = self.text.get(statement.start as usize..).unwrap_or_default();
        let offset = text.find(keyword).and_then(|offset| u32::try_from(offset).ok());
        let start = statement.start + offset.unwrap_or_default();
        Span::new(start, statement.end)
    }

    fn export(&mut self, name: &str, target: ExportTarget, span: Span) {
        let at = span.start as usize;
        if let Some(first) = self.exported.insert(name.to_owned(), at)
            && self.duplicate.is_none()
        {
            self.duplicate = Some(Failure::exported_twice(name, first, at));
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
