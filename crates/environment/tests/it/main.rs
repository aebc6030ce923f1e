//! The tests of environments and of the process service through their public interface: one program, so that the crate is
//! linked once.
//!
//! `crash` kills services with a database. `place` says how the tests of the environment of TypeScript run in processes.

mod cases;
#[cfg(unix)]
mod crash;
mod database;
mod events;
#[path = "../../../../core/tests/it/place.rs"]
mod place;
mod states;
mod support;
mod tools;
mod typescript;
