//! What a host and its worker processes say to each other, and over which sockets.
//!
//! `frame` is the format: a length, and fields that are read with checks. `messages` are those of one run; `control`
//! has the commands and events that a host and its zygote exchange, and `arguments` what the program is started with.
//! `sockets` are the ways for them, `readiness` tells which of many has something to read, and `lifeline` sees to it
//! that no process outlives its host.
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
