//! The modules of one run: what was compiled and linked before anything ran, and what a dynamic
//! `import()` adds while it does.
//!
//! In: questions of the isolate, by name. Out: scripts, bridges and positions. This is all that an
//! isolate knows of compiling and linking.

use std::sync::{Arc, OnceLock};

use crate::{
    cache::Cache,
    options::Request,
    outcome::{ExecutionError, Position},
};

/// A text for the engine, with the bytecode that the first isolate to load it made of it.
#[derive(Debug, Default)]
pub(crate) struct Script {
    text: String,
    bytecode: OnceLock<Arc<[u8]>>,
}

impl Script {
    pub(crate) fn new(text: String) -> Self {
        Self { text, bytecode: OnceLock::new() }
    }

    /// What the engine compiles.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What came of it, if an isolate has compiled it before.
    pub(crate) fn bytecode(&self) -> Option<Arc<[u8]>> {
        self.bytecode.get().cloned()
    }

    /// Keeps bytecode for the runs to come; the first to arrive stays.
    pub(crate) fn keep_bytecode(&self, bytecode: Vec<u8>) -> Arc<[u8]> {
        Arc::clone(self.bytecode.get_or_init(|| bytecode.into()))
    }
}

/// A module as the isolate loads it.
#[derive(Clone, Debug)]
pub(crate) enum Module {
    /// Source text.
    Source(Arc<Script>),
    /// Values of the host: the names of its exports, and where their values start among the inputs.
    Bridge { exports: Vec<String>, first: usize },
}

/// What the isolate asks about modules.
pub(crate) trait Linker: Send {
    /// The name of the entry.
    fn entry(&self) -> &str;

    /// The module that a specifier means, by name. One that is not linked yet (a dynamic import) is
    /// checked now, with all that it imports.
    fn resolve(&mut self, importer: &str, specifier: &str) -> Result<String, ExecutionError>;

    /// The module of that name.
    fn module(&self, name: &str) -> Option<Module>;

    /// The script that declares each name as a constant, its values in the array `holder`.
    fn globals_script(&self, names: &[String], holder: &str) -> Arc<Script>;

    /// Whether a stack may name this file.
    fn knows(&self, file: &str) -> bool;

    /// Where a place in compiled code (line from 1, column from 1 in bytes) stands in the text that
    /// its author wrote.
    fn original(&self, file: &str, line: u32, column: u32) -> Option<Position>;
}

pub(crate) fn link(_cache: &Cache, _request: Request) -> Result<Box<dyn Linker>, ExecutionError> {
    Err(ExecutionError::default())
}
