//! Landlock, with which a process withdraws rights from itself.
//!
//! In: nothing. Out: none of the rights that the kernel's version knows. No rule grants one.

use super::kernel::{self, Handled};

/// The rights on files, by the version that brought them: execute, read, write, remove, make; refer;
/// truncate; control of devices.
const FILES: [(libc::c_long, u64); 4] = [(1, 0x1fff), (2, 1 << 13), (3, 1 << 14), (5, 1 << 15)];
/// Bind and connect with TCP.
const NETWORK: [(libc::c_long, u64); 1] = [(4, 0b11)];
/// Abstract sockets and signals of others.
const SCOPES: [(libc::c_long, u64); 1] = [(6, 0b11)];

/// Gives up every right that can be given up. Takes `no_new_privs`.
pub(super) fn restrict() -> bool {
    let Ok(version) = kernel::landlock_version() else { return false };
    let known = |rights: &[(libc::c_long, u64)]| {
        rights.iter().filter(|(since, _)| *since <= version).map(|(_, bits)| bits).sum()
    };
    let handled =
        Handled { files: known(&FILES), network: known(&NETWORK), scopes: known(&SCOPES) };
    kernel::restrict_by_landlock(&handled).is_ok()
}
