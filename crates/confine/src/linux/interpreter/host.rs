//! The host's side of a program's start.
//!
//! In: a [`Program`] and its standard input. Out: its working folder, open, to put files into; then the word to start. All
//! calls block, and end when the launcher ends.

use super::spec::{GO, MOST_BYTES, Program, Reply};
use crate::Confinement;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
    pipe::{PipeFlags, pipe_with},
    process::{PidfdFlags, getpid, pidfd_open},
};
use std::{
    fs,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

/// How long a launcher may take for its part.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of the first descriptor that a program inherits beside its streams.
pub const FIRST_INHERITED: i32 = 3;

/// The most of them.
pub const MOST_INHERITED: usize = 3;

/// The most descriptors in one message: those of the launcher, then those of the program.
const MOST_DESCRIPTORS: usize = 3 + MOST_INHERITED;

/// A connection to a launcher.
#[derive(Debug)]
pub struct Connection {
    socket: UnixStream,
    /// The end of the launcher's lifeline which it ends with.
    lifeline: OwnedFd,
    launchers_lifeline: Option<OwnedFd>,
}

/// A program that waits for the word to start.
#[derive(Debug)]
pub struct Prepared {
    /// The confinement that it has.
    pub confinement: Confinement,
    /// Whether its memory is counted for all of its processes together.
    pub in_group: bool,
    /// Its working folder, open. It is there for as long as this is open.
    pub work: OwnedFd,
    /// The first of its processes. When it has ended, there is none left.
    pub init: OwnedFd,
    /// The number of the program's own process, where the system tells it.
    pub process_id: Option<u32>,
}

/// A program that did not start.
#[derive(Debug)]
pub enum NotStarted {
    /// The launcher ended, or is of another version.
    Launcher(io::Error),
    /// The system cannot start the program.
    Program(io::Error),
    /// Its files cannot be made.
    Files(io::Error),
    /// The system does not give it a root or processes of its own. Without these none is started.
    Unconfined(Confinement),
}

impl Connection {
    /// A connection, and the launcher's standard input.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new() -> io::Result<(Self, OwnedFd)> {
        let (socket, launchers) = UnixStream::pair()?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let (launchers_lifeline, lifeline) = pipe_with(PipeFlags::CLOEXEC)?;
        let launchers_lifeline = Some(launchers_lifeline);
        Ok((Self { socket, lifeline, launchers_lifeline }, launchers.into()))
    }

    /// Sends the program and its standard input, and waits until it is confined. It inherits at most [`MOST_INHERITED`]
    /// further descriptors, from [`FIRST_INHERITED`] on.
    ///
    /// # Errors
    /// The launcher ended, or the program cannot be confined at all.
    pub fn prepare(
        &mut self,
        program: &Program,
        stdin: BorrowedFd<'_>,
        inherited: &[BorrowedFd<'_>],
    ) -> Result<Prepared, NotStarted> {
        let bytes = program.to_bytes();
        if bytes.len() > MOST_BYTES as usize {
            return Err(NotStarted::Program(io::ErrorKind::ArgumentListTooLong.into()));
        }
        self.send(&bytes, stdin, inherited).map_err(NotStarted::Launcher)?;
        let (reply, descriptors) = self.receive().map_err(NotStarted::Launcher)?;
        let mut descriptors = descriptors.into_iter();
        match (reply, descriptors.next(), descriptors.next()) {
            (Some(Reply::Ready(confinement, in_group)), Some(work), Some(init)) => {
                let process_id = descriptors.next().and_then(|own| number_of(&own));
                Ok(Prepared { confinement, in_group, work, init, process_id })
            }
            (Some(Reply::Ready(confinement, _)), None, None) => {
                Err(NotStarted::Unconfined(confinement))
            }
            (Some(Reply::Failed(error)), ..) => {
                Err(NotStarted::Program(io::Error::from_raw_os_error(error)))
            }
            (Some(Reply::Unstaged(error)), ..) => {
                Err(NotStarted::Files(io::Error::from_raw_os_error(error)))
            }
            _ => Err(NotStarted::Launcher(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Has the program start. Returns the launcher's lifeline: if it is closed, all processes end.
    ///
    /// # Errors
    /// The system cannot start the program.
    pub fn start(mut self) -> Result<OwnedFd, NotStarted> {
        self.socket.write_all(&[GO]).map_err(NotStarted::Launcher)?;
        let mut reply = [0; Reply::BYTES];
        // The program's end of the socket is closed when it becomes the interpreter.
        match self.socket.read_exact(&mut reply) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(self.lifeline),
            Err(error) => Err(NotStarted::Launcher(error)),
            Ok(()) => match Reply::from_bytes(reply) {
                Some(Reply::Failed(error)) => {
                    Err(NotStarted::Program(io::Error::from_raw_os_error(error)))
                }
                _ => Err(NotStarted::Launcher(io::ErrorKind::InvalidData.into())),
            },
        }
    }

    fn send(
        &mut self,
        bytes: &[u8],
        stdin: BorrowedFd<'_>,
        inherited: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?.to_le_bytes();
        let Some(lifeline) = self.launchers_lifeline.take() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // A fork of this process keeps the lifeline open, but not the process.
        let host = pidfd_open(getpid(), PidfdFlags::empty())?;
        let mut descriptors = vec![stdin, lifeline.as_fd(), host.as_fd()];
        descriptors.extend(inherited);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !rights.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = SendFlags::NOSIGNAL;
        let sent = sendmsg(&self.socket, &[IoSlice::new(&length)], &mut rights, flags)?;
        if sent != length.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.socket.write_all(bytes)
    }

    fn receive(&mut self) -> io::Result<(Option<Reply>, Vec<OwnedFd>)> {
        let mut bytes = [0; Reply::BYTES];
        let (count, descriptors) = receive(&self.socket, &mut bytes)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.socket.read_exact(&mut bytes[count..])?;
        Ok((Reply::from_bytes(bytes), descriptors))
    }
}

impl Prepared {
    /// Waits until no process of the program is left, at most that long. Whether none is.
    #[must_use]
    pub fn wait(&self, most: Duration) -> bool {
        let most = Timespec::try_from(most).ok();
        let mut watched = [PollFd::new(&self.init, PollFlags::IN)];
        poll(&mut watched, most.as_ref()).is_ok_and(|ready| ready > 0)
    }
}

/// The number that an open process has here.
fn number_of(process: &OwnedFd) -> Option<u32> {
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd())).ok()?;
    let number = told.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    // 0 and less stand for one that has ended, or that is not seen from here.
    number.trim().parse().ok().filter(|number| *number > 0)
}

/// Receives bytes and the descriptors that came with them.
pub(super) fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(bytes)];
    let received = loop {
        match recvmsg(&socket, &mut into, &mut rights, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    let descriptors = rights.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok((received.bytes, descriptors.flatten().collect()))
}
