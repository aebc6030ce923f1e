//! The three processes of a program: the launcher, init, and the program itself.
//!
//! In: a socket as descriptor 0, with a [`Program`], its standard input and what else it inherits; output to descriptors 1
//! and 2. Out: an exit code: the program's, or 128 and the number of the signal that ended it.

use super::{
    super::{filter, identity, kernel, landlock, namespaces},
    host::{FIRST_INHERITED, receive},
    limits,
    permitted::{self, Granted, Memory},
    root::{self, Shown},
    spec::{GO, MOST_BYTES, Program, Reply, WORD},
};
use crate::{Confinement, unix::exit};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, fcntl_dupfd_cloexec},
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    pipe::{PipeFlags, pipe_with},
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open, wait,
        waitpid,
    },
};
use std::{
    env::set_current_dir,
    fs::{File, OpenOptions},
    io::{self, IoSlice, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::PathBuf,
    process::Command,
};

/// The exit code of a launcher that cannot do its part.
const FAILED: i32 = 125;

/// The host's socket and, from then on, the standard input of the program.
const SOCKET: i32 = 0;

/// The last of the descriptors that everybody has.
const LAST: i32 = 2;

/// A number beyond those of the descriptors that a program inherits, and of all that it has before it starts.
const APART: i32 = 32;

/// Whether this process was started as a launcher.
#[must_use]
pub fn is_asked() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == WORD)
}

/// The main function of a launcher, which has one thread.
pub fn main() -> ! {
    // The host sees that nothing was reported.
    exit(launch().unwrap_or(FAILED))
}

/// A message of the host.
struct Task {
    program: Program,
    socket: UnixStream,
    stdin: OwnedFd,
    inherited: Vec<OwnedFd>,
    /// Closed when the host wants this to end, and when it ends, unless a fork of it lives on.
    lifeline: OwnedFd,
    host: OwnedFd,
}

fn launch() -> io::Result<i32> {
    // Nothing that the host forgot to close.
    kernel::close_from(LAST + 1);
    let task = Task::receive()?;
    let mut got = Confinement { environment: true, ..Confinement::default() };
    // Root reaches more than nobody, which it becomes.
    let shown = Shown::open(&task.program).ok();
    let group: Vec<File> = task
        .program
        .group
        .iter()
        .filter_map(|path| OpenOptions::new().write(true).open(path).ok())
        .collect();
    let wanted = Confinement { network: !task.program.network, ..Confinement::ALL };
    namespaces::enter_first(wanted, &mut got);
    // Held by the launcher alone: closed when that ends.
    let (launched, launcher) = pipe_with(PipeFlags::CLOEXEC)?;
    let (ended, ending) = pipe_with(PipeFlags::CLOEXEC)?;
    let Some(init) = kernel::fork() else { return Err(io::Error::last_os_error()) };
    if init == 0 {
        drop((launcher, ended, task.lifeline, task.host));
        let Task { program, socket, stdin, inherited, .. } = task;
        let init = Init { program, socket, stdin, inherited, wanted, got, group };
        let code = init.run(shown, &launched).unwrap_or(FAILED);
        // The launcher does not wait until the namespaces are gone.
        let _ = rustix::io::write(&ending, &code.to_le_bytes());
        exit(code);
    }
    let Task { socket, stdin, inherited, lifeline, host, .. } = task;
    drop((launched, ending, socket, stdin, inherited, group, shown));
    // The output ends with the program.
    kernel::close_below(LAST + 1);
    let init = Pid::from_raw(init).ok_or(Errno::CHILD)?;
    let mut watched = [
        PollFd::new(&ended, PollFlags::IN),
        PollFd::new(&lifeline, PollFlags::empty()),
        PollFd::new(&host, PollFlags::IN),
    ];
    while poll(&mut watched, None) == Err(Errno::INTR) {}
    let mut code = [0; 4];
    if !watched[0].revents().is_empty() && rustix::io::read(&ended, &mut code) == Ok(code.len()) {
        return Ok(i32::from_le_bytes(code));
    }
    // The host is gone, or init is. An error means that it has ended.
    let _ = kill_process(init, Signal::KILL);
    let status = loop {
        match waitpid(Some(init), WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    drop(launcher);
    Ok(status.map_or(FAILED, |(_, status)| exit_code(status)))
}

impl Task {
    fn receive() -> io::Result<Self> {
        let mut length = [0; 4];
        let (count, descriptors) = receive(io::stdin(), &mut length)?;
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next();
        let (Some(stdin), Some(lifeline), Some(host), 4) = (next(), next(), next(), count) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let inherited = descriptors.collect();
        let length = u32::from_le_bytes(length);
        if length > MOST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let mut bytes = Vec::new();
        Read::by_ref(&mut socket).take(length.into()).read_to_end(&mut bytes)?;
        let program = Program::from_bytes(&bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { program, socket, stdin, inherited, lifeline, host })
    }
}

/// Process 1 of its namespace: what it leaves behind, the system ends.
struct Init {
    program: Program,
    socket: UnixStream,
    stdin: OwnedFd,
    inherited: Vec<OwnedFd>,
    wanted: Confinement,
    got: Confinement,
    /// The files of a control group, opened for joining.
    group: Vec<File>,
}

impl Init {
    fn run(mut self, shown: Option<Shown>, launched: &OwnedFd) -> io::Result<i32> {
        let got = &mut self.got;
        let mounts = namespaces::enter_others(self.wanted, got);
        got.processes &= kernel::own_process() == 1;
        kernel::name_host();
        kernel::usual_file_modes();
        let shown = shown.or_else(|| Shown::open(&self.program).ok());
        let folders = &self.program.folders;
        got.file_system = mounts && shown.is_some_and(|shown| root::build(&shown, folders).is_ok());
        got.capabilities = identity::drop_all();
        kernel::set_dumpable(false);
        got.privileges = kernel::no_new_privileges();
        // A change of user clears this.
        kernel::die_with_parent();
        let mut launcher = [PollFd::new(launched, PollFlags::empty())];
        if poll(&mut launcher, Some(&Timespec::default())) != Ok(0) {
            return Ok(FAILED);
        }
        let is_apart = got.processes && got.file_system;
        let open_work = || root::open_work(&self.program.folders.work, &self.program.files);
        let work = match is_apart.then(open_work).transpose() {
            Ok(work) => work,
            Err(error) => {
                let error = error.raw_os_error().unwrap_or(libc::EIO);
                send(&self.socket, Reply::Unstaged(error), &[])?;
                return Ok(FAILED);
            }
        };
        let init = pidfd_open(getpid(), PidfdFlags::empty())?;
        let Some(program) = kernel::fork() else { return Err(io::Error::last_os_error()) };
        if program == 0 {
            let error = self.become_program(work.as_ref(), &init);
            exit(error.map_or(FAILED, |()| FAILED));
        }
        drop(self);
        kernel::close_below(LAST + 1);
        let code = wait_for(program)?;
        // Those that it has left. Nobody changes a file after this.
        kernel::kill_all_others();
        while wait(WaitOptions::empty()).is_ok_and(|ended| ended.is_some()) {}
        if let Some(work) = &work {
            root::open_modes(work);
        }
        Ok(code)
    }

    /// Withdraws the last rights, reports, and becomes the program. Returns only if that fails.
    fn become_program(self, work: Option<&OwnedFd>, init: &OwnedFd) -> io::Result<()> {
        let Self { program, mut socket, stdin, inherited, mut got, group, .. } = self;
        kernel::new_session();
        let in_group =
            !group.is_empty() && group.into_iter().all(|mut file| file.write_all(b"0").is_ok());
        kernel::usual_signals();
        kernel::move_to(stdin.as_fd(), SOCKET);
        drop(stdin);
        got.resources = limits::of_program(&program, in_group);
        let writable = program.writable.iter().chain([&program.folders.work]);
        got.landlock = got.privileges
            && got.file_system
            && landlock::restrict_to(writable.map(PathBuf::as_path), program.network);
        let memory = if in_group { Memory::OfGroup } else { Memory::OfEach };
        got.descriptors = true;
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        let granted = Granted { memory, may_fork: program.may_fork, network: program.network };
        let filter = filter::Program::compile(permitted::interpreter(granted));
        got.system_calls = filter.install(kernel::own_process());
        let ready = Reply::Ready(got, in_group);
        match work {
            Some(work) => send(&socket, ready, &[work, init, &own])?,
            // Without a root of its own it would be at home in the caller's.
            None => return send(&socket, ready, &[]),
        }
        let mut word = [0];
        socket.read_exact(&mut word)?;
        if word[0] != GO {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // All others close when the program starts.
        let socket = hand_over(&socket, &inherited)?;
        let mut command = Command::new(&program.path);
        command.args(&program.args).env_clear().envs(program.env);
        if let Some(folder) = &program.start_in {
            // A folder that the program's user may not enter: it starts in its own.
            let _ = set_current_dir(folder);
        }
        let error = command.exec();
        let failed = Reply::Failed(error.raw_os_error().unwrap_or(libc::EIO));
        send(&socket, failed, &[])?;
        Err(error)
    }
}

/// Gives descriptors the numbers under which the program has them, from [`FIRST_INHERITED`] on. Everything else that is open
/// may lose its number; the socket gets another one.
fn hand_over(socket: &UnixStream, inherited: &[OwnedFd]) -> io::Result<UnixStream> {
    let apart = |descriptor: BorrowedFd<'_>| fcntl_dupfd_cloexec(descriptor, APART);
    let socket = apart(socket.as_fd())?.into();
    let copies: Vec<_> =
        inherited.iter().map(|descriptor| apart(descriptor.as_fd())).collect::<Result<_, _>>()?;
    for (copy, number) in copies.iter().zip(FIRST_INHERITED..) {
        if !kernel::move_to(copy.as_fd(), number) {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(socket)
}

fn send(socket: &UnixStream, reply: Reply, descriptors: &[&OwnedFd]) -> io::Result<()> {
    let descriptors: Vec<_> = descriptors.iter().map(|descriptor| descriptor.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        rights.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let bytes = reply.to_bytes();
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut rights, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits for all children until that one ends; its exit code.
fn wait_for(child: i32) -> io::Result<i32> {
    loop {
        match wait(WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(Some((ended, status))) if ended.as_raw_nonzero().get() == child => {
                return Ok(exit_code(status));
            }
            Ok(_) => {}
        }
    }
}

fn exit_code(status: WaitStatus) -> i32 {
    let signal = status.terminating_signal().map(|signal| 128 + signal);
    status.exit_status().or(signal).unwrap_or(FAILED)
}
