//! Imports and exports of types alone.
//!
//! In: a TypeScript tree with its symbols. Out: the same tree and the same text without the statements that are types,
//! and the names that were exported as types. The contract's rule: an import that is used only as a type is erased as if
//! written `type`; so is one whose target exports it only as a type, which the linker finds out. An import statement
//! without any names left is removed. Every other import stays, used or not.

use std::collections::HashSet;

use oxc_allocator::ArenaVec;
use oxc_ast::ast::{
    ExportDefaultDeclarationKind, ExportSpecifier, IdentifierReference, ImportDeclaration,
    ImportDeclarationSpecifier, ModuleExportName, Program, Statement,
};
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::GetSpan;

use super::{
    super::{
        failure::Failure,
        record::declared_names,
        text::blanks::{Blanks, place},
    },
    fate::{self, Fate},
    namespaces::Namespaces,
};

/// Facts that are known only before types are erased.
#[derive(Default)]
pub(in super::super) struct Erased {
    /// Imported local names that nothing refers to.
    pub(in super::super) unused: HashSet<String>,
    /// Every exported name, of values and of types.
    pub(in super::super) exported: HashSet<String>,
    /// Specifiers of `export type * from`.
    pub(in super::super) type_stars: Vec<String>,
}

/// Removes type imports from `program` and from its text, and imports bound to a name in `erase`.
pub(in super::super) fn erase_type_imports(
    program: &mut Program<'_>,
    scoping: &Scoping,
    erase: &[String],
    namespaces: &Namespaces<'_>,
    blanks: &mut Blanks<'_>,
    is_cell: bool,
) -> Erased {
    let erase: HashSet<&str> = erase.iter().map(String::as_str).collect();
    let usage = Usage { scoping, namespaces, is_cell };
    let mut erased = Erased::default();
    for statement in &program.body {
        erased.note_exports(statement);
    }
    program.body.retain_mut(|statement| match statement {
        Statement::ImportDeclaration(import) => {
            let span = import.span;
            let kept = usage.keeps_import(import, &erase, &mut erased, blanks);
            if !kept {
                blanks.erase_statement(place(span), true);
            }
            kept
        }
        _ => true,
    });
    erased
}

/// Removes from `program` all other statements that are types, and from its text those that export them by name.
pub(in super::super) fn erase_type_exports(
    program: &mut Program<'_>,
    scoping: &Scoping,
    namespaces: &Namespaces<'_>,
    blanks: &mut Blanks<'_>,
) {
    let usage = Usage { scoping, namespaces, is_cell: false };
    program.body.retain_mut(|statement| {
        let kept = match statement {
            Statement::ExportNamedDeclaration(export) => {
                !export.export_kind.is_type() && usage.keeps_names(&mut export.specifiers, blanks)
            }
            Statement::ExportFromDeclaration(export) => {
                !export.export_kind.is_type() && usage.keeps_names(&mut export.specifiers, blanks)
            }
            Statement::ExportAllDeclaration(export) => !export.export_kind.is_type(),
            Statement::ExportDefaultDeclaration(export)
                if let ExportDefaultDeclarationKind::Identifier(name) = &export.declaration =>
            {
                !is_no_value(name, scoping, namespaces)
            }
            // The walk erased the text of the others.
            other => return fate::of_statement(other, namespaces) != Fate::Erased,
        };
        if !kept {
            blanks.erase_statement(place(statement.span()), true);
        }
        kept
    });
}

impl Erased {
    fn note_exports(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::ExportDeclaration(export) => {
                self.exported.extend(declared_names(&export.declaration));
            }
            Statement::ExportNamedDeclaration(export) => {
                self.exported
                    .extend(export.specifiers.iter().map(|s| s.exported.name().to_string()));
            }
            Statement::ExportFromDeclaration(export) => {
                self.exported
                    .extend(export.specifiers.iter().map(|s| s.exported.name().to_string()));
            }
            Statement::ExportAllDeclaration(export) => match &export.exported {
                Some(name) => {
                    self.exported.insert(name.name().to_string());
                }
                None if export.export_kind.is_type() => {
                    self.type_stars.push(export.source.value.to_string());
                }
                None => {}
            },
            Statement::ExportDefaultDeclaration(_) => {
                self.exported.insert("default".to_owned());
            }
            _ => {}
        }
    }
}

struct Usage<'s, 'a> {
    scoping: &'s Scoping,
    namespaces: &'s Namespaces<'a>,
    /// In a cell an import stays for later cells unless its module says that it is a type.
    is_cell: bool,
}

impl Usage<'_, '_> {
    /// Removes the types from a list of exports. False if nothing is left of it.
    fn keeps_names(
        &self,
        specifiers: &mut ArenaVec<'_, ExportSpecifier<'_>>,
        blanks: &mut Blanks<'_>,
    ) -> bool {
        if specifiers.is_empty() {
            return true;
        }
        specifiers.retain(|specifier| {
            let kept = !specifier.export_kind.is_type()
                && !matches!(&specifier.local, ModuleExportName::IdentifierReference(local)
                    if is_type(local, self.scoping, self.namespaces));
            if !kept {
                blanks.erase_element(place(specifier.span));
            }
            kept
        });
        !specifiers.is_empty()
    }

    fn keeps_import(
        &self,
        import: &mut ImportDeclaration<'_>,
        erase: &HashSet<&str>,
        erased: &mut Erased,
        blanks: &mut Blanks<'_>,
    ) -> bool {
        if import.import_kind.is_type() {
            return false;
        }
        let Some(specifiers) = import.specifiers.as_mut().filter(|list| !list.is_empty()) else {
            return true;
        };
        // The end of the default name before a namespace.
        let mut default = None;
        specifiers.retain(|specifier| {
            let kept = self.keeps_name(specifier, erase, erased);
            let span = place(specifier.span());
            if kept && matches!(specifier, ImportDeclarationSpecifier::ImportDefaultSpecifier(_)) {
                default = Some(span.end);
            }
            if !kept {
                match (specifier, default) {
                    (ImportDeclarationSpecifier::ImportNamespaceSpecifier(_), Some(default)) => {
                        blanks.erase(default..span.end);
                    }
                    _ => blanks.erase_element(span),
                }
            }
            kept
        });
        !specifiers.is_empty()
    }

    fn keeps_name(
        &self,
        specifier: &ImportDeclarationSpecifier<'_>,
        erase: &HashSet<&str>,
        erased: &mut Erased,
    ) -> bool {
        if let ImportDeclarationSpecifier::ImportSpecifier(named) = specifier
            && named.import_kind.is_type()
        {
            return false;
        }
        let local = specifier.local();
        let symbol = local.symbol_id();
        let is_used = self.namespaces.is_used(symbol, self.scoping);
        let unused = if self.is_cell {
            !is_used
        } else {
            self.scoping.get_resolved_reference_ids(symbol).is_empty()
        };
        if unused {
            erased.unused.insert(local.name.to_string());
        }
        if unused { !erase.contains(local.name.as_str()) } else { is_used }
    }
}

/// Whether a name that is exported in a list is that of a type, or of something that is declared only: nothing in the
/// module could be exported.
fn is_type(name: &IdentifierReference<'_>, scoping: &Scoping, namespaces: &Namespaces<'_>) -> bool {
    let declared = |symbol| {
        let mut others = scoping.symbol_redeclarations(symbol).iter();
        scoping.symbol_flags(symbol).is_ambient() && others.all(|other| other.flags.is_ambient())
    };
    is_no_value(name, scoping, namespaces) || symbol_of(name, scoping).is_some_and(declared)
}

/// Whether a default export is that of a type. A name that is declared only is that of a global.
pub(in super::super) fn is_no_value(
    name: &IdentifierReference<'_>,
    scoping: &Scoping,
    namespaces: &Namespaces<'_>,
) -> bool {
    let Some(symbol) = symbol_of(name, scoping) else { return false };
    let is_type = name.reference_id.get().is_some_and(|id| scoping.get_reference(id).is_type());
    let flags = scoping.symbol_flags(symbol);
    is_type || !(flags.is_value() || flags.is_import()) || namespaces.names_erased(symbol)
}

fn symbol_of(name: &IdentifierReference<'_>, scoping: &Scoping) -> Option<SymbolId> {
    scoping.get_reference(name.reference_id.get()?).symbol_id()
}

/// The first import whose name is that of a variable, a function or a class, too: TypeScript leaves this check to its type
/// checker. The import may be one that is erased.
pub(in super::super) fn redeclared_import(
    program: &Program<'_>,
    scoping: &Scoping,
) -> Option<Failure> {
    let imports = program.body.iter().filter_map(|statement| match statement {
        Statement::ImportDeclaration(import) => import.specifiers.as_ref(),
        _ => None,
    });
    imports.flatten().find_map(|specifier| {
        let local = specifier.local();
        let mut others = scoping.symbol_redeclarations(local.symbol_id()).iter();
        let other = others.find(|other| {
            other.span != local.span && other.flags.is_value() && !other.flags.is_ambient()
        });
        let (import, other) = (local.span.start as usize, other?.span.start as usize);
        Some(Failure::declared_twice(&local.name, import.min(other), import.max(other)))
    })
}

/// The first exported name without a declaration: TypeScript leaves this check to its type checker.
pub(in super::super) fn undefined_export(
    program: &Program<'_>,
    scoping: &Scoping,
) -> Option<Failure> {
    let specifiers = program.body.iter().filter_map(|statement| match statement {
        Statement::ExportNamedDeclaration(export) => Some(&export.specifiers),
        _ => None,
    });
    specifiers.flatten().find_map(|specifier| match &specifier.local {
        ModuleExportName::IdentifierReference(local) => {
            let reference = scoping.get_reference(local.reference_id.get()?);
            let undefined = reference.symbol_id().is_none();
            let message = || format!("Export '{}' is not defined", local.name);
            undefined.then(|| Failure::at(message(), local.span.start as usize))
        }
        _ => None,
    })
}
