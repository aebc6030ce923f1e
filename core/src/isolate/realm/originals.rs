//! The engine's own functions that functions of this crate replace.
//!
//! In: values of a new realm, captured before any code of a run. Out: plain data for the functions that have taken
//! the places of these values.

use crate::isolate::engine::Raw;

/// The constructor of dates.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct Dates {
    pub(in crate::isolate) constructor: Raw,
    /// The key of a method that turns an object into a primitive value.
    pub(in crate::isolate) to_primitive: Raw,
}

impl Dates {
    /// Every value that is held.
    pub(in crate::isolate) fn all(&self) -> [Raw; 2] {
        [self.constructor, self.to_primitive]
    }
}

/// The engine's own functions for the text and the place of a function.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct FunctionText {
    pub(in crate::isolate) text: Raw,
    pub(in crate::isolate) file: Raw,
    pub(in crate::isolate) line: Raw,
    pub(in crate::isolate) column: Raw,
}

impl FunctionText {
    /// Every value that is held.
    pub(in crate::isolate) fn all(&self) -> [Raw; 4] {
        [self.text, self.file, self.line, self.column]
    }
}
