//! Packets that the system keeps apart.

use std::{
    io::IoSliceMut,
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvFlags, SocketFlags, SocketType, recvmsg, socketpair,
    },
};

use super::{BYTES, Packet, descriptor};

/// A packet that was received in part. This never happens here.
#[derive(Debug, Default)]
pub(crate) struct Inbox(());

/// The two ends of a control socket, the host's first.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// The error of a packet that was sent in part.
pub(super) fn broken(_control: impl AsFd) -> Errno {
    Errno::PROTO
}

pub(super) fn receive(control: impl AsFd, _inbox: &mut Inbox) -> Result<Option<Packet>, Errno> {
    let mut bytes = [0; BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(control, &mut [IoSliceMut::new(&mut bytes)], &mut beside, flags)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.bytes != BYTES {
        return Err(Errno::PROTO);
    }
    Ok(Some((bytes, descriptor(&mut beside))))
}
