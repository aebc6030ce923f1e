//! The options of the environment of TypeScript, and their checks.

use std::collections::BTreeMap;

use isolane::{Error, ErrorKind, Inputs, Isolation, Runtime, RuntimeOptions, Spelling};

use super::globals::NAMES;
use crate::options::{default_concurrency, spelled};

/// The time limit of executions that have none.
pub(super) const DEFAULT_TIMEOUT_MS: u64 = 30_000;

/// The options of a [`TypeScriptEnvironment`](crate::TypeScriptEnvironment).
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
    /// Bridged modules, by their specifiers. Tools of a service with the same name are exports beside these.
    pub imports: BTreeMap<String, Inputs>,
    /// Modules that code may import, by their relative specifiers.
    pub modules: BTreeMap<String, String>,
    /// The runtime of the isolates, in place of the process's own.
    pub runtime: Option<Runtime>,
    /// For bindings: where they keep the executable `isolane-worker`.
    pub worker_folder: Option<std::path::PathBuf>,
    /// How to spell options in errors.
    pub spelling: Spelling,
}

impl TypeScriptEnvironmentOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.runtime.is_some() && self.isolation.is_some() {
            let message = "runtime and isolation exclude each other";
            return Err(Error::new(ErrorKind::Type, message));
        }
        if let Some(name) = NAMES.iter().find(|name| self.globals.iter().any(|(n, _)| n == **name))
        {
            let message = format!("globals.{name} is the environment's: choose another name");
            return Err(Error::new(ErrorKind::Type, message));
        }
        let counts = [
            ("concurrency", self.concurrency.map(|count| count as u64), 1_000_000),
            ("default_timeout_ms", self.default_timeout_ms, crate::options::MOST_MS),
        ];
        for (name, count, most) in counts {
            if let Some(count) = count.filter(|count| !(1..=most).contains(count)) {
                let name = spelled(name, self.spelling);
                let message =
                    format!("{name} must be a whole number from 1 to {most}, got {count}");
                return Err(Error::new(ErrorKind::Range, message));
            }
        }
        Ok(())
    }

    /// The most executions at once.
    pub(super) fn places(&self) -> usize {
        self.concurrency.unwrap_or_else(default_concurrency)
    }

    /// The runtime, and whether it is the environment's own. The process's own one serves all that it has places for.
    pub(super) fn open_runtime(&self) -> Result<(Runtime, bool), Error> {
        if let Some(runtime) = &self.runtime {
            return Ok((runtime.clone(), false));
        }
        let isolation = self.isolation.unwrap_or_default();
        if isolation == Isolation::Thread && self.places() <= default_concurrency() {
            return Ok((Runtime::shared(), false));
        }
        let options = RuntimeOptions {
            isolation,
            max_concurrent_runs: Some(self.places() as u64),
            worker_folder: self.worker_folder.clone(),
            spelling: self.spelling,
            ..RuntimeOptions::default()
        };
        Ok((Runtime::new(&options)?, true))
    }
}
