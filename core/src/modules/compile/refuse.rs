//! Constructs that parse but cannot run here, or that would cost too much to compile.
//!
//! In: a syntax tree. Out: a message and a place for the first construct that must be refused: decorators, `export =`,
//! `import x = require()`, import attributes and phases, and enums and namespaces written to make their compilation
//! explode. In the body of a function and in a library also imports and exports; in a library `await` at its top.

use std::collections::HashMap;

use oxc_ast::ast::{
    AccessorProperty, ArrowFunctionExpression, AwaitExpression, Declaration, Decorator,
    ForOfStatement, Function, ImportMeta, Program, Statement, TSEnumDeclaration,
    TSImportEqualsDeclaration, TSModuleReference, TSNamespaceDeclaration, VariableDeclaration,
    VariableDeclarationKind, WithClause,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use super::parse::Goal;

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
pub(super) fn refusal(program: &Program<'_>, goal: Goal) -> Option<Refusal> {
    let is_function = matches!(goal, Goal::Body | Goal::Library);
    let mut search = Search { is_function, is_library: goal == Goal::Library, ..Search::default() };
    for statement in &program.body {
        if is_function {
            search.function_statement(statement);
        }
        search.module_statement(statement);
    }
    let text = program.source_text;
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let in_function = is_function && has(&["meta"]);
    let in_library = search.is_library && has(&["await"]);
    if in_function || in_library || has(&["@", "accessor", "enum", "namespace", "module"]) {
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
    /// Whether the program is the body of a function, or a library.
    is_function: bool,
    is_library: bool,
    /// The functions around the place that is visited.
    functions: usize,
}

impl Search {
    fn refuse(&mut self, span: Span, message: impl Into<String>) {
        if self.found.as_ref().is_none_or(|found| found.offset > span.start) {
            self.found = Some(Refusal { message: message.into(), offset: span.start });
        }
    }

    /// A function has no imports and exports.
    fn function_statement(&mut self, statement: &Statement<'_>) {
        let exports = if self.is_library { "set 'exports.name'" } else { "return the value" };
        match statement {
            Statement::ImportDeclaration(import) => {
                let module = import.source.value.as_str();
                let message =
                    format!("'import' is not available here: use require('{}')", bounded(module));
                self.refuse(import.span, message);
            }
            Statement::TSImportEqualsDeclaration(import) => {
                if let TSModuleReference::ExternalModuleReference(module) = &import.module_reference
                {
                    let message = format!(
                        "'import =' is not available here: use const {} = require('{}')",
                        import.id.name,
                        bounded(&module.expression.value)
                    );
                    self.refuse(import.span, message);
                }
            }
            Statement::ExportDeclaration(_)
            | Statement::ExportDefaultDeclaration(_)
            | Statement::ExportNamedDeclaration(_)
            | Statement::ExportFromDeclaration(_)
            | Statement::ExportAllDeclaration(_)
            | Statement::TSExportAssignment(_) => {
                let message = format!(
                    "'export' is not available here: {exports}; require('name') loads a library"
                );
                self.refuse(statement.span(), message);
            }
            _ => {}
        }
    }

    /// A library is synchronous.
    fn awaits(&mut self, span: Span) {
        if self.is_library && self.functions == 0 {
            let message = "'await' is not available at the top of a library: \
                           export an async function, and await it after require()";
            self.refuse(span, message);
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

/// As much of a specifier as a message repeats.
fn bounded(specifier: &str) -> &str {
    const MOST_BYTES: usize = 200;
    &specifier[..specifier.floor_char_boundary(MOST_BYTES)]
}

impl<'a> Visit<'a> for Search {
    fn visit_import_meta(&mut self, property: &ImportMeta) {
        if self.is_function {
            let message = "'import.meta' is not available here: require('name') loads a library";
            self.refuse(property.span, message);
        }
    }

    fn visit_await_expression(&mut self, expression: &AwaitExpression<'a>) {
        self.awaits(expression.span);
        walk::walk_await_expression(self, expression);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        if statement.r#await {
            self.awaits(statement.span);
        }
        walk::walk_for_of_statement(self, statement);
    }

    fn visit_variable_declaration(&mut self, variables: &VariableDeclaration<'a>) {
        if variables.kind == VariableDeclarationKind::AwaitUsing {
            self.awaits(variables.span);
        }
        walk::walk_variable_declaration(self, variables);
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.functions += 1;
        walk::walk_function(self, function, flags);
        self.functions -= 1;
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        self.functions += 1;
        walk::walk_arrow_function_expression(self, arrow);
        self.functions -= 1;
    }

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
