//! Permissions of working folders on Unix.
//!
//! In: a folder or file that was just made. Out: the same for its caller alone, or for everybody; a folder that is open.

use std::{
    fs::{Permissions, set_permissions},
    io,
    os::{fd::OwnedFd, unix::fs::PermissionsExt as _},
    path::Path,
};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// The folders to be made are the caller's alone from their beginning, whatever the umask is.
pub(super) fn make_private(builder: &mut tempfile::Builder<'_, '_>) {
    builder.permissions(Permissions::from_mode(0o700));
}

/// Everybody may read and write it.
pub(super) fn open_to_all(path: &Path) -> io::Result<()> {
    let mode = if path.is_dir() { 0o777 } else { 0o666 };
    set_permissions(path, Permissions::from_mode(mode))
}

/// Opens a folder whose output files are to be read.
pub(super) fn opened(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}
