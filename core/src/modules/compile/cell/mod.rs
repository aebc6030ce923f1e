//! Cells of a session, compiled from source text.
//!
//! In: the text of a cell and its language. Out: the text of a module for the engine, and a plan of the names that the
//! cell declares. The module's default export is a function. Its parameter has a setter for each name, which binds the
//! name in the session; so a declaration becomes an assignment, and names that are read stay as they are. The cell's value
//! becomes `p[1]` at the end, and `p[2]` at a top-level `return`; so the engine returns no promise, whose `then` it would
//! call. All of this is edited in place, so every line is that of the source. Keeps the promises of sessions on declarations and values.
//! The body of a function is compiled in the same way, but that its declarations stay as they are.
//!
//! `hidden` finds names that the source does not have, `plan` lists the declared names, `statements` walks what is not
//! in functions, `completion` finds the value of the last statement, `variables` and `declarations` write declarations,
//! `module` writes imports, exports, and what goes around the source.

mod completion;
mod declarations;
mod hidden;
mod module;
mod plan;
mod statements;
#[cfg(test)]
mod tests;
mod variables;

use std::sync::{Arc, OnceLock};

use oxc_ast::ast::Program;
use oxc_semantic::Scoping;

pub(crate) use self::plan::{CellPlan, CellValue};
pub(super) use self::{module::end_of, plan::Cell};
use super::{
    module::CompiledModule,
    text::blanks::Blanks,
    typescript::{namespaces::Namespaces, types::Types},
};

/// A cell ready to be linked and run.
#[derive(Clone, Debug)]
pub(crate) struct CompiledCell {
    /// Its text for the engine, and its requests. Nothing can be imported from it.
    pub(crate) module: Arc<CompiledModule>,
    pub(crate) plan: Arc<CellPlan>,
    /// The engine's bytecode, stored by the first isolate that loads such a cell. Opaque here.
    pub(crate) bytecode: OnceLock<Arc<[u8]>>,
}

/// Erases the types of a cell, and writes its declarations as a cell's.
pub(super) fn erase<'a, 't>(
    program: &Program<'a>,
    scoping: &Scoping,
    blanks: Blanks<'t>,
    cell: Cell<'a>,
) -> (Blanks<'t>, Namespaces<'a>, Option<Cell<'a>>) {
    let mut types = Types::new(program, scoping, blanks, Some(cell));
    types.visit_cell(program);
    (types.blanks, types.namespaces, types.cell)
}
