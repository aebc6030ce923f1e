//! The parts of a realm that sessions need.
//!
//! In: the tables, the context and the classes that `names` makes in a new realm. Out: plain data that the realm holds.

use crate::isolate::engine::{Cx, Raw};

/// The parts of a realm that sessions need.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct Parts {
    /// The table of global declarations, as cells see it.
    pub(super) entries: Raw,
    /// The context in which modules run, and the table as they see it.
    pub(super) modules: Cx,
    pub(super) module_entries: Raw,
    /// The class of the objects through which cells set their names.
    pub(super) binder: u32,
    /// The class of the object that has the imports.
    pub(super) imports: u32,
}

impl Parts {
    /// The context in which modules run. It has the globals of the host, and no names of cells.
    pub(in crate::isolate) fn modules(self) -> Cx {
        self.modules
    }
}
