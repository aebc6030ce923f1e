//! Landlock, with which a process withdraws rights from itself.
//!
//! In: nothing. Out: none of the rights that the kernel's version knows; or, for a program, only those on files that its
//! root shows.

use super::kernel::{self, Granted, Handled};
use rustix::fs::{Mode, OFlags, open};
use std::{os::fd::AsFd, path::Path};

/// The rights on files, by the version that brought them: execute, read, write, remove, make; refer;
/// truncate; control of devices.
const FILES: [(libc::c_long, u64); 4] = [(1, 0x1fff), (2, 1 << 13), (3, 1 << 14), (5, 1 << 15)];
/// Bind and connect with TCP.
const NETWORK: [(libc::c_long, u64); 1] = [(4, 0b11)];
/// Abstract sockets and signals of others.
const SCOPES: [(libc::c_long, u64); 1] = [(6, 0b11)];

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_FOLDER: u64 = 1 << 3;
const MAKE_DEVICES: u64 = 1 << 6 | 1 << 11;
const CONTROL_DEVICE: u64 = 1 << 15;

/// The rights of a program on parts of its root, beside the folders that it may write to. Of the devices `/dev/zero` is
/// missing: a shared mapping that can be written to is memory that no limit counts.
const OF_PROGRAM: [(&str, u64); 4] = [
    ("/", EXECUTE | READ_FILE | READ_FOLDER),
    ("/tmp", !MAKE_DEVICES),
    ("/dev/null", WRITE_FILE | CONTROL_DEVICE),
    ("/dev/full", WRITE_FILE | CONTROL_DEVICE),
];

/// Gives up every right that can be given up. Takes `no_new_privs`.
pub(super) fn restrict() -> bool {
    handled().is_some_and(|handled| kernel::restrict_by_landlock(&handled, &[]).is_ok())
}

/// The same, less the rights of a program on its root, on these folders of it and, maybe, on the network.
pub(super) fn restrict_to<'p>(writable: impl Iterator<Item = &'p Path>, network: bool) -> bool {
    let Some(mut handled) = handled() else { return false };
    if network {
        handled.network = 0;
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let fixed = OF_PROGRAM.map(|(path, files)| (Path::new(path), files));
    let writable = writable.map(|path| (path, !MAKE_DEVICES));
    let opened: Vec<_> = fixed
        .into_iter()
        .chain(writable)
        .map(|(path, files)| (open(path, flags, Mode::empty()), files))
        .collect();
    let granted: Vec<_> = opened
        .iter()
        .filter_map(|(opened, files)| {
            Some(Granted { below: opened.as_ref().ok()?.as_fd(), files: files & handled.files })
        })
        .collect();
    kernel::restrict_by_landlock(&handled, &granted).is_ok()
}

/// The rights that the kernel's version knows.
fn handled() -> Option<Handled> {
    let version = kernel::landlock_version().ok()?;
    let known = |rights: &[(libc::c_long, u64)]| {
        rights.iter().filter(|(since, _)| *since <= version).map(|(_, bits)| bits).sum()
    };
    Some(Handled { files: known(&FILES), network: known(&NETWORK), scopes: known(&SCOPES) })
}
