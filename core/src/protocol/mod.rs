//! What a host and its worker processes say to each other, and over which sockets.

pub(crate) mod arguments;
pub(crate) mod control;
pub(crate) mod frame;
#[cfg(unix)]
pub(crate) mod lifeline;
pub(crate) mod messages;
pub(crate) mod readiness;
pub(crate) mod sockets;
