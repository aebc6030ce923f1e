//! Pairs over the loopback: of nothing else can be asked of many at once whether it can be read.

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

/// What is asked of the system.
const ROOM_BYTES: usize = 512 << 10;

/// What is sent at once, of which the system takes all or nothing. More would wait where nothing is counted.
const MOST_AT_ONCE: usize = 64 << 10;

/// How many that nobody called may be sent away before the one that was, and how long it has.
const STRANGERS: usize = 64;
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// A socket of which bytes are read and written, and nothing else.
pub(crate) type Stream = TcpStream;

/// How poll tells that the other side writes no more.
pub(crate) const CLOSING: PollFlags = PollFlags::HUP.union(PollFlags::ERR);

/// What poll is asked for that: nothing, it is told in any case.
pub(crate) const ASKS_CLOSING: PollFlags = PollFlags::empty();

/// For each write.
pub(crate) const NO_SIGNAL: SendFlags = SendFlags::empty();

/// For each write of a host.
pub(crate) const NO_WAIT: SendFlags = SendFlags::empty();

/// Two that are each other's other end, the host's first. Others on this machine may call while one is listened for: who it is
/// shows in the address.
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
            // Who closes it closes it at once, and its number can be another's.
            set_socket_linger(&one, Some(Duration::ZERO))?;
            return Ok((one, other));
        }
    }
    Err(io::ErrorKind::ConnectionRefused.into())
}

/// Reads what there is, of a worker's own socket: it waits until that is something, or not at all.
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

/// Reads what there is, of a socket that was told [`no_wait`].
pub(crate) fn read_hosts<Into: Buffer<u8, Output = usize>>(
    socket: impl AsSocket,
    buffer: Into,
) -> Result<usize, Errno> {
    recv(socket, buffer, RecvFlags::empty()).map(|(read, _)| read)
}

/// What of it is sent at once.
pub(crate) fn at_once(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MOST_AT_ONCE)]
}

/// Whether a write is for later.
pub(crate) fn is_full(error: Errno) -> bool {
    matches!(error, Errno::AGAIN | Errno::NOBUFS)
}

/// For the host's end of a socket; the other end still waits.
pub(crate) fn no_wait(socket: impl AsSocket) -> Result<(), Errno> {
    rustix::io::ioctl_fionbio(socket, true)
}

/// Has what is sent by it wait for its reader.
pub(crate) fn make_room(socket: impl AsSocket) {
    // With less it is only slower.
    let _ = set_socket_send_buffer_size(socket, ROOM_BYTES);
}
