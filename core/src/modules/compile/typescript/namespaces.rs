//! The namespaces of a program, their members, and the aliases of members.
//!
//! In: a TypeScript tree with its symbols. Out, before anything is erased: which namespaces hold code and which hold only
//! types, which blocks are of one namespace, the exports of each, and which `import a = b.c` name nothing but
//! types or are used as types alone. Namespaces occur only at the top of a module or of a namespace, so nothing else is
//! visited.

use std::collections::{HashMap, HashSet};

use oxc_ast::ast::{
    BindingIdentifier, Declaration, Program, Statement, TSImportEqualsDeclaration,
    TSModuleReference, TSNamespaceDeclaration, TSNamespaceDeclarationBody, TSTypeName,
};
use oxc_semantic::{ReferenceId, Scoping, SymbolId};

use super::super::bounds::names::hash;

/// All blocks of one namespace, or all of one enum.
pub(in super::super) type Owner = u32;

/// The exports of a namespace under one name.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct Member {
    /// Whether it is more than a type.
    pub(in super::super) is_value: bool,
    pub(in super::super) namespace: Option<Owner>,
    pub(in super::super) enumeration: Option<Owner>,
}

#[derive(Default)]
pub(in super::super) struct Namespaces<'a> {
    owners: Owner,
    /// The namespaces and the enums that a symbol names.
    pub(in super::super) by_symbol: HashMap<SymbolId, Member>,
    members: HashMap<(Owner, &'a str), Member>,
    /// The hashes of the names of all members: a name that is none of them needs no search.
    names: HashSet<u64>,
    /// Exported variables and aliases: wherever they are named, the namespace's property is meant.
    pub(in super::super) exported: HashSet<SymbolId>,
    /// The namespace of each block, by the start of its name, and whether it holds code.
    blocks: HashMap<u32, (Owner, bool)>,
    aliases: Vec<Alias<'a>>,
    /// Aliases that are erased.
    erased: HashSet<SymbolId>,
    /// References within erased aliases: they use nothing as a value.
    pub(in super::super) unused: HashSet<ReferenceId>,
}

/// `import name = head.path`.
struct Alias<'a> {
    symbol: SymbolId,
    name: &'a str,
    head: Option<ReferenceId>,
    path: Vec<&'a str>,
    is_type: bool,
    exported: bool,
    /// The namespace whose block exports it.
    parent: Option<Owner>,
}

impl<'a> Alias<'a> {
    fn new(alias: &TSImportEqualsDeclaration<'a>, exported: bool, parent: Option<Owner>) -> Self {
        let mut path = Vec::new();
        let head = match &alias.module_reference {
            TSModuleReference::IdentifierReference(id) => id.reference_id.get(),
            TSModuleReference::QualifiedName(name) => {
                path.push(name.right.name.as_str());
                let mut left = &name.left;
                while let TSTypeName::QualifiedName(name) = left {
                    path.push(name.right.name.as_str());
                    left = &name.left;
                }
                match left {
                    TSTypeName::IdentifierReference(id) => id.reference_id.get(),
                    TSTypeName::QualifiedName(_) | TSTypeName::ThisExpression(_) => None,
                }
            }
            TSModuleReference::ExternalModuleReference(_) => None,
        };
        path.reverse();
        let (symbol, name) = (alias.id.symbol_id(), alias.id.name.as_str());
        let is_type = alias.import_kind.is_type();
        Self { symbol, name, head, path, is_type, exported, parent }
    }
}

impl<'a> Namespaces<'a> {
    /// In a cell, an alias that nothing refers to stays for later cells.
    pub(in super::super) fn new(program: &Program<'a>, scoping: &Scoping, is_cell: bool) -> Self {
        let mut namespaces = Self::default();
        namespaces.statements(&program.body, None);
        namespaces.resolve_aliases(scoping, is_cell);
        namespaces
    }

    /// Whether a block holds code.
    pub(in super::super) fn is_instantiated(&self, namespace: &TSNamespaceDeclaration<'_>) -> bool {
        self.blocks.get(&namespace.id.span.start).is_none_or(|(_, instantiated)| *instantiated)
    }

    /// The namespace of a block.
    pub(in super::super) fn owner(&self, namespace: &TSNamespaceDeclaration<'_>) -> Option<Owner> {
        self.blocks.get(&namespace.id.span.start).map(|(owner, _)| *owner)
    }

    pub(in super::super) fn is_erased(&self, alias: &TSImportEqualsDeclaration<'_>) -> bool {
        self.names_erased(alias.id.symbol_id())
    }

    /// Whether a symbol is that of an erased alias.
    pub(in super::super) fn names_erased(&self, symbol: SymbolId) -> bool {
        self.erased.contains(&symbol)
    }

    pub(in super::super) fn member(&self, owner: Owner, name: &str) -> Option<Member> {
        self.members.get(&(owner, name)).copied()
    }

    /// Whether any namespace or enum has such a member.
    pub(in super::super) fn names(&self, name: &str) -> bool {
        self.names.contains(&hash(name))
    }

    /// The enum that a declaration begins or continues. `parent` is the namespace that exports it.
    pub(in super::super) fn enumeration(
        &mut self,
        id: &BindingIdentifier<'a>,
        parent: Option<Owner>,
    ) -> Owner {
        let exported = parent.and_then(|parent| self.member(parent, id.name.as_str()));
        let symbol = id.symbol_id();
        let known = exported.or(self.by_symbol.get(&symbol).copied()).unwrap_or_default();
        let owner = known.enumeration.unwrap_or_else(|| self.next());
        self.by_symbol.entry(symbol).or_default().enumeration = Some(owner);
        if let Some(parent) = parent {
            self.member_mut(parent, id.name.as_str()).enumeration = Some(owner);
        }
        owner
    }

    pub(in super::super) fn member_mut(&mut self, owner: Owner, name: &'a str) -> &mut Member {
        self.note_name(name);
        self.members.entry((owner, name)).or_default()
    }

    /// Notes the name of a member.
    pub(in super::super) fn note_name(&mut self, name: &str) {
        self.names.insert(hash(name));
    }

    fn next(&mut self) -> Owner {
        self.owners += 1;
        self.owners
    }

    /// Notes what a list of statements declares. Whether any of them is code.
    fn statements(&mut self, statements: &[Statement<'a>], parent: Option<Owner>) -> bool {
        let mut code = false;
        for statement in statements {
            let (declaration, exported) = match statement {
                Statement::ExportDeclaration(export) => (Some(&export.declaration), true),
                other => (other.as_declaration(), false),
            };
            code |= match declaration {
                Some(declaration) => self.declaration(declaration, exported, parent),
                None => true,
            };
        }
        code
    }

    fn declaration(
        &mut self,
        declaration: &Declaration<'a>,
        exported: bool,
        parent: Option<Owner>,
    ) -> bool {
        let exporter = parent.filter(|_| exported);
        let is_value = match declaration {
            Declaration::TSNamespaceDeclaration(namespace) => self.namespace(namespace, exporter),
            Declaration::TSImportEqualsDeclaration(alias) => {
                self.aliases.push(Alias::new(alias, exported, exporter));
                if exporter.is_some() {
                    self.exported.insert(alias.id.symbol_id());
                }
                exported
            }
            Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => {
                false
            }
            Declaration::VariableDeclaration(variables) => {
                for declarator in &variables.declarations {
                    for id in declarator.id.get_binding_identifiers() {
                        if let Some(parent) = exporter {
                            self.exported.insert(id.symbol_id());
                            self.member_mut(parent, id.name.as_str()).is_value = true;
                        }
                    }
                }
                true
            }
            _ => true,
        };
        if let (Some(parent), Some(id)) = (exporter, declaration.id()) {
            self.member_mut(parent, id.name.as_str()).is_value |= is_value;
        }
        is_value
    }

    fn namespace(&mut self, namespace: &TSNamespaceDeclaration<'a>, parent: Option<Owner>) -> bool {
        let id = &namespace.id;
        let exported = parent.and_then(|parent| self.member(parent, id.name.as_str()));
        let known = exported.or(self.by_symbol.get(&id.symbol_id()).copied()).unwrap_or_default();
        let owner = known.namespace.unwrap_or_else(|| self.next());
        self.by_symbol.entry(id.symbol_id()).or_default().namespace = Some(owner);
        if let Some(parent) = parent {
            self.member_mut(parent, id.name.as_str()).namespace = Some(owner);
        }
        let code = match &namespace.body {
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => {
                let code = self.namespace(inner, Some(owner));
                self.member_mut(owner, inner.id.name.as_str()).is_value |= code;
                code
            }
            TSNamespaceDeclarationBody::TSModuleBlock(block) => {
                self.statements(&block.body, Some(owner))
            }
        };
        self.blocks.insert(id.span.start, (owner, code));
        code
    }

    /// Erases each alias that names a type, or that is used only as one. The latter from the last to the first, since
    /// one may name another.
    fn resolve_aliases(&mut self, scoping: &Scoping, is_cell: bool) {
        let is_unused = |symbol| {
            scoping.symbol_scope_id(symbol) == scoping.root_scope_id()
                && scoping.get_resolved_reference_ids(symbol).is_empty()
        };
        let aliases = std::mem::take(&mut self.aliases);
        for alias in &aliases {
            let head = alias.head.and_then(|head| self.target_of(head, scoping));
            let target = alias.path.iter().fold(head, |left, name| self.target_in(left, name));
            // The target of an alias without a known one may be anything.
            let Some(target) = target else { continue };
            *self.by_symbol.entry(alias.symbol).or_default() = target;
            if !target.is_value {
                self.erased.insert(alias.symbol);
            }
            if let Some(parent) = alias.parent {
                *self.member_mut(parent, alias.name) = target;
            }
        }
        for alias in aliases.iter().rev() {
            let kept = alias.exported
                || self.is_used(alias.symbol, scoping)
                || (is_cell && is_unused(alias.symbol));
            if !kept || alias.is_type {
                self.erased.insert(alias.symbol);
            }
            if self.erased.contains(&alias.symbol) {
                self.unused.extend(alias.head);
            }
        }
    }

    fn target_of(&self, reference: ReferenceId, scoping: &Scoping) -> Option<Member> {
        let symbol = scoping.get_reference(reference).symbol_id()?;
        let flags = scoping.symbol_flags(symbol);
        let known = self.by_symbol.get(&symbol).copied()?;
        Some(Member { is_value: known.is_value || flags.is_value(), ..known })
    }

    fn target_in(&self, left: Option<Member>, name: &str) -> Option<Member> {
        let left = left?;
        // A class, a function or an enum of the name has members of its own.
        let exported = left.namespace.and_then(|owner| self.member(owner, name));
        exported.filter(|member| member.is_value || left.enumeration.is_none())
    }

    /// Whether anything refers to the value of a symbol.
    pub(in super::super) fn is_used(&self, symbol: SymbolId, scoping: &Scoping) -> bool {
        let references = scoping.get_resolved_reference_ids(symbol);
        references
            .iter()
            .any(|id| scoping.get_reference(*id).is_value() && !self.unused.contains(id))
    }
}
