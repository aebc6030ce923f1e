//! Working folders on Windows.
//!
//! In: a folder. Out: its size; nothing, once it is removed. The folder for temporary files is its user's alone, and
//! containers reach a folder by their engine, so permissions stay as they are. The programs of the folder have ended when it
//! is read or removed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::MOST_FOLDER_BYTES;

/// The bytes for which an entry counts at least.
const ENTRY_BYTES: u64 = 4096;

/// A folder that is looked at while it is filled.
#[derive(Clone, Debug)]
pub(crate) struct Watch(PathBuf);

impl Watch {
    /// Begins to watch a folder.
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Whether the folder holds more than it may. It blocks. No link is followed.
    pub(crate) fn is_overfull(&self) -> bool {
        let mut bytes: u64 = 0;
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            // It may have gone.
            let Ok(entries) = fs::read_dir(folder) else { continue };
            for entry in entries.map_while(Result::ok) {
                let Ok(status) = entry.metadata() else { continue };
                bytes = bytes.saturating_add(status.len().max(ENTRY_BYTES));
                if bytes > MOST_FOLDER_BYTES {
                    return true;
                }
                if status.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        false
    }
}

/// The system kills the programs when this process ends; folders stay then.
pub(super) fn folder_began(_: &Path, _: fn(&Path) -> io::Result<()>) {}

pub(super) fn ended(_: &Path) {}

pub(super) fn make_private(_: &mut tempfile::Builder<'_, '_>) {}

#[expect(clippy::unnecessary_wraps, reason = "other systems can refuse it")]
pub(super) fn open_to_all(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The folder whose output files are to be read.
#[expect(clippy::unnecessary_wraps, reason = "other systems can refuse it")]
pub(super) fn opened(path: &Path) -> io::Result<PathBuf> {
    Ok(path.to_owned())
}

/// Removes a folder and everything in it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path)
}
