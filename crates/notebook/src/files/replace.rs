//! Files that are written: replaced in one step, or appended to.
//!
//! In: an open folder, a name in it, and bytes. Out: the file with them. A file that is replaced is written beside its place
//! and then moved there, so no one sees half of it.

use std::{
    ffi::OsString,
    io::{self, Write as _},
};

use cap_std::fs::{Dir, OpenOptions, Permissions};
use isolane::HostError;
use uuid::Uuid;

use super::nonblocking;
use crate::text::words::grouped;

/// The place of a file to write.
pub(super) struct Target {
    /// The folder that has it.
    pub(super) folder: Dir,
    pub(super) name: OsString,
    /// The path below the root.
    pub(super) path: String,
    /// Those of the file that is there.
    pub(super) permissions: Option<Permissions>,
}

impl Target {
    /// Replaces the file, or makes it.
    pub(super) fn replace(&self, data: &[u8]) -> io::Result<()> {
        let beside = format!(".isolane-{}.tmp", Uuid::new_v4());
        let mut options = OpenOptions::new();
        let mut file = self.folder.open_with(&beside, options.write(true).create_new(true))?;
        let moved = file.write_all(data).and_then(|()| {
            if let Some(permissions) = &self.permissions {
                file.set_permissions(plain(permissions))?;
            }
            drop(file);
            self.folder.rename(&beside, &self.folder, &self.name)
        });
        moved.inspect_err(|_| {
            // The first error is told.
            let _ = self.folder.remove_file(&beside);
        })
    }

    /// Appends to the file, or makes it.
    pub(super) fn append(&self, data: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        nonblocking(options.append(true).create(true));
        let mut file = self.folder.open_with(&self.name, &options)?;
        // Something else may have taken the place of the file that was looked at.
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("it is no file any more"));
        }
        // A system takes those rights away from a file that its owner changes, but not from one that root does.
        let permissions = plain(&found.permissions());
        if permissions != found.permissions() {
            file.set_permissions(permissions)?;
        }
        file.write_all(data)
    }
}

/// Permissions without those that give a program the rights of the file's owner or group.
#[cfg(unix)]
fn plain(permissions: &Permissions) -> Permissions {
    use cap_std::fs::PermissionsExt as _;
    Permissions::from_mode(permissions.mode() & 0o777)
}

#[cfg(not(unix))]
fn plain(permissions: &Permissions) -> Permissions {
    permissions.clone()
}

/// The error of data that are too long to be written.
pub(super) fn too_long(bytes: u64, most: u64) -> HostError {
    let (bytes, most) = (grouped(bytes), grouped(most));
    let message = format!("data has {bytes} bytes, and at most {most} can be written at once");
    HostError::new("RangeError", message)
}
