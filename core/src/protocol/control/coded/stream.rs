//! Packets on a stream, for systems whose sockets do not keep them apart. All packets have one size.
//!
//! A packet that arrived in part stays in the [`Inbox`]. The system delivers a descriptor with the first byte that was
//! sent beside it, so one read never asks for bytes of two packets. Some systems lose a descriptor that its sender
//! closes before it was received, so the receiver acknowledges it.

use std::{
    io::IoSliceMut,
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    io::{Errno, FdFlags, fcntl_setfd},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvFlags, Shutdown, SocketFlags, SocketType, recvmsg,
        shutdown, socketpair,
    },
};

use super::{BYTES, Packet, descriptor};
use crate::protocol::sockets::{no_signal, no_wait};

/// The part of a packet that was received.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: [u8; BYTES],
    filled: usize,
    socket: Option<OwnedFd>,
}

/// The two ends of a control socket, the host's first.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (one, other) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)?;
    for end in [&one, &other] {
        fcntl_setfd(end, FdFlags::CLOEXEC)?;
        no_signal(end)?;
    }
    no_wait(&one)?;
    Ok((one, other))
}

/// Ends the connection after a packet that was sent in part: the other side could not read the packets after it.
/// Systems do not split so few bytes.
pub(super) fn broken(control: impl AsFd) -> Errno {
    // A socket that is gone needs no shutdown.
    let _ = shutdown(control, Shutdown::Both);
    Errno::PIPE
}

pub(super) fn receive(control: impl AsFd, inbox: &mut Inbox) -> Result<Option<Packet>, Errno> {
    while inbox.filled < BYTES {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let rest = &mut inbox.bytes[inbox.filled..];
        let received =
            match recvmsg(&control, &mut [IoSliceMut::new(rest)], &mut beside, RecvFlags::DONTWAIT)
            {
                // No number is free for the descriptor, which is lost. The packet may still be there.
                Err(Errno::MFILE | Errno::NFILE | Errno::MSGSIZE) => return Err(Errno::INTR),
                received => received?,
            };
        if let Some(socket) = descriptor(&mut beside) {
            fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
            inbox.socket = Some(socket);
        }
        if received.bytes == 0 {
            return Ok(None);
        }
        inbox.filled += received.bytes;
    }
    inbox.filled = 0;
    Ok(Some((inbox.bytes, inbox.socket.take())))
}
