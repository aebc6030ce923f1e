//! The zygote of the double. Each of its workers is a thread: the host cannot tell, and there is nothing to protect.

use std::{
    env,
    io::IoSlice,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    thread,
};

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};

use super::act;

pub(super) type Stream = UnixStream;

/// Plays the zygote until the host goes.
pub(crate) fn play() {
    let control = std::io::stdin();
    // The host starts it with the version that it needs.
    let version = env::args().nth(1).and_then(|word| word.parse().ok()).expect("a version");
    tell_control(&control, 1, [version, 0, 0], None);
    let mut last = 0;
    let mut packet = [0; 16];
    while let Ok((16, _)) = recv(&control, &mut packet, RecvFlags::empty()) {
        let number = u32::from_le_bytes(packet[4..8].try_into().expect("four bytes"));
        match packet[0] {
            1 => {
                for _ in 0..number {
                    let (hosts, ours) = UnixStream::pair().expect("a pair of sockets");
                    last += 1;
                    tell_control(&control, 2, [last, 0, 0], Some(&hosts.into()));
                    let worker = last;
                    thread::spawn(move || {
                        act(ours);
                        // As the real zygote reports a worker that has ended by itself.
                        tell_control(std::io::stdin(), 3, [worker, 0, 0], None);
                    });
                }
            }
            // A thread cannot be killed: it ends when nobody listens.
            2 => tell_control(&control, 3, [number, 4, 0], None),
            _ => {}
        }
    }
}

fn tell_control(control: impl AsFd, kind: u8, numbers: [u32; 3], socket: Option<&OwnedFd>) {
    let mut packet = vec![kind, 0, 0, 0];
    packet.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let sockets: Vec<_> = socket.map(AsFd::as_fd).into_iter().collect();
    if !sockets.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(&sockets));
    }
    // If the host is gone the write fails; every program in Rust ignores the signal of that.
    let _ = sendmsg(control, &[IoSlice::new(&packet)], &mut beside, SendFlags::empty());
}
