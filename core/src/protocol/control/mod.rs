//! Commands and events between a host and its zygote, about workers.
//!
//! In: [`ZygoteCommand`] and [`ZygoteEvent`]. Out: the same on the other side. A zygote that is a process has a socket
//! for them (`coded`); one that is a thread of the host has a queue (`queue`). Neither side ever sees a byte of a
//! sandbox.

#[cfg(unix)]
mod coded;
#[cfg(windows)]
mod queue;

use rustix::fd::OwnedFd;

#[cfg(unix)]
pub(crate) use self::coded::{ACKNOWLEDGES, Control, Inbox, pair};
#[cfg(windows)]
pub(crate) use self::queue::{ACKNOWLEDGES, Control, Inbox, Told, ZygoteSide, pair};

use isolane_confine::{Confinement, Ended};

/// A command of the host to its zygote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZygoteCommand {
    /// Start so many more workers.
    Start(u32),
    Kill(u32),
    /// Give the worker a low priority.
    Demote(u32),
    /// The host has its end of that worker's socket. Sent where [`ACKNOWLEDGES`] holds.
    Received(u32),
}

/// An event that a zygote reports.
#[derive(Debug)]
pub(crate) enum ZygoteEvent {
    /// The first event: its version, and the confinement of its workers.
    Hello {
        version: u32,
        confinement: Confinement,
    },
    /// A worker, by its number, with the host's end of its socket.
    Born(u32, OwnedFd),
    /// A worker whose socket was lost: this process has reached its limit of descriptors.
    #[cfg_attr(windows, expect(dead_code, reason = "of other systems"))]
    Lost(u32),
    Ended(u32, Ended),
    /// The system refused a worker with that error.
    Refused(i32),
}

/// The reason why a command was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untold {
    /// The socket is full now.
    #[cfg_attr(windows, expect(dead_code, reason = "of other systems"))]
    Full,
    /// The other side is gone.
    Gone,
}
