//! Pairs of the system's own.

use std::{io, os::unix::net::UnixStream};

use rustix::{
    buffer::Buffer,
    event::PollFlags,
    fd::AsFd,
    io::Errno,
    net::{RecvFlags, SendFlags, recv, sockopt::set_socket_send_buffer_size},
};

/// A socket of which bytes are read and written, and nothing else.
pub(crate) type Stream = UnixStream;

/// What is asked of the system, which gives what it allows everybody if that is less.
const ROOM_BYTES: usize = 512 << 10;

/// What of it is sent at once.
pub(crate) fn at_once(bytes: &[u8]) -> &[u8] {
    bytes
}

/// Two that are each other's other end, the host's first.
pub(crate) fn pair() -> io::Result<(Stream, Stream)> {
    UnixStream::pair()
}

/// Reads what there is, of a worker's own socket: it waits until that is something, or not at all.
pub(crate) fn read<Into: Buffer<u8, Output = usize>>(
    socket: impl AsFd,
    buffer: Into,
    waits: bool,
) -> Result<usize, Errno> {
    let flags = if waits { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
    recv(socket, buffer, flags).map(|(read, _)| read)
}

/// Reads what there is, of a socket that was told [`no_wait`].
pub(crate) fn read_hosts<Into: Buffer<u8, Output = usize>>(
    socket: impl AsFd,
    buffer: Into,
) -> Result<usize, Errno> {
    read(socket, buffer, false)
}

/// Whether a write is for later.
pub(crate) fn is_full(error: Errno) -> bool {
    error == Errno::AGAIN
}

/// How poll tells that the other side writes no more.
#[cfg(target_os = "linux")]
pub(crate) const CLOSING: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
pub(crate) const CLOSING: PollFlags = PollFlags::HUP;

/// What poll is asked for that.
pub(crate) const ASKS_CLOSING: PollFlags = CLOSING;

/// For each write.
#[cfg(not(target_vendor = "apple"))]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// For each write of a host.
#[cfg(all(target_os = "linux", not(isolane_portable)))]
pub(crate) const NO_WAIT: SendFlags = SendFlags::DONTWAIT;
#[cfg(any(isolane_portable, not(target_os = "linux")))]
pub(crate) const NO_WAIT: SendFlags = SendFlags::empty();

/// For the host's end of a socket; the other end still waits.
#[cfg(all(target_os = "linux", not(isolane_portable)))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(crate) fn no_wait(_socket: impl AsFd) -> Result<(), Errno> {
    Ok(())
}

/// For the host's end of a socket; the other end still waits. Not every system heeds the flag of a write.
#[cfg(any(isolane_portable, not(target_os = "linux")))]
pub(crate) fn no_wait(socket: impl AsFd) -> Result<(), Errno> {
    rustix::io::ioctl_fionbio(socket, true)
}

/// For the socket.
#[cfg(not(target_vendor = "apple"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(crate) fn no_signal(_socket: impl AsFd) -> Result<(), Errno> {
    Ok(())
}

#[cfg(target_vendor = "apple")]
pub(crate) fn no_signal(socket: impl AsFd) -> Result<(), Errno> {
    rustix::net::sockopt::set_socket_nosigpipe(socket, true)
}

/// Has what is sent by it wait for its reader, as much as the system allows.
pub(crate) fn make_room(socket: impl AsFd) {
    // With less it is only slower.
    let _ = set_socket_send_buffer_size(&socket, ROOM_BYTES);
    // Where what was sent waits on the side of its reader.
    #[cfg(target_vendor = "apple")]
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, ROOM_BYTES);
}
