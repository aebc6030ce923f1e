//! Where workers come from.
//!
//! In: orders of the host. Out: workers, and news of how they end. On Unix this is a process that a host
//! launches (`launched`) and that forks (`forks`), each worker a copy of one that has a pristine isolate in its
//! memory already. Windows forks nothing: a thread of the host starts a program for each worker (`starts`), which
//! makes its isolate itself (`program`).

#[cfg(unix)]
mod fork_server;
#[cfg(unix)]
mod launched;
#[cfg(windows)]
mod program;
#[cfg(windows)]
mod starts;

#[cfg(unix)]
pub use self::fork_server::worker_main;
#[cfg(unix)]
pub(crate) use self::launched::{Killed, Nursery};
#[cfg(windows)]
pub use self::program::worker_main;
#[cfg(windows)]
pub(crate) use self::starts::{Killed, Nursery};

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
