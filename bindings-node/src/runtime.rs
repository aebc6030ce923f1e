//! Runtimes: their options and their counts.

use std::path::PathBuf;

use isolane::{Confinement, Isolation, Runtime, RuntimeOptions, Spelling, Stats};
use napi::Either;
use napi_derive::napi;

use crate::error::Misuse;

/// A runtime of the core.
#[napi]
pub struct NativeRuntime {
    pub(crate) runtime: Runtime,
}

/// The options of a runtime, of the right types already.
#[napi(object)]
pub struct NativeRuntimeOptions {
    pub isolation: Option<String>,
    pub safety_cap_ms: Option<f64>,
    pub max_concurrent_runs: Option<f64>,
    pub max_queued_runs: Option<f64>,
    pub max_stuck_threads: Option<f64>,
    pub ready_isolates: Option<f64>,
    pub compile_cache_bytes: Option<f64>,
    pub worker: Option<String>,
    /// Where the addon is.
    pub worker_folder: Option<String>,
    pub runs_per_worker: Option<f64>,
    pub worker_idle_ms: Option<f64>,
}

/// Counts of a runtime, as of now.
#[napi(object)]
pub struct NativeStats {
    pub computing: f64,
    pub parked: f64,
    pub queued: f64,
    pub settled: NativeSettled,
    pub ready_isolates: f64,
    pub threads: f64,
    pub stuck_threads: f64,
    pub compile_cache_bytes: f64,
    pub workers: f64,
    pub confinement: Option<NativeConfinement>,
}

/// What workers are kept from.
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

/// Makes a runtime, or says what is wrong with its options.
#[napi(catch_unwind)]
pub fn open_runtime(options: NativeRuntimeOptions) -> Either<NativeRuntime, Misuse> {
    let options = RuntimeOptions {
        isolation: match options.isolation.as_deref() {
            Some("process") => Isolation::Process,
            _ => Isolation::Thread,
        },
        safety_cap_ms: options.safety_cap_ms,
        max_concurrent_runs: options.max_concurrent_runs,
        max_queued_runs: options.max_queued_runs,
        max_stuck_threads: options.max_stuck_threads,
        ready_isolates: options.ready_isolates,
        compile_cache_bytes: options.compile_cache_bytes,
        worker: options.worker.map(PathBuf::from),
        worker_folder: options.worker_folder.map(PathBuf::from),
        runs_per_worker: options.runs_per_worker,
        worker_idle_ms: options.worker_idle_ms,
        spelling: Spelling::Camel,
    };
    match Runtime::new(&options) {
        Ok(runtime) => Either::A(NativeRuntime { runtime }),
        Err(error) => Either::B(error.into()),
    }
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
