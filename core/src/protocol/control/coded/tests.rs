//! Commands and events on the socket, whole and in pieces.

use std::{io::IoSlice, os::unix::net::UnixStream};

use rustix::{
    io::{FdFlags, fcntl_getfd, write},
    net::sendmsg,
};

use super::*;

const KEPT: Confinement = Confinement::ALL;

/// The next event as text. A socket that comes with it is the other end of `socket`.
fn next(control: &OwnedFd, inbox: &mut Inbox, socket: &OwnedFd) -> String {
    match ZygoteEvent::receive(control, inbox) {
        Ok(Some(ZygoteEvent::Born(worker, received))) => {
            assert!(fcntl_getfd(&received).expect("it is open").contains(FdFlags::CLOEXEC));
            write(&received, b"x").expect("room");
            rustix::io::read(socket, &mut [0]).expect("what was written to its other end");
            format!("Born({worker})")
        }
        told => format!("{told:?}"),
    }
}

#[test]
fn orders_and_news_come_as_they_were_sent() {
    let (hosts, zygotes) = pair().expect("a pair of sockets");
    let (mine, given) = UnixStream::pair().expect("a pair of sockets");
    let mine = OwnedFd::from(mine);
    for end in [&hosts, &zygotes] {
        assert!(fcntl_getfd(end).expect("it is open").contains(FdFlags::CLOEXEC));
    }
    let mut inbox = Inbox::default();
    let orders = [
        ZygoteCommand::Start(1),
        ZygoteCommand::Kill(u32::MAX),
        ZygoteCommand::Demote(0),
        ZygoteCommand::Received(7),
    ];
    assert_eq!(ZygoteCommand::receive(&zygotes, &mut inbox), Err(Errno::AGAIN));
    for order in orders {
        order.send(&hosts).expect("room");
    }
    for order in orders {
        assert_eq!(ZygoteCommand::receive(&zygotes, &mut inbox), Ok(Some(order)));
    }

    let mut inbox = Inbox::default();
    let born = ZygoteEvent::Born(3, given.into());
    let ended = ZygoteEvent::Ended(3, Ended::Crashed(11));
    let news = [
        ZygoteEvent::Hello { version: 9, confinement: KEPT },
        born,
        ended,
        ZygoteEvent::Lost(4),
        ZygoteEvent::Refused(-1),
    ];
    for news in &news {
        news.send(&zygotes).expect("room");
    }
    let told: Vec<String> = news.iter().map(|_| next(&hosts, &mut inbox, &mine)).collect();
    let hello = format!("Ok(Some(Hello {{ version: 9, confinement: {KEPT:?} }}))");
    assert_eq!(
        told,
        [
            &hello,
            "Born(3)",
            "Ok(Some(Ended(3, Crashed(11))))",
            "Ok(Some(Lost(4)))",
            "Ok(Some(Refused(-1)))"
        ]
    );
    assert_eq!(next(&hosts, &mut inbox, &mine), format!("{:?}", Err::<(), _>(Errno::AGAIN)));
    drop(zygotes);
    assert_eq!(next(&hosts, &mut inbox, &mine), "Ok(None)");
}

#[test]
fn what_nobody_sends_is_refused() {
    let (hosts, zygotes) = pair().expect("a pair of sockets");
    for bytes in [packet(0, [0; 3]), packet(9, [0; 3]), packet(HELLO, [1, u32::MAX, 0])] {
        send(&zygotes, &bytes, None, SendFlags::empty()).expect("room");
        assert_eq!(ZygoteEvent::receive(&hosts, &mut Inbox::default()).err(), Some(Errno::PROTO));
    }
    send(&zygotes, &packet(ENDED, [1, 6, 0]), None, SendFlags::empty()).expect("room");
    assert_eq!(ZygoteEvent::receive(&hosts, &mut Inbox::default()).err(), Some(Errno::PROTO));
}

#[test]
fn a_socket_that_is_full_takes_all_of_an_order_or_nothing() {
    let (hosts, zygotes) = pair().expect("a pair of sockets");
    let mut sent = 0;
    let refused = loop {
        match ZygoteCommand::Kill(sent).send(&hosts) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, Untold::Full);
    let mut inbox = Inbox::default();
    for worker in 0..sent {
        assert_eq!(
            ZygoteCommand::receive(&zygotes, &mut inbox),
            Ok(Some(ZygoteCommand::Kill(worker)))
        );
    }
    assert_eq!(ZygoteCommand::receive(&zygotes, &mut inbox), Err(Errno::AGAIN));
}

/// Sends some bytes, and a descriptor beside them.
fn send_piece(control: &OwnedFd, bytes: &[u8], beside: Option<&OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<_> = beside.into_iter().map(AsFd::as_fd).collect();
    if !descriptors.is_empty() {
        message.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let sent = sendmsg(control, &[IoSlice::new(bytes)], &mut message, NO_SIGNAL);
    assert_eq!(sent, Ok(bytes.len()));
}

#[test]
fn a_stream_in_pieces_is_put_together() {
    let (hosts, zygotes) = stream::pair().expect("a pair of sockets");
    let (_mine, given) = UnixStream::pair().expect("a pair of sockets");
    let given = OwnedFd::from(given);
    let [ended, born, hello] =
        [packet(ENDED, [1, 0, 0]), packet(BORN, [2, 0, 0]), packet(HELLO, [1, 0, 0])];
    for cut in 1..BYTES {
        let mut inbox = stream::Inbox::default();
        let mut receive = || stream::receive(&hosts, &mut inbox);
        // The end of one packet and the beginning of the next in one piece, with a descriptor between them.
        send_piece(&zygotes, &ended[..cut], None);
        assert_eq!(receive().map(|_| ()), Err(Errno::AGAIN));
        send_piece(&zygotes, &ended[cut..], None);
        send_piece(&zygotes, &born[..cut], Some(&given));
        let (packet, socket) = receive().expect("it is there").expect("it is open");
        assert_eq!((packet, socket.is_some()), (ended, false), "{cut}");
        assert_eq!(receive().map(|_| ()), Err(Errno::AGAIN));
        send_piece(&zygotes, &[&born[cut..], &hello[..cut]].concat(), None);
        let (packet, socket) = receive().expect("it is there").expect("it is open");
        assert_eq!(packet, born, "{cut}");
        let socket = socket.expect("it came with the first piece");
        assert!(fcntl_getfd(&socket).expect("it is open").contains(FdFlags::CLOEXEC));
        assert_eq!(receive().map(|_| ()), Err(Errno::AGAIN));
        send_piece(&zygotes, &hello[cut..], None);
        let (packet, socket) = receive().expect("it is there").expect("it is open");
        assert_eq!((packet, socket.is_some()), (hello, false), "{cut}");
    }
}

#[test]
fn a_stream_that_ends_has_ended_amid_a_packet_too() {
    for sent in [0, 5] {
        let (hosts, zygotes) = stream::pair().expect("a pair of sockets");
        send_piece(&zygotes, &packet(HELLO, [0; 3])[..sent], None);
        drop(zygotes);
        let mut inbox = stream::Inbox::default();
        assert!(stream::receive(&hosts, &mut inbox).is_ok_and(|received| received.is_none()));
    }
}

#[test]
fn a_stream_that_took_a_part_is_closed() {
    let (hosts, zygotes) = stream::pair().expect("a pair of sockets");
    assert_eq!(stream::broken(&zygotes), Errno::PIPE);
    assert!(stream::receive(&hosts, &mut stream::Inbox::default()).is_ok_and(|it| it.is_none()));
    assert_eq!(ZygoteCommand::Start(1).send(&hosts), Err(Untold::Gone));
}
