//! Modules compiled from source text; the only importer of oxc.
//!
//! In: a text and its language. Out: the text for the engine, a record of its imports and exports, and positions of the
//! original; or a `CompileError` with the position of the first error. JavaScript is parsed for its errors and its
//! record and runs unchanged, except for parentheses where the engine needs them. TypeScript is not type-checked, and
//! nothing is lowered: blanks take the place of its types, and what produces code, such as an enum, is written anew where
//! it stands. So every line is that of the source. Keeps the contract's rule that a hostile source harms no host: for any
//! text, time is about linear in its length and the stack suffices.
//!
//! `entries` are the ways in, `compilation` is the way of each text through the others: `bounds` keeps the time, memory and
//! stack that a text may cost; `text` edits in place and knows positions; `typescript` erases types; `cell` writes
//! declarations of cells; `advice` words errors; `explain` answers about a module later.

mod advice;
pub(crate) mod async_function;
mod bounds;
pub(crate) mod cell;
mod compilation;
mod entries;
pub(crate) mod explain;
mod failure;
mod library;
mod module;
mod parse;
mod record;
mod refuse;
pub(crate) mod requested;
#[cfg(test)]
mod tests;
mod text;
mod typescript;

pub(crate) use self::{
    advice::can_be_name,
    entries::{compile, compile_body, compile_cell, compile_library},
    module::{CompileError, CompiledModule, ExportTarget, Imported, ImportedName, Request},
};
