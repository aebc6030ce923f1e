//! System calls of the phases that every Unix has, each behind a plain function.
//!
//! In: numbers, paths, descriptors. Out: whether it worked. All of them are for processes of one thread.
#![expect(unsafe_code, reason = "calls the system")]

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

pub(super) fn works(result: libc::c_int) -> bool {
    result >= 0
}

pub(super) fn own_process() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getpid() }
}

pub(super) fn parent_process() -> i32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getppid() }
}

/// User and group.
pub(super) fn own_identity() -> (u32, u32) {
    // SAFETY: takes nothing and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Ends the process without running exit handlers.
pub fn exit(code: i32) -> ! {
    // SAFETY: nothing of this process is used again.
    unsafe { libc::_exit(code) }
}

/// Starts a session: a terminal's signals do not reach another session.
pub(super) fn new_session() -> bool {
    // SAFETY: touches no memory.
    works(unsafe { libc::setsid() })
}

/// Discards output to descriptors 1 and 2.
pub(super) fn silence_output() {
    let access = libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: a path that ends in zero; three calls on numbers.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), access);
        // Without that file the end of a pipe that nobody reads serves as well.
        let sink = if null >= 0 { null } else { unread_pipe() };
        libc::dup2(sink, 1);
        libc::dup2(sink, 2);
        if sink > 2 {
            libc::close(sink);
        }
    }
}

fn unread_pipe() -> RawFd {
    let mut ends = [-1; 2];
    // SAFETY: writes two numbers.
    unsafe {
        libc::pipe(ends.as_mut_ptr());
        libc::close(ends[0]);
    }
    ends[1]
}

/// Moves a descriptor to that number, and replaces the one that has it now.
pub(super) fn move_descriptor(from: OwnedFd, to: RawFd) -> Option<OwnedFd> {
    if from.as_raw_fd() == to {
        return Some(from);
    }
    // SAFETY: two numbers.
    if !works(unsafe { libc::dup2(from.as_raw_fd(), to) }) {
        return None;
    }
    drop(from);
    // SAFETY: opened just now, and owned by nobody else.
    Some(unsafe { OwnedFd::from_raw_fd(to) })
}

pub(super) fn socket_pair() -> Option<(OwnedFd, OwnedFd)> {
    std::os::unix::net::UnixStream::pair().ok().map(|(one, other)| (one.into(), other.into()))
}

/// Makes any new files accessible to nobody.
pub(super) fn no_file_modes() {
    // SAFETY: touches no memory.
    unsafe { libc::umask(0o777) };
}

/// Leaves all supplementary groups.
pub(super) fn leave_groups() -> bool {
    // SAFETY: a list of no length is not read.
    works(unsafe { libc::setgroups(0, ptr::null()) })
}

/// Runs `body` in a forked child; its exit code, unless it was killed.
pub(super) fn in_child(body: impl FnOnce() -> i32) -> Option<i32> {
    // SAFETY: this process has one thread, so the child finds nothing half-done.
    let child = unsafe { libc::fork() };
    finish_child(child.into(), body)
}

/// Runs `body` in the child, and waits for the child in the parent.
pub(super) fn finish_child(child: libc::c_long, body: impl FnOnce() -> i32) -> Option<i32> {
    let child = i32::try_from(child).ok().filter(|child| *child >= 0)?;
    if child == 0 {
        exit(body());
    }
    let mut status = 0;
    loop {
        // SAFETY: writes one number.
        if works(unsafe { libc::waitpid(child, &raw mut status, 0) }) {
            break;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}

/// Restores the default action of signals for a broken process or one that has used up its time: it ends by them, so
/// that they can be reported.
pub(super) fn plain_signals() {
    for signal in
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGXCPU]
    {
        // SAFETY: no handler of ours is entered any more.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
