//! System calls of the phases on macOS, each behind a plain function.
#![expect(unsafe_code, reason = "calls the system")]

use std::{fs, os::fd::RawFd, ptr};

use crate::unix::{leave_groups, own_identity, works};

/// The user and the group that own nothing.
const NOBODY: u32 = u32::MAX - 1;

/// Closes that descriptor and all above it, below the other one.
pub(super) fn close_from(first: RawFd, end: RawFd) {
    for descriptor in first..end {
        // SAFETY: other code here that still knows these descriptors only reads their numbers.
        unsafe { libc::close(descriptor) };
    }
}

/// Closes that descriptor and all above it that the system lists; false if there is no list.
pub(super) fn close_listed(first: RawFd) -> bool {
    let Ok(list) = fs::read_dir("/dev/fd") else { return false };
    let open: Vec<RawFd> =
        list.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor >= first) {
        close_from(descriptor, descriptor + 1);
    }
    true
}

/// Has the system refuse processes that want to trace this one.
pub(super) fn deny_attach() {
    // SAFETY: this request reads nothing.
    unsafe { libc::ptrace(libc::PT_DENY_ATTACH, 0, ptr::null_mut(), 0) };
}

/// Becomes nobody if it is root. False if it stays root.
pub(super) fn become_nobody() -> bool {
    if own_identity().0 != 0 {
        return true;
    }
    leave_groups();
    // SAFETY: touch no memory of ours.
    let became = unsafe { works(libc::setgid(NOBODY)) && works(libc::setuid(NOBODY)) };
    became && own_identity().0 != 0
}
