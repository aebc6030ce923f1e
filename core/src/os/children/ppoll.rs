//! A system that waits for descriptors and signals at once, for any descriptor.
#![expect(unsafe_code, reason = "calls the system")]

use std::{os::fd::RawFd, ptr};

/// Waits until that can be read or a signal comes that is not in the set.
pub(super) fn wait(socket: Option<RawFd>, most: Option<&libc::timespec>, blocked: &libc::sigset_t) {
    let mut asked = libc::pollfd { fd: socket.unwrap_or(-1), events: libc::POLLIN, revents: 0 };
    let most = most.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: one descriptor to ask about, a time or none, and a set of signals.
    unsafe { libc::ppoll(&raw mut asked, 1, most, ptr::from_ref(blocked)) };
}
