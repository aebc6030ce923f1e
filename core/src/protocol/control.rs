//! What a host and a zygote tell each other: which workers there are to be.
//!
//! In: [`ZygoteCommand`] and [`ZygoteEvent`]. Out: the same on the other side. A zygote that is a process has a socket for
//! them (`coded`), one that is a thread of the host a queue (`queue`). Neither side has ever seen a byte of a
//! sandbox.

#[cfg(unix)]
mod coded;
#[cfg(windows)]
mod queue;

use rustix::fd::OwnedFd;

#[cfg(unix)]
pub(crate) use self::coded::{ACKNOWLEDGES, Control, Inbox, pair};
#[cfg(windows)]
pub(crate) use self::queue::{ACKNOWLEDGES, Control, Inbox, Nurserys, Told, pair};

use isolane_confine::{Confinement, Ended};

/// What a host wants of a zygote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZygoteCommand {
    /// So many workers more.
    Start(u32),
    Kill(u32),
    /// To come after others.
    Demote(u32),
    /// The host has its end of that worker's socket, where it tells ([`ACKNOWLEDGES`]).
    Received(u32),
}

/// What a zygote tells.
#[derive(Debug)]
pub(crate) enum ZygoteEvent {
    /// The first thing: its version, and what its workers are kept from.
    Hello {
        version: u32,
        confinement: Confinement,
    },
    /// A worker, by its number, with the host's end of its socket.
    Born(u32, OwnedFd),
    /// A worker whose socket did not come: this process has as many descriptors as it may have.
    #[cfg_attr(windows, expect(dead_code, reason = "of other systems"))]
    Lost(u32),
    Ended(u32, Ended),
    /// The system refused a worker, with that error.
    Refused(i32),
}

/// Why an order was not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untold {
    /// There is no room for it now.
    #[cfg_attr(windows, expect(dead_code, reason = "of other systems"))]
    Full,
    /// There is nobody to tell any more.
    Gone,
}
