//! SQLite as the parts of Isolane share it in one process.
//!
//! In: the first use of SQLite by a store or by a process service. Out: a SQLite that is set up once for all of them.
//! `process` sets it up, `memory` is its allocator, `files` its files, `stop` the stop of one bounded call. SQLite takes
//! its allocator only before it is first used, so whoever opens a connection calls [`initialize`] first.

pub mod files;
pub mod memory;
mod process;
pub mod stop;

pub use process::initialize;
