//! The fate of each statement when types are erased.
//!
//! In: a statement of a TypeScript tree. Out: whether it runs, is erased, or produces other code than is written.

use oxc_ast::ast::{Declaration, ExportDefaultDeclarationKind, Statement};

use super::namespaces::Namespaces;

/// The fate of a declaration.
#[derive(Clone, Copy, PartialEq)]
pub(in super::super) enum Fate {
    /// It runs, without the types in it.
    Runs,
    /// It is a type, or declared only.
    Erased,
    /// It is written anew: an enum, a namespace, an alias.
    Produces,
}

fn of_declaration(declaration: &Declaration<'_>, namespaces: &Namespaces<'_>) -> Fate {
    let erased = match declaration {
        Declaration::VariableDeclaration(variables) => variables.declare,
        Declaration::FunctionDeclaration(function) => function.declare || function.body.is_none(),
        Declaration::ClassDeclaration(class) => class.declare,
        Declaration::TSEnumDeclaration(declaration) if !declaration.declare => {
            return Fate::Produces;
        }
        Declaration::TSNamespaceDeclaration(namespace)
            if !namespace.declare && namespaces.is_instantiated(namespace) =>
        {
            return Fate::Produces;
        }
        Declaration::TSImportEqualsDeclaration(alias) if !namespaces.is_erased(alias) => {
            return Fate::Produces;
        }
        _ => true,
    };
    if erased { Fate::Erased } else { Fate::Runs }
}

/// The fate of a statement. Those that import and export names count as running.
pub(in super::super) fn of_statement(
    statement: &Statement<'_>,
    namespaces: &Namespaces<'_>,
) -> Fate {
    match statement {
        Statement::ExportDeclaration(export) => of_declaration(&export.declaration, namespaces),
        Statement::ExportDefaultDeclaration(export) => match &export.declaration {
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => Fate::Erased,
            ExportDefaultDeclarationKind::FunctionDeclaration(function)
                if function.body.is_none() =>
            {
                Fate::Erased
            }
            _ => Fate::Runs,
        },
        Statement::TSNamespaceExportDeclaration(_) => Fate::Erased,
        other => other
            .as_declaration()
            .map_or(Fate::Runs, |declaration| of_declaration(declaration, namespaces)),
    }
}
