//! The fate of each statement when types are erased.
//!
//! In: a statement of a TypeScript tree. Out: whether it runs, is erased, or produces code and is printed.

use oxc_ast::ast::{Declaration, ExportDefaultDeclarationKind, Statement};

/// The fate of a declaration.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fate {
    /// It runs, without the types in it.
    Runs,
    /// It is a type, or declared only.
    Erased,
    /// It produces code.
    Printed,
}

fn of_declaration(declaration: &Declaration<'_>) -> Fate {
    let erased = match declaration {
        Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => true,
        Declaration::VariableDeclaration(variables) => variables.declare,
        Declaration::FunctionDeclaration(function) => function.declare || function.body.is_none(),
        Declaration::ClassDeclaration(class) => class.declare,
        Declaration::TSEnumDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_)
        | Declaration::TSNamespaceDeclaration(_)
        | Declaration::TSGlobalDeclaration(_)
            if declaration.declare() =>
        {
            true
        }
        Declaration::TSEnumDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_)
        | Declaration::TSNamespaceDeclaration(_)
        | Declaration::TSGlobalDeclaration(_)
        | Declaration::TSImportEqualsDeclaration(_) => return Fate::Printed,
    };
    if erased { Fate::Erased } else { Fate::Runs }
}

/// The fate of a statement. Those that import and export names count as running.
pub(super) fn of_statement(statement: &Statement<'_>) -> Fate {
    match statement {
        Statement::ExportDeclaration(export) => of_declaration(&export.declaration),
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
        Statement::TSExportAssignment(_) => Fate::Printed,
        other => other.as_declaration().map_or(Fate::Runs, of_declaration),
    }
}
