//! Texts that are edited in place, their lines, and the ways between the places of a text and of its code.

pub(super) mod arrows;
pub(super) mod blanks;
pub(super) mod edits;
pub(super) mod line_terminators;
pub(super) mod lines;
pub(super) mod unicode_sets;
