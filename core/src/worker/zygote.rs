//! The program `isolane-worker`.
//!
//! In: orders of the host. Out: workers, and news of how they end. On Unix it forks (`fork_server`), each worker a
//! copy of a process that has a pristine isolate in its memory already. On Windows it is one worker, and makes its
//! isolate itself (`program`).

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
    isolate::{Pool, PoolOptions, Realm, STACK_LIMIT_BYTES},
    modules::cache::Cache,
};

/// What the engine may use of a stack, and as much again for everything around it.
const STACK_BYTES: usize = 2 * STACK_LIMIT_BYTES * crate::os::sanitized::FRAMES;

/// What workers that have more than one run keep compiled.
const CACHE_BYTES: usize = 4 << 20;

/// A pool with one isolate in it.
fn pristine() -> Pool<Realm> {
    let pool = Pool::new(Realm::build, PoolOptions { ready: 1, ..PoolOptions::default() });
    pool.fill(|| false);
    pool
}

/// What a worker of so many runs keeps compiled.
fn cache_for(runs: u32) -> Arc<Cache> {
    Arc::new(Cache::new(if runs > 1 { CACHE_BYTES } else { 0 }))
}
