//! The transfer of a socket and a job into another process.
//!
//! In: both, and a process that does not run yet. Out: both in that process. A process cannot inherit a socket: it
//! makes its own from a description that the system gives for it alone, which comes through a pipe. That pipe is all
//! that it inherits, and so the most that any other process can inherit that is started at the same time.
#![expect(unsafe_code, reason = "calls the system")]

use std::{
    io::{self, PipeReader, PipeWriter, Read, Write},
    mem,
    net::TcpStream,
    os::windows::io::{AsRawHandle, AsRawSocket, FromRawSocket},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use windows_sys::Win32::Networking::WinSock::{
    FROM_PROTOCOL_INFO, INVALID_SOCKET, WSA_FLAG_NO_HANDLE_INHERIT, WSA_FLAG_OVERLAPPED, WSADATA,
    WSADuplicateSocketW, WSAPROTOCOL_INFOW, WSASocketW, WSAStartup,
};

use super::handles::{Owned, inheritable};

/// The version of the interface of sockets.
const VERSION: u16 = 0x0202;

const DESCRIPTION_BYTES: usize = size_of::<WSAPROTOCOL_INFOW>();

const NUMBER_BYTES: usize = size_of::<usize>();

/// The writing end of the pipe for them.
pub(super) struct Parcel(PipeWriter);

/// The end of the pipe that a process is to inherit, and the end that sends to it.
pub(super) fn parcel() -> io::Result<(Owned, Parcel)> {
    let (theirs, ours) = io::pipe()?;
    Ok((inheritable(theirs.as_raw_handle())?, Parcel(ours)))
}

impl Parcel {
    /// Sends a socket to that process, and the number of a handle that it has. Does not wait for it.
    pub(super) fn send(
        mut self,
        socket: &TcpStream,
        process: u32,
        handle: usize,
    ) -> io::Result<()> {
        let number = usize::try_from(socket.as_raw_socket()).map_err(io::Error::other)?;
        // SAFETY: a socket, and a place for its description.
        let description = unsafe {
            let mut told: WSAPROTOCOL_INFOW = mem::zeroed();
            if WSADuplicateSocketW(number, process, &raw mut told) != 0 {
                return Err(io::Error::last_os_error());
            }
            mem::transmute::<WSAPROTOCOL_INFOW, [u8; DESCRIPTION_BYTES]>(told)
        };
        self.0.write_all(&description)?;
        self.0.write_all(&handle.to_le_bytes())
    }
}

/// The socket that was sent to this process, and the handle.
pub(super) fn received(pipe: Owned) -> Option<(TcpStream, Owned)> {
    let (mut description, mut handle) = ([0; DESCRIPTION_BYTES], [0; NUMBER_BYTES]);
    let mut pipe = PipeReader::from(pipe.into_inner());
    pipe.read_exact(&mut description).ok()?;
    pipe.read_exact(&mut handle).ok()?;
    let handle = Owned::inherited(usize::from_le_bytes(handle))?;
    // SAFETY: numbers, all of whose values are valid; a place for the version's data; a socket that is nobody else's.
    unsafe {
        let mut told: WSADATA = mem::zeroed();
        if WSAStartup(VERSION, &raw mut told) != 0 {
            return None;
        }
        let description = mem::transmute::<[u8; DESCRIPTION_BYTES], WSAPROTOCOL_INFOW>(description);
        let how = WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT;
        let any = FROM_PROTOCOL_INFO;
        let socket = WSASocketW(any, any, any, &raw const description, 0, how);
        if socket == INVALID_SOCKET {
            return None;
        }
        Some((TcpStream::from_raw_socket(u64::try_from(socket).ok()?), handle))
    }
}

/// Makes the system load the libraries behind the calls on that socket.
pub(super) fn warm(socket: &TcpStream) {
    // The result does not matter for a socket on which nothing was sent.
    let _ = socket.set_nodelay(true);
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&now));
}
