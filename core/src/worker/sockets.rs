//! Writing to a socket whose other side is gone, as an error and not as a signal.
//!
//! A system asks for that with each write or once for the socket: the code does both, and each is nothing where
//! it is not needed.

use std::os::fd::AsFd;

use rustix::{io::Errno, net::SendFlags};

/// For each write.
#[cfg(not(target_vendor = "apple"))]
pub(super) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
pub(super) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// For the socket.
#[cfg(not(target_vendor = "apple"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(super) fn no_signal(_socket: impl AsFd) -> Result<(), Errno> {
    Ok(())
}

#[cfg(target_vendor = "apple")]
pub(super) fn no_signal(socket: impl AsFd) -> Result<(), Errno> {
    rustix::net::sockopt::set_socket_nosigpipe(socket, true)
}
