//! The files of a notebook: those below one folder, for cells of both languages.
//!
//! In: paths that cells name, of which nothing is trusted. Out: contents of files, or errors for the cell. `root` resolves
//! paths, `lines` reads a part of a file, `replace` writes one, `tree` lists folders, `compare` shows how two files differ.
//! All functions here block, and stop early once their signal is cancelled.

mod compare;
mod lines;
mod replace;
mod root;
mod tree;

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use isolane::{HostError, Spelling};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

pub(crate) use self::{
    lines::{Lines, ReadFault, read_lines},
    root::{io_words, nonblocking, shown},
};
use self::{root::Root, tree::Tree};
use crate::{Misuse, given::Group};

/// The bound of the sizes of one file that cells read or write.
const MOST_FILE_BYTES: u64 = 128 << 20;

/// The files that cells of a notebook may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesOptions {
    /// The folder. It must be there when the notebook is opened. No path leads out of it.
    pub root: PathBuf,
    /// Whether cells may write; false by default.
    pub write: bool,
    /// The most bytes that one `read` or `diff` gives, 16 MiB.
    pub max_read_bytes: u64,
    /// The most bytes that one `write` or `append` takes, 16 MiB.
    pub max_write_bytes: u64,
    /// The most entries of one `tree`, 2,000.
    pub max_tree_entries: u64,
}

impl FilesOptions {
    /// The files below a folder, to be read alone.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            write: false,
            max_read_bytes: 16 << 20,
            max_write_bytes: 16 << 20,
            max_tree_entries: 2000,
        }
    }

    pub(crate) fn read(given: &Json, spelling: Spelling) -> Result<Self, Misuse> {
        let keys = ["root", "write", "max_read_bytes", "max_write_bytes", "max_tree_entries"];
        let group = Group::new("files.", given, &keys, spelling)?;
        let root = group.text("root")?;
        let root = root.ok_or_else(|| Misuse::new(group.path("root"), " is missing"))?;
        let usual = Self::new(root);
        let bytes = |key: &str| group.count(key, 1, MOST_FILE_BYTES);
        Ok(Self {
            write: group.flag("write")?.unwrap_or_default(),
            max_read_bytes: bytes("max_read_bytes")?.unwrap_or(usual.max_read_bytes),
            max_write_bytes: bytes("max_write_bytes")?.unwrap_or(usual.max_write_bytes),
            max_tree_entries: group
                .count("max_tree_entries", 1, 1_000_000)?
                .unwrap_or(usual.max_tree_entries),
            ..usual
        })
    }
}

/// The files of a notebook, for all its cells.
#[derive(Debug)]
pub(crate) struct Files {
    root: Root,
    options: FilesOptions,
    /// Locked while a file is written: what is looked at then must not be replaced meanwhile.
    writing: Mutex<()>,
}

impl Files {
    /// Opens the folder, which stays open: whatever is moved to its path later is not it.
    pub(crate) fn open(options: &FilesOptions) -> Result<Self, Misuse> {
        let root = Root::open(&options.root).map_err(|error| {
            let rest = format!(": the folder cannot be opened: {}", io_words(&error));
            Misuse::new("files.root", &rest)
        })?;
        if root.is_of_system() {
            let rest = format!(": cells cannot have '{}'", options.root.display());
            return Err(Misuse::new("files.root", &rest));
        }
        Ok(Self { root, options: options.clone(), writing: Mutex::default() })
    }

    /// The absolute path of the folder.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Whether cells may write.
    pub(crate) fn is_writable(&self) -> bool {
        self.options.write
    }

    /// The most bytes that a cell may write at once.
    pub(crate) fn most_written_bytes(&self) -> u64 {
        if self.options.write { self.options.max_write_bytes } else { 0 }
    }

    /// The bytes of some lines of a file.
    ///
    /// # Errors
    /// For the cell: the path means no file below the root, or the lines are too long.
    pub(crate) fn read(
        &self,
        path: &str,
        lines: Lines,
        stop: &CancellationToken,
    ) -> Result<Vec<u8>, HostError> {
        let place = self.root.place(path)?;
        let file = self.root.file(&place)?;
        let most = self.options.max_read_bytes;
        let too_long = |bytes: Option<u64>| lines::too_long(&place.shown, bytes, most);
        let bytes = file.metadata().map_err(|error| place.fault(&error))?.len();
        if lines.are_all() && bytes > most {
            return Err(too_long(Some(bytes)));
        }
        read_lines(file, lines, most, stop).map_err(|fault| match fault {
            ReadFault::Io(error) => place.fault(&error),
            ReadFault::TooLong => too_long(None),
            ReadFault::Stopped => stopped(),
        })
    }

    /// Writes a file, or appends to it. Folders are made. A file that is replaced is the old one or the new one at any
    /// moment, and keeps its permissions. Returns the path below the root.
    ///
    /// # Errors
    /// For the cell: the path leads out of the root or means something else than a file, or there are too many bytes.
    pub(crate) fn write(
        &self,
        path: &str,
        data: &[u8],
        appends: bool,
        stop: &CancellationToken,
    ) -> Result<String, HostError> {
        let most = self.options.max_write_bytes;
        if data.len() as u64 > most {
            return Err(replace::too_long(data.len() as u64, most));
        }
        let place = self.root.place(path)?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let target = self.root.target(&place)?;
        if stop.is_cancelled() {
            return Err(stopped());
        }
        let written = if appends { target.append(data) } else { target.replace(data) };
        written.map_err(|error| place.fault(&error))?;
        Ok(target.path)
    }

    /// The text of the tree below a folder, and the number of its entries.
    ///
    /// # Errors
    /// For the cell: the path means no folder below the root.
    pub(crate) fn tree(
        &self,
        path: &str,
        max_depth: u64,
        hidden: bool,
        stop: &CancellationToken,
    ) -> Result<(String, u64), HostError> {
        let place = self.root.place(path)?;
        let folder = self.root.folder(&place)?;
        let mut tree = Tree::new(self.options.max_tree_entries, hidden, stop);
        tree.list(&folder, max_depth).map_err(|error| place.fault(&error))?;
        if stop.is_cancelled() {
            return Err(stopped());
        }
        Ok(tree.finish())
    }

    /// The unified diff of two files; empty if they are equal.
    ///
    /// # Errors
    /// As of [`Files::read`].
    pub(crate) fn diff(
        &self,
        first: &str,
        second: &str,
        stop: &CancellationToken,
    ) -> Result<String, HostError> {
        let old = self.read(first, Lines::ALL, stop)?;
        let new = self.read(second, Lines::ALL, stop)?;
        let names = [first, second].map(root::visible);
        compare::unified(&names, &old, &new, self.options.max_read_bytes)
    }

    /// The text of a file; `None` if the path means no file that can be read as text.
    pub(crate) fn text(&self, path: &str, stop: &CancellationToken) -> Option<String> {
        let bytes = self.read(path, Lines::ALL, stop).ok()?;
        String::from_utf8(bytes).ok()
    }
}

fn stopped() -> HostError {
    HostError::new("Error", "the cell was ended")
}
