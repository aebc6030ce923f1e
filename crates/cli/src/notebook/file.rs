//! The file of a notebook on the disk.
//!
//! In: a path, and new texts. Out: the text of the file, then the file with a new text, in one step: who reads the file
//! meanwhile finds the old text or the new one. Nobody's changes are lost: a file that has changed since is left alone.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::exit::Ended;

/// A file that may be written.
#[derive(Debug)]
pub(crate) struct NotebookFile {
    /// Without links.
    path: PathBuf,
    /// The text that it should have now.
    known: Vec<u8>,
}

impl NotebookFile {
    /// Opens a file that has that text.
    ///
    /// # Errors
    /// Misuse: no file on a disk, or one that must not be written.
    pub(crate) fn open(file: &Path, text: &str) -> Result<Self, Ended> {
        let refused = |why: &str| Ended::misuse(format!("cannot write {}: {why}", file.display()));
        let path = fs::canonicalize(file).map_err(|error| refused(&error.to_string()))?;
        let metadata = fs::metadata(&path).map_err(|error| refused(&error.to_string()))?;
        if !metadata.is_file() {
            return Err(refused("it is no regular file"));
        }
        if metadata.permissions().readonly() {
            return Err(refused("it is read-only"));
        }
        Ok(Self { path, known: text.as_bytes().to_vec() })
    }

    /// Writes a text, and blocks meanwhile.
    ///
    /// # Errors
    /// Misuse: the file has changed, or cannot be written.
    pub(crate) fn write(&mut self, text: String) -> Result<(), Ended> {
        let refused =
            |why: &str| Ended::misuse(format!("cannot write {}: {why}", self.path.display()));
        let now = fs::read(&self.path).map_err(|error| refused(&error.to_string()))?;
        if now != self.known {
            return Err(refused("it has changed meanwhile; the outputs are not in it"));
        }
        let text = text.into_bytes();
        if text != now {
            self.replace(&text).map_err(|error| refused(&error.to_string()))?;
            self.known = text;
        }
        Ok(())
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        // Of a name that nobody knows, for this user alone; it goes if anything fails.
        let mut new = tempfile::Builder::new().prefix(".isolane-").tempfile_in(folder)?;
        new.write_all(text)?;
        new.as_file().set_permissions(fs::metadata(&self.path)?.permissions())?;
        new.persist(&self.path)?;
        Ok(())
    }
}
