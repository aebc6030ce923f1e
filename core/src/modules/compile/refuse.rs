//! Constructs that parse but cannot run here, or that would cost too much to compile.
//!
//! In: a syntax tree. Out: a message and a place for the first construct that must be refused: decorators, `export =`,
//! `import x = require()`, import attributes and phases, and enums and namespaces written to make their compilation
//! explode.

use std::collections::HashMap;

use oxc_ast::ast::{
    AccessorProperty, BinaryExpression, Declaration, Decorator, Expression, Program, Statement,
    TSEnumDeclaration, TSEnumMemberName, TSImportEqualsDeclaration, TSModuleReference,
    TSNamespaceDeclaration, WithClause,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};

/// The limit in bytes of the constant strings of all enums of a module.
const MAX_ENUM_BYTES: u64 = 1 << 20;

/// The limit of declarations of one enum or namespace.
const MAX_DECLARATIONS: usize = 1_000;

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
    /// For each member name, the most bytes that its value may take in any enum.
    members: HashMap<String, u64>,
    enum_bytes: u64,
    declarations: HashMap<String, usize>,
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

    /// An upper bound of the bytes of a constant. Counts every intermediate string.
    fn constant_bytes(&mut self, expression: &Expression<'_>) -> u64 {
        let bytes = match expression {
            Expression::StringLiteral(literal) => literal.value.len() as u64,
            Expression::TemplateLiteral(template) => {
                let quasis = template.quasis.iter().map(|quasi| quasi.value.raw.len() as u64);
                let mut bytes: u64 = quasis.sum();
                for expression in &template.expressions {
                    bytes = bytes.saturating_add(self.constant_bytes(expression));
                }
                bytes
            }
            Expression::BinaryExpression(binary) => self.binary_bytes(binary),
            Expression::UnaryExpression(unary) => self.constant_bytes(&unary.argument),
            Expression::ParenthesizedExpression(inner) => self.constant_bytes(&inner.expression),
            Expression::Identifier(identifier) => self.member_bytes(&identifier.name),
            Expression::StaticMemberExpression(member) => self.member_bytes(&member.property.name),
            Expression::ComputedMemberExpression(member) => match &member.expression {
                Expression::StringLiteral(literal) => self.member_bytes(&literal.value),
                _ => 0,
            },
            _ => 32,
        };
        self.enum_bytes = self.enum_bytes.saturating_add(bytes);
        bytes
    }

    /// Walks the left side in a loop, because a sum may be long.
    fn binary_bytes(&mut self, binary: &BinaryExpression<'_>) -> u64 {
        let mut rights = vec![&binary.right];
        let mut left = &binary.left;
        while let Expression::BinaryExpression(inner) = left {
            rights.push(&inner.right);
            left = &inner.left;
        }
        let mut bytes = self.constant_bytes(left);
        for right in rights.into_iter().rev() {
            bytes = bytes.saturating_add(self.constant_bytes(right));
            self.enum_bytes = self.enum_bytes.saturating_add(bytes);
        }
        bytes
    }

    fn member_bytes(&self, name: &str) -> u64 {
        self.members.get(name).copied().unwrap_or(32)
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
        walk::walk_ts_namespace_declaration(self, namespace);
    }

    fn visit_ts_enum_declaration(&mut self, declaration: &TSEnumDeclaration<'a>) {
        self.declare(&declaration.id.name, declaration.span);
        for member in &declaration.body.members {
            let Some(value) = &member.initializer else { continue };
            let bytes = self.constant_bytes(value);
            let name = match &member.id {
                TSEnumMemberName::Identifier(name) => name.name.as_str(),
                TSEnumMemberName::String(name) | TSEnumMemberName::ComputedString(name) => {
                    name.value.as_str()
                }
                TSEnumMemberName::ComputedTemplateString(_) => continue,
            };
            let most = self.members.entry(name.to_owned()).or_default();
            *most = bytes.max(*most);
            if self.enum_bytes > MAX_ENUM_BYTES {
                self.refuse(
                    value.span(),
                    "The constants of the enums of this module are too large",
                );
                return;
            }
        }
        walk::walk_ts_enum_declaration(self, declaration);
    }
}
