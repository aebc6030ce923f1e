//! Child processes of a zygote.
//!
//! In: a fork, or a child to kill. Out: two processes, and how each child ended. For a process of one thread.
#![expect(unsafe_code, reason = "forks, and waits for children and a socket at once")]

#[cfg(all(target_os = "linux", not(isolane_portable)))]
#[path = "ppoll.rs"]
mod asked;
#[cfg(any(isolane_portable, not(target_os = "linux")))]
#[path = "pselect.rs"]
mod asked;

use std::{
    io, mem,
    os::fd::{AsRawFd, OwnedFd},
    ptr,
    time::Duration,
};

use isolane_confine::Ended;

/// The side of a fork.
pub(crate) enum ForkSide {
    Child,
    /// The parent, with the number of the child.
    Parent(i32),
}

/// Forks.
pub(crate) fn fork() -> io::Result<ForkSide> {
    // SAFETY: this process has one thread, so the child has all of its state.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(ForkSide::Child),
        child => Ok(ForkSide::Parent(child)),
    }
}

/// Waits for a child to end.
#[cfg(all(target_os = "linux", not(isolane_portable)))]
pub(crate) fn wait_for(child: i32) -> Ended {
    loop {
        let mut status = 0;
        // SAFETY: a place for the status.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if let Some(ended) = (waited == child).then(|| Ended::from_status(status)).flatten() {
            return ended;
        }
        if waited < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Ended::Exited(1);
        }
    }
}

/// A child that has ended, if there is one.
pub(crate) fn reap() -> Option<(i32, Ended)> {
    let mut status = 0;
    // SAFETY: a place for the status.
    let child = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    if child <= 0 { None } else { Ended::from_status(status).map(|ended| (child, ended)) }
}

/// Kills a child that has not been reaped.
pub(crate) fn kill(child: i32) {
    // SAFETY: no memory is involved. The number is a child's, and cannot be reused before it is reaped.
    unsafe { libc::kill(child, libc::SIGKILL) };
}

/// Gives a child a low priority.
pub(crate) fn demote(child: i32) {
    const LATER: i32 = 10;
    // SAFETY: no memory is involved.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, child.cast_unsigned(), LATER) };
}

/// Reports the end of children only while it waits.
pub(crate) struct Watch {
    /// The signals blocked while it waits: none.
    waiting: libc::sigset_t,
}

impl Watch {
    pub(crate) fn new() -> Self {
        extern "C" fn nothing(_signal: i32) {}
        // SAFETY: plain data, set up by the functions for it; the handler does nothing.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            libc::sigaction(libc::SIGCHLD, &raw const action, ptr::null_mut());
            let (mut ended, mut waiting) = (mem::zeroed(), mem::zeroed());
            libc::sigemptyset(&raw mut ended);
            libc::sigaddset(&raw mut ended, libc::SIGCHLD);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const ended, ptr::null_mut());
            libc::sigemptyset(&raw mut waiting);
            Self { waiting }
        }
    }

    /// Waits until the socket can be read or a child has ended, or that time has passed.
    pub(crate) fn wait(&self, socket: Option<&OwnedFd>, most: Option<Duration>) {
        let most = most.map(|most| libc::timespec {
            tv_sec: most.as_secs().try_into().unwrap_or_else(|_| i32::MAX.into()),
            tv_nsec: most.subsec_nanos().into(),
        });
        asked::wait(socket.map(AsRawFd::as_raw_fd), most.as_ref(), &self.waiting);
    }
}
