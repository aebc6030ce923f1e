//! The environment of TypeScript: each execution is one cell in an isolate that nothing else ever uses.
//!
//! In: code. Out: what it prints, its output, its exit state.

use std::collections::BTreeMap;

use async_trait::async_trait;
use isolane::{Error, Inputs, Isolation, Runtime};

use crate::{
    Environment, EnvironmentBindings, EnvironmentError, ExecutionExitState, ExecutionInput,
};

/// The options of a [`TypeScriptEnvironment`].
#[derive(Clone, Debug, Default)]
pub struct TypeScriptEnvironmentOptions {
    /// Where the isolates live; on threads by default.
    pub isolation: Option<Isolation>,
    /// Executions at once; 4 per core, at least 8, by default. Further ones wait, as `queued`.
    pub concurrency: Option<usize>,
    /// The most memory of an execution; 128 MiB by default.
    pub memory_limit_bytes: Option<u64>,
    /// The time limit of an execution that has none; 30,000 by default.
    pub default_timeout_ms: Option<u64>,
    /// Names that all code sees.
    pub globals: Inputs,
    /// Bridged modules, by their specifiers.
    pub imports: BTreeMap<String, Inputs>,
    /// Modules that code may import, by their relative specifiers.
    pub modules: BTreeMap<String, String>,
    /// The runtime of the isolates, in place of the process's own.
    pub runtime: Option<Runtime>,
}

/// Runs TypeScript and JavaScript.
#[derive(Debug)]
pub struct TypeScriptEnvironment {}

impl TypeScriptEnvironment {
    /// An environment.
    ///
    /// # Errors
    /// An option out of range; options that exclude each other.
    pub fn new(options: TypeScriptEnvironmentOptions) -> Result<Self, Error> {
        let _ = options;
        todo!()
    }
}

#[async_trait]
impl Environment for TypeScriptEnvironment {
    async fn execute(
        &self,
        input: ExecutionInput,
        bindings: EnvironmentBindings,
    ) -> Result<ExecutionExitState, EnvironmentError> {
        let _ = (input, bindings);
        todo!()
    }

    async fn kill(&self, eid: u64) -> Result<(), EnvironmentError> {
        let _ = eid;
        Ok(())
    }
}
