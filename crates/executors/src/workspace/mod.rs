//! The working folder of a call: fresh, readable by its user alone, with the input files, and removed afterwards.
//!
//! In: input files. Out: a path; after the program has ended, its output files. Nothing here follows a link that the
//! program has left. `unix` and `windows` have the means of the systems.

#[cfg(unix)]
mod measure;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::measure::Watch;
#[cfg(windows)]
pub(crate) use self::windows::Watch;

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
};

#[cfg(unix)]
use isolane_child::{
    at_exit::{folder_began, folder_ended as ended},
    remove_folder as remove,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

#[cfg(unix)]
use self::unix::{make_private, open_to_all, opened};
#[cfg(windows)]
use self::windows::{ended, folder_began, make_private, open_to_all, opened, remove};
use crate::{ExecFile, ExecutorError, output_files::OutputFiles};

/// The most bytes on the disk in a folder that is watched.
pub(crate) const MOST_FOLDER_BYTES: u64 = 256 << 20;

/// The bytes of a file that are written at once. A disk takes them in some milliseconds.
const PIECE_BYTES: usize = 1 << 20;

/// The folder inside of one that is the caller's alone.
const SHARED: &str = "work";

/// A working folder. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// `None` once it is removed.
    folder: Option<TempDir>,
    /// The input files, to tell which have changed.
    inputs: Vec<ExecFile>,
    /// Whether the program has the folder inside of it.
    is_shared: bool,
}

impl Workspace {
    /// Makes a folder with these files, unless it is cancelled meanwhile. It blocks.
    ///
    /// # Errors
    /// `staging`: the folder or a file cannot be written. `cancelled`.
    pub(crate) fn new(
        inputs: Vec<ExecFile>,
        cancelled: &CancellationToken,
    ) -> Result<Self, ExecutorError> {
        let mut builder = tempfile::Builder::new();
        make_private(builder.prefix("isolane-exec-"));
        let folder = builder.tempdir().map_err(ExecutorError::staging)?;
        folder_began(folder.path(), remove);
        // From now on it is removed whatever happens.
        let mut workspace = Self { folder: Some(folder), inputs: Vec::new(), is_shared: false };
        for file in &inputs {
            write(&workspace.path().join(&file.name), &file.content, cancelled)?;
        }
        workspace.inputs = inputs;
        Ok(workspace)
    }

    /// Makes one for a program that has another user: everybody may write to it and its files. Nobody reaches it by a path
    /// from outside, as the folder around it is the caller's alone. It blocks.
    ///
    /// # Errors
    /// `staging`: the folder or a file cannot be written. `cancelled`.
    pub(crate) fn shared(
        inputs: Vec<ExecFile>,
        cancelled: &CancellationToken,
    ) -> Result<Self, ExecutorError> {
        let mut workspace = Self::new(Vec::new(), cancelled)?;
        workspace.is_shared = true;
        let path = workspace.path();
        std::fs::create_dir(&path).map_err(ExecutorError::staging)?;
        open_to_all(&path).map_err(ExecutorError::staging)?;
        for file in &inputs {
            let path = path.join(&file.name);
            write(&path, &file.content, cancelled)?;
            open_to_all(&path).map_err(ExecutorError::staging)?;
        }
        workspace.inputs = inputs;
        Ok(workspace)
    }

    /// Its path.
    pub(crate) fn path(&self) -> PathBuf {
        let top = self.folder.as_ref().map_or(Path::new(""), TempDir::path);
        if self.is_shared { top.join(SHARED) } else { top.to_owned() }
    }

    /// The files that the program has left in it, once it has ended. It blocks.
    pub(crate) fn output_files(&self) -> OutputFiles {
        match opened(&self.path()) {
            Ok(folder) => OutputFiles::collect(&folder, &self.inputs),
            Err(_) => OutputFiles::default(),
        }
    }

    /// Removes it. It blocks, and may be done again.
    ///
    /// # Errors
    /// Something in it belongs to another user.
    pub(crate) fn remove(&mut self) -> std::io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        // A folder inside keeps its place until it is empty, so that another program can empty it.
        let inner = folder.path().join(SHARED);
        if self.is_shared && inner.exists() {
            remove(&inner)?;
        }
        remove(folder.path())?;
        self.leave();
        Ok(())
    }

    /// Has nothing more to do with the folder, which is removed or cannot be.
    fn leave(&mut self) {
        if let Some(folder) = self.folder.take() {
            ended(&folder.keep());
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // A folder that cannot be removed is in the system's folder for temporary files.
        let _ = self.remove();
        self.leave();
    }
}

/// Writes a file in pieces, unless it is cancelled meanwhile.
fn write(path: &Path, content: &[u8], cancelled: &CancellationToken) -> Result<(), ExecutorError> {
    let mut file = File::create(path).map_err(ExecutorError::staging)?;
    for piece in content.chunks(PIECE_BYTES) {
        if cancelled.is_cancelled() {
            return Err(ExecutorError::cancelled());
        }
        file.write_all(piece).map_err(ExecutorError::staging)?;
    }
    Ok(())
}
