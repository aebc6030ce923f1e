//! Waits for descriptors and signals at once with `pselect`, which takes descriptors of low numbers only. A zygote has
//! no others, since it receives its socket before anything else.
#![expect(unsafe_code, reason = "calls the system")]

use std::{mem, os::fd::RawFd, ptr};

/// Waits until the socket can be read or a signal outside of the set arrives.
pub(super) fn wait(socket: Option<RawFd>, most: Option<&libc::timespec>, blocked: &libc::sigset_t) {
    let most = most.map_or(ptr::null(), ptr::from_ref);
    let socket =
        socket.filter(|socket| usize::try_from(*socket).is_ok_and(|at| at < libc::FD_SETSIZE));
    // SAFETY: all zero is an empty set, and the number fits; a time or none, and a set of signals.
    unsafe {
        let mut asked: libc::fd_set = mem::zeroed();
        if let Some(socket) = socket {
            libc::FD_SET(socket, &raw mut asked);
        }
        let count = socket.map_or(0, |socket| socket + 1);
        let none = ptr::null_mut();
        libc::pselect(count, &raw mut asked, none, none, most, ptr::from_ref(blocked));
    }
}
