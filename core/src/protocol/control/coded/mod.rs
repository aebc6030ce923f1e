//! Commands and events as packets on a socket.
//!
//! Either the socket keeps packets apart (`packets`) or it does not (`stream`). The event of a new worker carries a
//! descriptor.

#[cfg(all(target_os = "linux", not(isolane_portable)))]
mod packets;
#[cfg(any(test, isolane_portable, not(target_os = "linux")))]
mod stream;

use std::{io::IoSlice, mem::MaybeUninit};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, SendAncillaryBuffer, SendAncillaryMessage,
        SendFlags, sendmsg,
    },
};

#[cfg(all(target_os = "linux", not(isolane_portable)))]
pub(crate) use self::packets::{Inbox, pair};
#[cfg(all(target_os = "linux", not(isolane_portable)))]
use self::packets::{broken, receive};
#[cfg(any(isolane_portable, not(target_os = "linux")))]
pub(crate) use self::stream::{Inbox, pair};
#[cfg(any(isolane_portable, not(target_os = "linux")))]
use self::stream::{broken, receive};

use isolane_confine::{Confinement, Ended};

use super::{Untold, ZygoteCommand, ZygoteEvent};
use crate::protocol::sockets::{NO_SIGNAL, NO_WAIT};

/// The host's end.
pub(crate) type Control = OwnedFd;

/// Whether the receiver of a descriptor acknowledges it, so that the sender keeps it open until then.
pub(crate) const ACKNOWLEDGES: bool = cfg!(any(isolane_portable, not(target_os = "linux")));

/// The size of a packet.
const BYTES: usize = 16;

const START: u8 = 1;
const KILL: u8 = 2;
const DEMOTE: u8 = 3;
const RECEIVED: u8 = 4;

const HELLO: u8 = 1;
const BORN: u8 = 2;
const ENDED: u8 = 3;
const REFUSED: u8 = 4;

impl ZygoteCommand {
    /// Returns without waiting if the socket is full.
    pub(crate) fn send(self, control: impl AsFd) -> Result<(), Untold> {
        let (kind, number) = match self {
            Self::Start(count) => (START, count),
            Self::Kill(worker) => (KILL, worker),
            Self::Demote(worker) => (DEMOTE, worker),
            Self::Received(worker) => (RECEIVED, worker),
        };
        let sent = send(control, &packet(kind, [number, 0, 0]), None, NO_WAIT);
        sent.map_err(|error| match error {
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => Untold::Gone,
            _ => Untold::Full,
        })
    }

    /// The next command; `None` when the host is gone.
    pub(crate) fn receive(control: impl AsFd, inbox: &mut Inbox) -> Result<Option<Self>, Errno> {
        let Some((packet, _)) = receive(control, inbox)? else { return Ok(None) };
        let (kind, [number, ..]) = read(packet);
        match kind {
            START => Ok(Some(Self::Start(number))),
            KILL => Ok(Some(Self::Kill(number))),
            DEMOTE => Ok(Some(Self::Demote(number))),
            RECEIVED => Ok(Some(Self::Received(number))),
            _ => Err(Errno::PROTO),
        }
    }
}

impl ZygoteEvent {
    pub(crate) fn send(&self, control: impl AsFd) -> Result<(), Errno> {
        let (packet, descriptor) = match self {
            Self::Hello { version, confinement } => {
                let items = u32::from(u16::from_le_bytes(confinement.to_bytes()));
                (packet(HELLO, [*version, items, 0]), None)
            }
            Self::Born(worker, socket) => (packet(BORN, [*worker, 0, 0]), Some(socket.as_fd())),
            // A zygote never sends this.
            Self::Lost(worker) => (packet(BORN, [*worker, 0, 0]), None),
            Self::Ended(worker, ended) => {
                let (cause, code) = write_ended(*ended);
                (packet(ENDED, [*worker, cause, code]), None)
            }
            Self::Refused(error) => (packet(REFUSED, [error.cast_unsigned(), 0, 0]), None),
        };
        send(control, &packet, descriptor, SendFlags::empty())
    }

    /// The next event; `None` when the zygote is gone.
    pub(crate) fn receive(control: impl AsFd, inbox: &mut Inbox) -> Result<Option<Self>, Errno> {
        let Some((packet, socket)) = receive(control, inbox)? else { return Ok(None) };
        let (kind, [first, second, third]) = read(packet);
        let told = match (kind, socket) {
            (HELLO, _) => {
                let items = u16::try_from(second).map_err(|_| Errno::PROTO)?;
                let confinement = Confinement::from_bytes(items.to_le_bytes());
                Self::Hello { version: first, confinement: confinement.ok_or(Errno::PROTO)? }
            }
            (BORN, Some(socket)) => Self::Born(first, socket),
            (BORN, None) => Self::Lost(first),
            (ENDED, _) => Self::Ended(first, read_ended(second, third).ok_or(Errno::PROTO)?),
            (REFUSED, _) => Self::Refused(first.cast_signed()),
            _ => return Err(Errno::PROTO),
        };
        Ok(Some(told))
    }
}

fn write_ended(ended: Ended) -> (u32, u32) {
    match ended {
        Ended::Exited(code) => (0, code.cast_unsigned()),
        Ended::Memory => (1, 0),
        Ended::CpuTime => (2, 0),
        Ended::ForbiddenCall => (3, 0),
        Ended::Killed => (4, 0),
        Ended::Crashed(signal) => (5, signal.cast_unsigned()),
    }
}

fn read_ended(cause: u32, code: u32) -> Option<Ended> {
    Some(match cause {
        0 => Ended::Exited(code.cast_signed()),
        1 => Ended::Memory,
        2 => Ended::CpuTime,
        3 => Ended::ForbiddenCall,
        4 => Ended::Killed,
        5 => Ended::Crashed(code.cast_signed()),
        _ => return None,
    })
}

fn packet(kind: u8, numbers: [u32; 3]) -> [u8; BYTES] {
    let mut packet = [0; BYTES];
    packet[0] = kind;
    for (place, number) in packet[4..].chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    packet
}

fn send(
    control: impl AsFd,
    packet: &[u8; BYTES],
    descriptor: Option<BorrowedFd<'_>>,
    flags: SendFlags,
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let flags = flags | NO_SIGNAL;
    loop {
        match sendmsg(&control, &[IoSlice::new(packet)], &mut beside, flags) {
            Err(Errno::INTR) => {}
            Ok(BYTES) => return Ok(()),
            Ok(_) => return Err(broken(control)),
            Err(error) => return Err(error),
        }
    }
}

/// A received packet with its descriptor.
type Packet = ([u8; BYTES], Option<OwnedFd>);

fn read(packet: [u8; BYTES]) -> (u8, [u32; 3]) {
    let mut numbers = [0; 3];
    for (number, place) in numbers.iter_mut().zip(packet[4..].chunks_exact(4)) {
        *number = place.try_into().map_or(0, u32::from_le_bytes);
    }
    (packet[0], numbers)
}

/// The received descriptor, if there is one.
fn descriptor(beside: &mut RecvAncillaryBuffer<'_>) -> Option<OwnedFd> {
    beside.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
