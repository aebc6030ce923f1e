//! Packets on a stream, for systems without sockets that keep them apart: all are of one size.
//!
//! A packet that is there in part stays in the [`Inbox`]. The system hands out a descriptor with the first
//! byte that was sent beside it, and no bytes of another packet are asked for with that. Some systems lose a
//! descriptor that is closed where it came from before it was received, so who gets one says so.

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

/// What was received in part.
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

/// Sent in part, which systems do not do with so few bytes: nobody can make anything of what follows, so this
/// is the end.
pub(super) fn broken(control: impl AsFd) -> Errno {
    // What is gone needs no closing.
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
                // There is no number for the descriptor, which is lost; the packet may be there still.
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
