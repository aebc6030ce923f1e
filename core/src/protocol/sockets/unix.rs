//! Socket pairs of the system.

use std::{io, os::unix::net::UnixStream};

use rustix::{
    buffer::Buffer,
    event::PollFlags,
    fd::AsFd,
    io::Errno,
    net::{RecvFlags, SendFlags, recv, sockopt::set_socket_send_buffer_size},
};

/// A socket for bytes in both directions.
pub(crate) type Stream = UnixStream;

/// The requested buffer size. The system grants its general limit if that is less.
const ROOM_BYTES: usize = 512 << 10;

/// The part of the bytes that one write sends.
pub(crate) fn at_once(bytes: &[u8]) -> &[u8] {
    bytes
}

/// A connected pair, the host's end first.
pub(crate) fn pair() -> io::Result<(Stream, Stream)> {
    UnixStream::pair()
}

/// Reads available bytes of a worker's own socket. It waits until there are some, or not at all.
pub(crate) fn read<Into: Buffer<u8, Output = usize>>(
    socket: impl AsFd,
    buffer: Into,
    waits: bool,
) -> Result<usize, Errno> {
    let flags = if waits { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
    recv(socket, buffer, flags).map(|(read, _)| read)
}

/// Reads available bytes of a socket after [`no_wait`].
pub(crate) fn read_hosts<Into: Buffer<u8, Output = usize>>(
    socket: impl AsFd,
    buffer: Into,
) -> Result<usize, Errno> {
    read(socket, buffer, false)
}

/// Whether the write has to be repeated later.
pub(crate) fn is_full(error: Errno) -> bool {
    error == Errno::AGAIN
}

/// The flag by which poll reports that the other side writes no more.
#[cfg(target_os = "linux")]
pub(crate) const CLOSING: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
pub(crate) const CLOSING: PollFlags = PollFlags::HUP;

/// The flag that asks poll for that.
pub(crate) const ASKS_CLOSING: PollFlags = CLOSING;

/// Flags of each write.
#[cfg(not(target_vendor = "apple"))]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// Flags of each write of a host.
#[cfg(all(target_os = "linux", not(isolane_portable)))]
pub(crate) const NO_WAIT: SendFlags = SendFlags::DONTWAIT;
#[cfg(any(isolane_portable, not(target_os = "linux")))]
pub(crate) const NO_WAIT: SendFlags = SendFlags::empty();

/// Makes writes at the host's end return at once; the other end still waits.
#[cfg(all(target_os = "linux", not(isolane_portable)))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(crate) fn no_wait(_socket: impl AsFd) -> Result<(), Errno> {
    Ok(())
}

/// Makes writes at the host's end return at once; the other end still waits. Some systems ignore the flag of a write.
#[cfg(any(isolane_portable, not(target_os = "linux")))]
pub(crate) fn no_wait(socket: impl AsFd) -> Result<(), Errno> {
    rustix::io::ioctl_fionbio(socket, true)
}

/// Sets the same for the socket.
#[cfg(not(target_vendor = "apple"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
pub(crate) fn no_signal(_socket: impl AsFd) -> Result<(), Errno> {
    Ok(())
}

#[cfg(target_vendor = "apple")]
pub(crate) fn no_signal(socket: impl AsFd) -> Result<(), Errno> {
    rustix::net::sockopt::set_socket_nosigpipe(socket, true)
}

/// Sets the send buffer to the requested size, as far as the system allows.
pub(crate) fn make_room(socket: impl AsFd) {
    // With a smaller buffer it is only slower.
    let _ = set_socket_send_buffer_size(&socket, ROOM_BYTES);
    // On this system sent bytes wait at the reader's side.
    #[cfg(target_vendor = "apple")]
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, ROOM_BYTES);
}
