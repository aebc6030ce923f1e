//! The same isolate in a process of its own.
//!
//! In: what a runtime gets, requests and hosts. Out: runs that live in workers. Only the transport is
//! different: `isolate/` is what computes there too, and what crosses are the messages of `value/`.
//!
//! The host's side: `workers` (who gets a worker, and when), `run` (one run, from its call to its end),
//! `link` (its socket), `driver` (the thread that listens) and `timer`. Between: `frame` (bytes),
//! `protocol` (a run's messages) and `control` (what host and nursery say). The other side, a program of
//! its own: `nursery` (forks workers), `children`, `rehearsal`, `serve` (a worker), `seat` (what its isolate sees of the
//! host), `wire`, and `confine`, which takes everything else from them.

#[cfg(target_os = "linux")]
mod children;
mod confine;
#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod driver;
#[cfg(target_os = "linux")]
mod frame;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod nursery;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod rehearsal;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod seat;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod timer;
#[cfg(target_os = "linux")]
mod wire;
#[cfg(target_os = "linux")]
mod workers;

pub use confine::{Allocator as WorkerAllocator, Confinement};
#[cfg(target_os = "linux")]
pub use nursery::worker_main;
#[cfg(target_os = "linux")]
pub(crate) use workers::{Keeper, Workers};
