//! Waits for descriptors and signals at once, on systems with `ppoll`.
#![expect(unsafe_code, reason = "calls the system")]

use std::{os::fd::RawFd, ptr};

/// Waits until the socket can be read or a signal outside of the set arrives.
pub(super) fn wait(socket: Option<RawFd>, most: Option<&libc::timespec>, blocked: &libc::sigset_t) {
    let mut asked = libc::pollfd { fd: socket.unwrap_or(-1), events: libc::POLLIN, revents: 0 };
    let most = most.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: one descriptor to ask about, a time or none, and a set of signals.
    unsafe { libc::ppoll(&raw mut asked, 1, most, ptr::from_ref(blocked)) };
}
