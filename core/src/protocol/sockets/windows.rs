//! Socket pairs over the loopback, the only kind of which the system can wait for many at once.

use std::{
    io,
    net::{Ipv4Addr, TcpListener, TcpStream},
    time::Duration,
};

use rustix::{
    buffer::Buffer,
    event::{PollFd, PollFlags, Timespec, poll},
    fd::AsSocket,
    io::Errno,
    net::{
        RecvFlags, SendFlags, recv,
        sockopt::{set_socket_linger, set_socket_send_buffer_size},
    },
};

/// The requested buffer size.
const ROOM_BYTES: usize = 512 << 10;

/// The most that one write sends; the system takes all of it or nothing. More would wait uncounted.
const MOST_AT_ONCE: usize = 64 << 10;

/// The number of strangers' connections to refuse before ours arrives, and the time limit.
const STRANGERS: usize = 64;
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// A socket for bytes in both directions.
pub(crate) type Stream = TcpStream;

/// The flag by which poll reports that the other side writes no more.
pub(crate) const CLOSING: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

/// The flag that asks poll for that: none, since poll always reports it.
pub(crate) const ASKS_CLOSING: PollFlags = PollFlags::empty();

/// Flags of each write.
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// Flags of each write of a host.
pub(crate) const NO_WAIT: SendFlags = SendFlags::empty();

/// A connected pair, the host's end first. Other processes of this machine may connect while we listen; the address
/// identifies ours.
pub(crate) fn pair() -> io::Result<(Stream, Stream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let wanted = one.local_addr()?;
    for _ in 0..STRANGERS {
        if poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&PATIENCE))? == 0 {
            break;
        }
        let (other, from) = listener.accept()?;
        if from == wanted {
            one.set_nodelay(true)?;
            other.set_nodelay(true)?;
            // Closing then takes effect at once and frees the port.
            set_socket_linger(&one, Some(Duration::ZERO))?;
            return Ok((one, other));
        }
    }
    Err(io::ErrorKind::ConnectionRefused.into())
}

/// Reads available bytes of a worker's own socket. It waits until there are some, or not at all.
pub(crate) fn read<Into: Buffer<u8, Output = usize>>(
    socket: impl AsSocket,
    buffer: Into,
    waits: bool,
) -> Result<usize, Errno> {
    let socket = socket.as_socket();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if !waits && poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&now))? == 0 {
        return Err(Errno::AGAIN);
    }
    recv(socket, buffer, RecvFlags::empty()).map(|(read, _)| read)
}

/// Reads available bytes of a socket after [`no_wait`].
pub(crate) fn read_hosts<Into: Buffer<u8, Output = usize>>(
    socket: impl AsSocket,
    buffer: Into,
) -> Result<usize, Errno> {
    recv(socket, buffer, RecvFlags::empty()).map(|(read, _)| read)
}

/// The part of the bytes that one write sends.
pub(crate) fn at_once(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MOST_AT_ONCE)]
}

/// Whether the write has to be repeated later.
pub(crate) fn is_full(error: Errno) -> bool {
    matches!(error, Errno::AGAIN | Errno::NOBUFS)
}

/// Makes writes at the host's end return at once; the other end still waits.
pub(crate) fn no_wait(socket: impl AsSocket) -> Result<(), Errno> {
    rustix::io::ioctl_fionbio(socket, true)
}

/// Sets the send buffer to the requested size.
pub(crate) fn make_room(socket: impl AsSocket) {
    // With a smaller buffer it is only slower.
    let _ = set_socket_send_buffer_size(socket, ROOM_BYTES);
}
