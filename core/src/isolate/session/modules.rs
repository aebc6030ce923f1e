//! The modules that a session has loaded, by their names in the engine.
//!
//! In: a module that was loaded for an import. Out: the same one for later imports. The engine keeps a list of modules
//! for each context, and modules run in a context of their own; so an import in a cell finds them here.

use std::sync::Arc;

use crate::isolate::{engine::sys, state::State};

impl State {
    /// The module with that name, if an import has loaded it.
    pub(in crate::isolate) fn loaded_module(&self, name: &str) -> Option<*mut sys::JSModuleDef> {
        let loaded = self.session().ok()?.loaded.borrow();
        loaded.get(name).map(|address| std::ptr::with_exposed_provenance_mut(*address))
    }

    /// Notes a module for later imports.
    pub(in crate::isolate) fn note_module(&self, name: &str, module: *mut sys::JSModuleDef) {
        if let Ok(session) = self.session() {
            self.keep(size_of::<(Box<str>, usize)>() + name.len());
            let mut loaded = session.loaded.borrow_mut();
            Arc::make_mut(&mut loaded).insert(name.into(), module.expose_provenance());
        }
    }
}
