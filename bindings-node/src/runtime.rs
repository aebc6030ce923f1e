//! Runtimes: their options and their counts.

use std::collections::HashMap;

use isolane::{
    Confinement, Error, OptionKind, OptionSet, OptionValue, Runtime, RuntimeOptions, Spelling,
    Stats,
};
use napi::Either;
use napi_derive::napi;

use crate::error::Misuse;

/// A runtime of the core.
#[napi]
pub struct NativeRuntime {
    pub(crate) runtime: Runtime,
}

/// Counts of a runtime, as of now.
#[napi(object)]
pub struct NativeStats {
    pub computing: f64,
    pub parked: f64,
    pub queued: f64,
    pub sessions: f64,
    pub settled: NativeSettled,
    pub ready_isolates: f64,
    pub threads: f64,
    pub stuck_threads: f64,
    pub compile_cache_bytes: f64,
    pub uncached_modules: f64,
    pub workers: f64,
    pub confinement: Option<NativeConfinement>,
}

/// The protections of workers.
#[napi(object)]
#[expect(clippy::struct_excessive_bools, reason = "as the core has them")]
pub struct NativeConfinement {
    pub environment: bool,
    pub descriptors: bool,
    pub privileges: bool,
    pub user: bool,
    pub capabilities: bool,
    pub network: bool,
    pub file_system: bool,
    pub processes: bool,
    pub ipc: bool,
    pub landlock: bool,
    pub system_calls: bool,
    pub resources: bool,
}

/// Runs that have settled, by status.
#[napi(object)]
pub struct NativeSettled {
    pub success: f64,
    pub error: f64,
    pub memory: f64,
    pub terminated: f64,
    #[napi(js_name = "link_error")]
    pub link_error: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
impl From<Stats> for NativeStats {
    fn from(stats: Stats) -> Self {
        Self {
            computing: stats.computing as f64,
            parked: stats.parked as f64,
            queued: stats.queued as f64,
            sessions: stats.sessions as f64,
            settled: NativeSettled {
                success: stats.success as f64,
                error: stats.error as f64,
                memory: stats.memory as f64,
                terminated: stats.terminated as f64,
                link_error: stats.link_error as f64,
            },
            ready_isolates: stats.ready_isolates as f64,
            threads: stats.threads as f64,
            stuck_threads: stats.stuck_threads as f64,
            compile_cache_bytes: stats.compile_cache_bytes as f64,
            uncached_modules: stats.uncached_modules as f64,
            workers: stats.workers as f64,
            confinement: stats.confinement.map(NativeConfinement::from),
        }
    }
}

impl From<Confinement> for NativeConfinement {
    fn from(confinement: Confinement) -> Self {
        Self {
            environment: confinement.environment,
            descriptors: confinement.descriptors,
            privileges: confinement.privileges,
            user: confinement.user,
            capabilities: confinement.capabilities,
            network: confinement.network,
            file_system: confinement.file_system,
            processes: confinement.processes,
            ipc: confinement.ipc,
            landlock: confinement.landlock,
            system_calls: confinement.system_calls,
            resources: confinement.resources,
        }
    }
}

/// Makes a runtime, or refuses its options. The options have the names and types of `option_declarations`;
/// `worker_folder` is the folder of the addon.
#[napi(catch_unwind)]
#[must_use]
pub fn open_runtime(
    options: HashMap<String, Either<f64, String>>,
    worker_folder: String,
) -> Either<NativeRuntime, Misuse> {
    match read_options(options, worker_folder).and_then(|options| Runtime::new(&options)) {
        Ok(runtime) => Either::A(NativeRuntime { runtime }),
        Err(error) => Either::B(error.into()),
    }
}

pub(crate) fn read_options(
    mut given: HashMap<String, Either<f64, String>>,
    worker_folder: String,
) -> Result<RuntimeOptions, Error> {
    let mut options = RuntimeOptions {
        worker_folder: Some(worker_folder.into()),
        spelling: Spelling::Camel,
        ..RuntimeOptions::default()
    };
    for option in OptionSet::Runtime.declarations() {
        let value = match given.remove(&option.spelled(Spelling::Camel)) {
            None => continue,
            Some(Either::A(number)) => OptionValue::Number(number),
            Some(Either::B(path)) if option.kind == OptionKind::Path => {
                OptionValue::Path(path.into())
            }
            Some(Either::B(text)) => OptionValue::Text(text),
        };
        options.set(option.name, value)?;
    }
    Ok(options)
}

#[napi]
impl NativeRuntime {
    /// The core's counts, as of now.
    #[napi(catch_unwind)]
    #[must_use]
    pub fn stats(&self) -> NativeStats {
        NativeStats::from(self.runtime.stats())
    }
}
