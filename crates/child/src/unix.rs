//! Groups of processes and pipes of Unix.
//!
//! In: a command that is about to start, a process, its pipes. Out: a group that can be killed, the end of the process, and
//! the bytes of its output.

#![expect(
    unsafe_code,
    reason = "a descriptor is registered with tokio, and a process changed before it starts"
)]

use std::{
    io,
    os::{fd::OwnedFd, unix::process::ExitStatusExt as _},
    process::ExitStatus,
};

use rustix::{
    io::{FdFlags, fcntl_setfd, read, retry_on_intr},
    process::{Pid, Signal, kill_process_group},
};
use tokio::{
    net::unix::pipe,
    process::{Child, ChildStderr, ChildStdout, Command},
    task::coop::consume_budget,
};

use crate::{
    at_exit,
    output::Output,
    run::{Ending, MOST_LEFT_BYTES, READ_BYTES},
};

/// The group of a process, which is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Group(Option<Pid>);

impl Group {
    pub(crate) fn prepare(command: &mut Command) {
        command.process_group(0);
        #[cfg(target_os = "linux")]
        end_with_host(command);
    }

    #[expect(clippy::unnecessary_wraps, reason = "other systems can refuse it")]
    pub(crate) fn of(child: &Child) -> io::Result<Self> {
        let group = id(child);
        if let Some(group) = group {
            at_exit::group_began(group);
        }
        Ok(Self(group))
    }

    /// Kills all of the group. The process itself has not been waited for, so the number is still that of its group.
    pub(crate) fn kill(mut self) {
        self.kill_once();
    }

    fn kill_once(&mut self) {
        if let Some(pid) = self.0.take() {
            // From now on the number may become that of another group.
            at_exit::group_ends(pid);
            // Nobody is left of a group that does not exist.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill_once();
    }
}

/// Has the system kill the process when this one ends, however that happens. Children of the process are not killed
/// then. The system takes the end of the thread that starts it for the end of this process; here that thread is the
/// library's own, which lives as long.
#[cfg(target_os = "linux")]
fn end_with_host(command: &mut Command) {
    use rustix::{
        io::Errno,
        process::{getpid, getppid, set_parent_process_death_signal},
    };
    let host = getpid();
    let tie = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The host may have ended before.
        if getppid() == Some(host) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: it makes two system calls, and neither takes a lock nor allocates.
    unsafe { command.pre_exec(tie) };
}

/// Has the process inherit descriptors, under their numbers here. No other process that starts meanwhile does.
pub(crate) fn hand_over(command: &mut Command, descriptors: Vec<OwnedFd>) {
    let keep = move || {
        for descriptor in &descriptors {
            fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: it makes system calls, and neither takes a lock nor allocates.
    unsafe { command.pre_exec(keep) };
}

fn id(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()?).ok()?)
}

/// Waits until a process has ended, and leaves it to be waited for, where the system can do that. Its number stays its own
/// until then.
pub(crate) async fn exited(child: &mut Child) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{PidfdFlags, pidfd_open};
        use tokio::io::unix::AsyncFd;
        let opened = id(child).and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
        // SAFETY: an `OwnedFd` has the same open descriptor for as long as it lives.
        let registered = opened.and_then(|handle| unsafe { AsyncFd::register(handle) }.ok());
        if let Some(handle) = registered
            && handle.readable().await.is_ok()
        {
            return;
        }
    }
    drop(child.wait().await);
}

/// How a process ended by itself.
pub(crate) fn ending_of(status: Option<ExitStatus>) -> Ending {
    match status.and_then(|status| status.signal()) {
        Some(signal) => Ending::Signalled(signal),
        None => Ending::Exited(status.and_then(|status| status.code())),
    }
}

/// A pipe, and what came out of it.
pub(crate) struct Stream {
    /// `None` once its end was seen.
    pipe: Option<pipe::Receiver>,
    pub(crate) output: Output,
}

/// The reading end of a pipe of a process.
pub(crate) trait ReadingEnd {
    /// Itself, no longer registered with tokio.
    fn into_owned_fd(self) -> io::Result<OwnedFd>;
}

impl ReadingEnd for ChildStdout {
    fn into_owned_fd(self) -> io::Result<OwnedFd> {
        Self::into_owned_fd(self)
    }
}

impl ReadingEnd for ChildStderr {
    fn into_owned_fd(self) -> io::Result<OwnedFd> {
        Self::into_owned_fd(self)
    }
}

impl Stream {
    pub(crate) fn new(pipe: Option<impl ReadingEnd>, limit_bytes: usize) -> io::Result<Self> {
        let pipe = pipe.map(ReadingEnd::into_owned_fd).transpose()?;
        let pipe = pipe.map(pipe::Receiver::from_owned_fd).transpose()?;
        Ok(Self { pipe, output: Output::new(limit_bytes) })
    }

    /// Reads to the end.
    pub(crate) async fn read(&mut self, sink: impl Fn(&[u8])) {
        while let Some(pipe) = &self.pipe {
            if pipe.readable().await.is_err() {
                self.pipe = None;
                return;
            }
            self.read_once(&sink);
            // The thread is that of all calls: a program that never stops writing is not to keep it.
            consume_budget().await;
        }
    }

    /// Reads once; nothing if nothing is there.
    fn read_once(&mut self, sink: &impl Fn(&[u8])) {
        let Some(pipe) = &self.pipe else { return };
        let mut bytes = vec![0; READ_BYTES];
        match pipe.try_read(&mut bytes) {
            Ok(count) if count > 0 => self.take(&bytes[..count], sink),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The end, or a pipe that cannot be read.
            Ok(_) | Err(_) => self.pipe = None,
        }
    }

    /// Reads what is there, without waiting for more. The pipe is asked itself, as it may be ahead of what tokio knows.
    #[expect(clippy::unused_async, reason = "other systems wait")]
    pub(crate) async fn take_rest(&mut self, sink: impl Fn(&[u8])) {
        let Some(pipe) = self.pipe.take() else { return };
        let mut bytes = vec![0; READ_BYTES];
        let mut taken = 0;
        while taken < MOST_LEFT_BYTES
            && let Ok(count @ 1..) = retry_on_intr(|| read(&pipe, &mut *bytes))
        {
            taken += count;
            self.take(&bytes[..count], &sink);
        }
    }

    fn take(&mut self, bytes: &[u8], sink: &impl Fn(&[u8])) {
        self.output.push(bytes);
        sink(bytes);
    }
}
