//! The parts that a language binding uses beside values.
//!
//! `host` is the trait that a binding implements, `handle` its handle on a run, `inbound` the messages that it sends to
//! one. `mailbox` queues events for the thread that started their runs, and `mailbox_host` is the `Host` that fills it.
//! `visit` walks over a message for a host that cannot hold every value. `native` has host functions that are answered
//! in Rust, `door` calls whose code is Rust, and `executor` the threads for both. `interception` has code of the host that stands between a run and its
//! caller. `fair_queue` takes events of many runs in turn, and `adaptive_spin`
//! decides how long to spin for the next one before going to sleep.

pub(crate) mod adaptive_spin;
pub(crate) mod door;
pub(crate) mod executor;
pub(crate) mod fair_queue;
pub(crate) mod handle;
pub(crate) mod host;
pub(crate) mod inbound;
pub(crate) mod interception;
pub(crate) mod mailbox;
pub(crate) mod mailbox_host;
pub(crate) mod native;
pub(crate) mod visit;
