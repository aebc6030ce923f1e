//! The size of a working folder, while a program fills it.
//!
//! In: its path. Out: whether it is beyond its bound. Each entry counts for at least a block, so that the walk is bounded;
//! folders that nest deeper than the bound count as too much. The program may have another user than the caller, and hide a
//! folder from it. Then the room that the disk has lost since the beginning counts as well. A file that has no name any more
//! is not seen.

use std::{
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, statvfs},
    io::{Errno, Result},
};

use super::MOST_FOLDER_BYTES;

/// The bytes for which an entry counts at least.
const ENTRY_BYTES: u64 = 4096;

/// How deep folders may nest: each level of the walk holds a descriptor.
const MOST_DEPTH: usize = 128;

/// A folder that is looked at while it is filled.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    path: PathBuf,
    /// The room on its disk at the beginning.
    free_bytes: u64,
}

/// The entries and bytes that a walk through a folder has seen.
enum Seen {
    /// It holds more than it may.
    TooMuch,
    /// It is within its bound, as far as it can be seen.
    Little { is_hidden: bool },
}

impl Watch {
    /// Begins to watch a folder.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), free_bytes: free_bytes(path) }
    }

    /// Whether the folder holds more than it may. It blocks.
    pub(crate) fn is_overfull(&self) -> bool {
        match walk(&self.path) {
            Seen::TooMuch => true,
            Seen::Little { is_hidden: false } => false,
            Seen::Little { is_hidden: true } => {
                self.free_bytes.saturating_sub(free_bytes(&self.path)) > MOST_FOLDER_BYTES
            }
        }
    }
}

/// The room on the disk of a folder; none if that cannot be told.
fn free_bytes(path: &Path) -> u64 {
    statvfs(path).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn walk(path: &Path) -> Seen {
    let mut bytes: u64 = 0;
    let mut is_hidden = false;
    // An entry that has gone meanwhile hides nothing.
    let hides = |error: Errno| !matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP);
    let mut open: Vec<Dir> = Vec::new();
    match opened(CWD, path) {
        Ok(folder) => open.push(folder),
        Err(error) => is_hidden |= hides(error),
    }
    while let Some(folder) = open.last_mut() {
        let entry = match folder.next() {
            Some(Ok(entry)) => entry,
            end => {
                is_hidden |= matches!(end, Some(Err(error)) if hides(error));
                open.pop();
                continue;
            }
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let status = folder.fd().and_then(|folder| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW));
        let on_disk = match &status {
            Ok(status) => u64::try_from(status.st_blocks).unwrap_or(0).saturating_mul(512),
            Err(error) => {
                is_hidden |= hides(*error);
                0
            }
        };
        bytes = bytes.saturating_add(on_disk.max(ENTRY_BYTES));
        if bytes > MOST_FOLDER_BYTES {
            return Seen::TooMuch;
        }
        let is_folder = |mode| FileType::from_raw_mode(mode) == FileType::Directory;
        if status.is_ok_and(|status| is_folder(status.st_mode)) {
            match folder.fd().and_then(|folder| opened(folder, name)) {
                Ok(inner) => open.push(inner),
                Err(error) => is_hidden |= hides(error),
            }
            if open.len() > MOST_DEPTH {
                return Seen::TooMuch;
            }
        }
    }
    Seen::Little { is_hidden }
}

fn opened(parent: impl AsFd, path: impl rustix::path::Arg) -> Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Dir::new(openat(parent, path, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::Watch;
    use std::{fs, path::Path};

    fn is_overfull(path: &Path) -> bool {
        Watch::new(path).is_overfull()
    }

    /// Takes the right to read every folder from this thread, if it is root's.
    #[cfg(target_os = "linux")]
    fn give_up_reading() {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        let mut sets = capabilities(None).expect("its capabilities");
        sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
        set_capabilities(None, sets).expect("less of them");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_disk_is_asked_about_hidden_folders() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).expect("a folder");
        fs::write(inner.join("file"), "x").expect("a file");
        give_up_reading();
        let mut lost = Watch::new(folder.path());
        lost.free_bytes += 1 << 40;
        assert!(!lost.is_overfull(), "all can be seen");
        // Without the right to search, names are seen, and no sizes.
        for mode in [0o000, 0o400] {
            fs::set_permissions(&inner, fs::Permissions::from_mode(mode)).expect("its mode");
            assert!(lost.is_overfull(), "{mode:o}");
            let mut unchanged = Watch::new(folder.path());
            unchanged.free_bytes = 0;
            assert!(!unchanged.is_overfull(), "{mode:o}");
        }
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o700)).expect("its mode");
    }

    #[test]
    fn bytes_entries_and_depth_count() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a"), vec![1; 1 << 20]).expect("a file");
        assert!(!is_overfull(folder.path()));
        let deep = folder.path().join("d/".repeat(127));
        fs::create_dir_all(&deep).expect("folders");
        assert!(!is_overfull(folder.path()));
        fs::create_dir(deep.join("d")).expect("a folder");
        assert!(is_overfull(folder.path()));
        fs::remove_dir_all(folder.path().join("d")).expect("removed");
        let sparse = fs::File::create(folder.path().join("sparse")).expect("a file");
        sparse.set_len(1 << 30).expect("its length");
        assert!(!is_overfull(folder.path()), "holes take no room");
        fs::write(folder.path().join("b"), vec![1; 260 << 20]).expect("a file");
        assert!(is_overfull(folder.path()));
    }
}
