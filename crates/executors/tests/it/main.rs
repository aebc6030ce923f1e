//! The tests of the executors through their public interface: one program, so that the crate is linked once.
//!
//! `place` says how the tests of the executor of isolates run in processes.

mod code_loop;
mod code_loop_limits;
#[cfg(unix)]
mod container;
mod isolate;
mod isolate_calls;
#[cfg(unix)]
mod local;
#[cfg(unix)]
mod local_calls;
#[path = "../../../../core/tests/it/place.rs"]
mod place;
