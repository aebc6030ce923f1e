//! One worker: on this system the host starts a program for each.
#![expect(unsafe_code, reason = "makes a socket of what the host sent")]

use std::{
    env,
    fs::File,
    io::{Read, Write},
    mem,
    net::TcpStream,
    os::windows::io::{FromRawHandle, FromRawSocket},
    ptr,
};

use windows_sys::Win32::Networking::WinSock::{
    FROM_PROTOCOL_INFO, WSADATA, WSAPROTOCOL_INFOW, WSASocketW, WSAStartup,
};

use super::act;

pub(super) type Stream = TcpStream;

/// A confinement without any item.
const UNCONFINED: [u8; 2] = [0, 0];

/// Plays a worker until the host goes.
pub(crate) fn play() {
    let words: Vec<String> = env::args().collect();
    let pipe: usize = words[2].parse().expect("a number");
    let mut host = received(pipe);
    if words.last().is_some_and(|word| word == "trial") {
        // The host starts it with the version that it needs.
        let version: u32 = words[1].parse().expect("a version");
        let hello = [&version.to_le_bytes()[..], &UNCONFINED].concat();
        host.write_all(&hello).expect("the host hears it");
        let _ = host.read_to_end(&mut Vec::new());
    } else {
        act(host);
    }
}

/// The socket that came through that pipe.
fn received(pipe: usize) -> TcpStream {
    let mut description = [0; size_of::<WSAPROTOCOL_INFOW>()];
    // SAFETY: a handle that this process inherited; numbers, all of whose values are valid; a socket that is
    // nobody else's.
    unsafe {
        File::from_raw_handle(ptr::with_exposed_provenance_mut(pipe))
            .read_exact(&mut description)
            .expect("a description");
        let mut told: WSADATA = mem::zeroed();
        assert_eq!(WSAStartup(0x0202, &raw mut told), 0);
        let description: WSAPROTOCOL_INFOW = mem::transmute(description);
        let any = FROM_PROTOCOL_INFO;
        let socket = WSASocketW(any, any, any, &raw const description, 0, 0);
        TcpStream::from_raw_socket(u64::try_from(socket).expect("a socket"))
    }
}
