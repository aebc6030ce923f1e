//! Statements that give a cell its value.
//!
//! In: a statement. Out: whether it gives a value, or begins anew with none. The language defines the value of a list of
//! statements as the last one that a statement in it gave; a statement that has parts gives `undefined` if none of them
//! gives one.

use oxc_ast::ast::Statement;

/// Whether the value after a statement never depends on the value before it.
pub(super) fn gives(statement: &Statement<'_>) -> bool {
    matches!(statement, Statement::ExpressionStatement(_)) || resets(statement)
}

/// Whether a statement gives `undefined` if none of its parts gives a value.
pub(super) fn resets(statement: &Statement<'_>) -> bool {
    let mut statement = statement;
    while let Statement::LabeledStatement(labeled) = statement {
        statement = &labeled.body;
    }
    matches!(
        statement,
        Statement::IfStatement(_)
            | Statement::ForStatement(_)
            | Statement::ForInStatement(_)
            | Statement::ForOfStatement(_)
            | Statement::WhileStatement(_)
            | Statement::DoWhileStatement(_)
            | Statement::SwitchStatement(_)
            | Statement::TryStatement(_)
    )
}
