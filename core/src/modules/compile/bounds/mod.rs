//! Bounds of a text's cost, known before it is spent: of its tokens and its tree, in stack, memory and time.

pub(super) mod census;
pub(super) mod lexer;
pub(super) mod memory;
pub(super) mod names;
pub(super) mod nesting;
#[cfg(test)]
mod readings_tests;
mod rereads;
pub(super) mod stack;
