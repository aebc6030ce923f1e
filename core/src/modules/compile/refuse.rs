//! Constructs that parse but cannot run here, or that would cost too much to compile.
//!
//! In: a syntax tree. Out: a message and a place for the first construct that must be refused: decorators, `export =`,
//! `import x = require()`, import attributes and phases, and enums and namespaces written to make their compilation
//! explode.

use std::collections::HashMap;

use oxc_ast::ast::{
    AccessorProperty, Declaration, Decorator, Program, Statement, TSEnumDeclaration,
    TSImportEqualsDeclaration, TSModuleReference, TSNamespaceDeclaration, WithClause,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::Span;

/// The limit of declarations of one enum or namespace.
const MAX_DECLARATIONS: usize = 1_000;

/// The limit of enums and namespaces within each other. A name is looked for in each of them.
const MAX_NESTED: usize = 32;

/// A refused construct.
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) offset: u32,
}

/// The first construct of `program` that cannot run here.
pub(super) fn refusal(program: &Program<'_>) -> Option<Refusal> {
    let mut search = Search::default();
    for statement in &program.body {
        search.module_statement(statement);
    }
    let text = program.source_text;
    if ["@", "accessor", "enum", "namespace", "module"].iter().any(|word| text.contains(word)) {
        search.visit_program(program);
    }
    search.found
}

#[derive(Default)]
struct Search {
    found: Option<Refusal>,
    declarations: HashMap<String, usize>,
    /// The enums and namespaces around the place that is visited.
    nested: usize,
}

impl Search {
    fn refuse(&mut self, span: Span, message: impl Into<String>) {
        if self.found.as_ref().is_none_or(|found| found.offset > span.start) {
            self.found = Some(Refusal { message: message.into(), offset: span.start });
        }
    }

    fn module_statement(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::TSExportAssignment(export) => {
                self.refuse(export.span, "'export =' is not supported: use 'export default'");
            }
            Statement::TSImportEqualsDeclaration(import) => self.import_equals(import),
            Statement::ExportDeclaration(export) => {
                if let Declaration::TSImportEqualsDeclaration(import) = &export.declaration {
                    self.import_equals(import);
                }
            }
            Statement::ImportDeclaration(import) => {
                if import.phase.is_some() {
                    self.refuse(import.span, "Import phases are not supported");
                }
                self.attributes(import.with_clause.as_deref());
            }
            Statement::ExportFromDeclaration(export) => {
                self.attributes(export.with_clause.as_deref());
            }
            Statement::ExportAllDeclaration(export) => {
                self.attributes(export.with_clause.as_deref());
            }
            _ => {}
        }
    }

    fn import_equals(&mut self, import: &TSImportEqualsDeclaration<'_>) {
        if let TSModuleReference::ExternalModuleReference(module) = &import.module_reference
            && !import.import_kind.is_type()
        {
            self.refuse(
                import.span,
                format!(
                    "'import {name} = require()' is not supported: use 'import {name} from \"{module}\"'",
                    name = import.id.name,
                    module = module.expression.value
                ),
            );
        }
    }

    fn attributes(&mut self, clause: Option<&WithClause<'_>>) {
        if let Some(attribute) = clause.and_then(|clause| clause.with_entries.first()) {
            self.refuse(
                attribute.span,
                "Import attributes are not supported: every module is JavaScript or TypeScript",
            );
        }
    }

    fn declare(&mut self, name: &str, span: Span) {
        let count = self.declarations.entry(name.to_owned()).or_default();
        *count += 1;
        if *count > MAX_DECLARATIONS {
            self.refuse(span, format!("'{name}' is declared more than {MAX_DECLARATIONS} times"));
        }
    }

    /// Visits an enum or a namespace.
    fn nest(&mut self, span: Span, visit: impl FnOnce(&mut Self)) {
        self.nested += 1;
        if self.nested > MAX_NESTED {
            let message = format!("Enums and namespaces are nested more than {MAX_NESTED} deep");
            self.refuse(span, message);
        } else {
            visit(self);
        }
        self.nested -= 1;
    }
}

impl<'a> Visit<'a> for Search {
    fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
        self.refuse(decorator.span, "Decorators are not supported");
    }

    fn visit_accessor_property(&mut self, accessor: &AccessorProperty<'a>) {
        self.refuse(
            accessor.span,
            "'accessor' fields are not supported: write a getter and a setter",
        );
    }

    fn visit_ts_namespace_declaration(&mut self, namespace: &TSNamespaceDeclaration<'a>) {
        self.declare(&namespace.id.name, namespace.span);
        self.nest(namespace.span, |search| {
            walk::walk_ts_namespace_declaration(search, namespace);
        });
    }

    fn visit_ts_enum_declaration(&mut self, declaration: &TSEnumDeclaration<'a>) {
        self.declare(&declaration.id.name, declaration.span);
        self.nest(declaration.span, |search| {
            walk::walk_ts_enum_declaration(search, declaration);
        });
    }
}
