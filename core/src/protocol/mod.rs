//! The protocol of a host and its worker processes, and its sockets.
//!
//! `frame` is the format: a length, and fields that are read with checks. `messages` are those of one run; `control`
//! has the commands and events between a host and its zygote, and `arguments` those of the program. `sockets` carry
//! them, `readiness` reports which of many sockets can be read or written, and `lifeline` makes sure that no process
//! outlives its host.
//!
//! Systems differ in small files beside each other: those of Linux, those of every Unix, and those of Windows. With
//! `--cfg isolane_portable` Linux takes those of every Unix: for tests.

pub(crate) mod arguments;
pub(crate) mod control;
pub(crate) mod frame;
#[cfg(unix)]
pub(crate) mod lifeline;
pub(crate) mod messages;
pub(crate) mod readiness;
pub(crate) mod sockets;
