//! What the sockets between host and workers are like.
//!
//! Writing to one whose other side is gone is an error and not a signal. A system asks for that with each write
//! or once for the socket: the code does both, and each is nothing where it is not needed. The same holds of a
//! host's writing, which never waits for room. And there is room for much under way: a large value takes as many
//! turns of both sides as it does not fit.

use std::os::fd::AsFd;

use rustix::{
    io::Errno,
    net::{SendFlags, sockopt::set_socket_send_buffer_size},
};

/// What is asked of the system, which gives what it allows everybody if that is less.
const ROOM_BYTES: usize = 512 << 10;

/// For each write.
#[cfg(not(target_vendor = "apple"))]
pub(super) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
pub(super) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// For each write of a host.
#[cfg(all(target_os = "linux", not(isolane_portable)))]
pub(super) const NO_WAIT: SendFlags = SendFlags::DONTWAIT;
#[cfg(any(isolane_portable, not(target_os = "linux")))]
pub(super) const NO_WAIT: SendFlags = SendFlags::empty();

/// For the host's end of a socket; the other end still waits.
#[cfg(all(target_os = "linux", not(isolane_portable)))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(super) fn no_wait(_socket: impl AsFd) -> Result<(), Errno> {
    Ok(())
}

/// For the host's end of a socket; the other end still waits. Not every system heeds the flag of a write.
#[cfg(any(isolane_portable, not(target_os = "linux")))]
pub(super) fn no_wait(socket: impl AsFd) -> Result<(), Errno> {
    rustix::io::ioctl_fionbio(socket, true)
}

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

/// Has what is sent by it wait for its reader, as much as the system allows.
pub(super) fn make_room(socket: impl AsFd) {
    // With less it is only slower.
    let _ = set_socket_send_buffer_size(&socket, ROOM_BYTES);
    // Where what was sent waits on the side of its reader.
    #[cfg(target_vendor = "apple")]
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, ROOM_BYTES);
}
