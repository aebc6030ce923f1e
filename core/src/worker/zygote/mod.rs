//! The program `isolane-worker`.
//!
//! In: commands of the host. Out: workers, and events of their ends. On Unix it forks (`fork_server`): each worker is a
//! copy of a process that has a pristine isolate in its memory. On Windows it is one worker and makes its isolate
//! itself (`program`).

#[cfg(unix)]
mod fork_server;
#[cfg(windows)]
mod program;

#[cfg(unix)]
pub use self::fork_server::worker_main;
#[cfg(windows)]
pub use self::program::worker_main;

use std::sync::Arc;

use crate::{
    data::extension,
    isolate::{Pool, PoolOptions, Realm, STACK_LIMIT_BYTES},
    modules::cache::Cache,
};

/// The engine's share of a stack, and as much again for everything around it.
const STACK_BYTES: usize = 2 * STACK_LIMIT_BYTES * crate::os::sanitized::FRAMES;

/// The size of the compiled code that workers with more than one run keep.
const CACHE_BYTES: usize = 4 << 20;

/// A pool with one isolate in it.
fn pristine() -> Pool<Realm> {
    let options = PoolOptions { ready: 1, ..PoolOptions::default() };
    let pool = Pool::new(Realm::build, options).with_extended(Realm::build_extended);
    if extension::installed().is_some() {
        // Every run can use it.
        pool.expect_extended();
    }
    pool.fill(|| false);
    pool
}

/// The cache of a worker for so many runs.
fn cache_for(runs: u32) -> Arc<Cache> {
    Arc::new(Cache::new(if runs > 1 { CACHE_BYTES } else { 0 }))
}
