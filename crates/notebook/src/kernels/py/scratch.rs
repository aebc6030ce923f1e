//! The folder of a kernel that is not confined.
//!
//! In: nothing. Out: an empty folder, which is removed when the kernel has ended, or when this process ends.

use std::{io, path::Path};

use isolane_child::{at_exit, remove_folder};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

/// The folder of a kernel, removed with it.
#[derive(Debug)]
pub(super) struct Scratch(Option<TempDir>);

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("isolane-py-").tempdir()?;
        at_exit::folder_began(folder.path(), remove_folder);
        Ok(Self(Some(folder)))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new("/"), TempDir::path)
    }

    /// Removes it, on a thread that may block.
    pub(super) async fn remove(mut self) {
        if let Some(folder) = self.0.take() {
            let path = folder.keep();
            // Files of another user stay in the system's folder for temporary files.
            let _ = spawn_blocking(move || {
                let _ = remove_folder(&path);
                at_exit::folder_ended(&path);
            })
            .await;
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = self.0.take() {
            at_exit::folder_ended(folder.path());
        }
    }
}
