//! A folder below which paths are resolved, by the system as it opens them.
//!
//! In: a path as a cell wrote it. Out: an open file or folder below the root, or the error for the cell. On Linux one call,
//! `openat2`, resolves a path and opens it, so nothing that is moved meanwhile leads out; on other systems the library
//! opens part after part. No message has a path but those that the cell gave.

use std::{
    fmt, io,
    path::{Component, Path, PathBuf},
};

#[cfg(unix)]
use cap_std::fs::{FileTypeExt as _, OpenOptionsExt as _};
use cap_std::{
    ambient_authority,
    fs::{Dir, FileType, OpenOptions},
};
use isolane::HostError;

use super::replace::Target;

/// The longest path, in bytes.
const MOST_PATH_BYTES: usize = 4096;

/// The letters of a path that a message shows.
const SHOWN_LETTERS: usize = 200;

/// The folder.
pub(super) struct Root {
    dir: Dir,
    /// Its absolute paths: as it was given, and without links.
    paths: [PathBuf; 2],
}

/// A path that a cell named.
pub(super) struct Place {
    /// The path for messages, in quotes.
    pub(super) shown: String,
    /// The path from the root, which may still lead out of it.
    below: PathBuf,
    /// Whether it ends as paths of folders do.
    is_of_folder: bool,
}

impl fmt::Debug for Root {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Root").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let given = std::path::absolute(path)?;
        let dir = Dir::open_ambient_dir(&given, ambient_authority())?;
        let real = given.canonicalize()?;
        Ok(Self { dir, paths: [given, real] })
    }

    /// Whether it has the system's view of this process, such as its variables.
    pub(super) fn is_of_system(&self) -> bool {
        let [_, real] = &self.paths;
        real.parent().is_none() || ["/proc", "/sys"].iter().any(|own| real.starts_with(own))
    }

    pub(super) fn path(&self) -> &Path {
        let [given, _] = &self.paths;
        given
    }

    /// Takes a path as a cell wrote it: relative to the root, or absolute in it.
    pub(super) fn place(&self, given: &str) -> Result<Place, HostError> {
        let shown = shown(given);
        if given.is_empty() {
            return Err(HostError::new("TypeError", "the path is empty"));
        }
        if given.len() > MOST_PATH_BYTES {
            let message = format!("the path {shown} has more than {MOST_PATH_BYTES} bytes");
            return Err(HostError::new("RangeError", message));
        }
        if given.contains('\0') {
            return Err(HostError::new("TypeError", format!("the path {shown} has a NUL in it")));
        }
        if given.contains("://") {
            let message = format!("{shown} is a URL, and there are only files here");
            return Err(HostError::new("TypeError", message));
        }
        let path = Path::new(given);
        let is_absolute =
            path.has_root() || matches!(path.components().next(), Some(Component::Prefix(_)));
        let below = if is_absolute {
            let below = self.paths.iter().find_map(|root| path.strip_prefix(root).ok());
            below.ok_or_else(|| leads_out(&shown))?
        } else {
            path
        };
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let is_of_folder = given.ends_with(std::path::is_separator);
        Ok(Place { shown, below: below.to_owned(), is_of_folder })
    }

    /// Opens a file to read.
    pub(super) fn file(&self, place: &Place) -> Result<std::fs::File, HostError> {
        let fault = |error: io::Error| place.fault(&error);
        // To open a device may do something, so the kind is looked at first, and once more at the open file.
        place.regular(self.dir.metadata(&place.below).map_err(fault)?.file_type())?;
        let mut options = OpenOptions::new();
        nonblocking(options.read(true));
        let file = self.dir.open_with(&place.below, &options).map_err(fault)?;
        place.regular(file.metadata().map_err(fault)?.file_type())?;
        Ok(file.into_std())
    }

    /// Opens a folder.
    pub(super) fn folder(&self, place: &Place) -> Result<Dir, HostError> {
        let kind = self.dir.metadata(&place.below).map_err(|error| place.fault(&error))?;
        if !kind.is_dir() {
            let message = format!("{} is no folder", place.shown);
            return Err(HostError::new("NotADirectoryError", message));
        }
        self.dir.open_dir(&place.below).map_err(|error| place.fault(&error))
    }

    /// The place of a file to write. Links are followed, and folders that are not there are made.
    pub(super) fn target(&self, place: &Place) -> Result<Target, HostError> {
        let fault = |error: io::Error| place.fault(&error);
        if place.is_of_folder {
            return Err(place.is_a_folder());
        }
        let real = match self.dir.canonicalize(&place.below) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => place.below.clone(),
            real => real.map_err(fault)?,
        };
        let name = real.file_name().ok_or_else(|| place.is_a_folder())?.to_owned();
        let parent = real.parent().filter(|parent| !parent.as_os_str().is_empty());
        let (folder, path) = match parent {
            None => (self.dir.try_clone().map_err(fault)?, PathBuf::from(&name)),
            Some(parent) => {
                self.dir.create_dir_all(parent).map_err(fault)?;
                let folder = self.dir.open_dir(parent).map_err(fault)?;
                (folder, self.dir.canonicalize(parent).map_err(fault)?.join(&name))
            }
        };
        let known = match folder.symlink_metadata(&name) {
            // A link to nothing is replaced.
            Ok(known) if known.is_symlink() => None,
            Ok(known) => {
                place.regular(known.file_type())?;
                Some(known.permissions())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fault(error)),
        };
        Ok(Target { folder, name, path: slashed(&path), permissions: known })
    }
}

impl Place {
    /// # Errors
    /// For the cell, of everything else than a regular file.
    fn regular(&self, kind: FileType) -> Result<(), HostError> {
        if kind.is_file() {
            return Ok(());
        }
        if kind.is_dir() {
            return Err(self.is_a_folder());
        }
        Err(HostError::new("OSError", format!("{} is {}, no file", self.shown, kind_of(kind))))
    }

    fn is_a_folder(&self) -> HostError {
        HostError::new("IsADirectoryError", format!("{} is a folder", self.shown))
    }

    /// The error for the cell.
    pub(super) fn fault(&self, error: &io::Error) -> HostError {
        let shown = &self.shown;
        match error.kind() {
            // The library's own error, without a number of the system.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => leads_out(shown),
            io::ErrorKind::NotFound => {
                HostError::new("FileNotFoundError", format!("{shown} does not exist"))
            }
            io::ErrorKind::PermissionDenied => {
                HostError::new("PermissionError", format!("{shown}: permission denied"))
            }
            io::ErrorKind::NotADirectory => {
                HostError::new("NotADirectoryError", format!("a part of {shown} is no folder"))
            }
            io::ErrorKind::IsADirectory => self.is_a_folder(),
            _ => HostError::new("OSError", format!("{shown}: {}", io_words(error))),
        }
    }
}

fn leads_out(shown: &str) -> HostError {
    let message = format!("{shown} leads out of the folder of this notebook's files");
    HostError::new("PermissionError", message)
}

#[cfg(unix)]
fn kind_of(kind: FileType) -> &'static str {
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "something else"
    }
}

#[cfg(not(unix))]
fn kind_of(_kind: FileType) -> &'static str {
    "something else"
}

/// A pipe or a device that took a file's place is opened without waiting for its other end, and becomes nobody's terminal.
pub(crate) fn nonblocking(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    }
    #[cfg(not(unix))]
    let _ = options;
}

/// An error of the system in words, without a path.
pub(crate) fn io_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "it is no folder".to_owned(),
        io::ErrorKind::StorageFull => "no space is left".to_owned(),
        _ => error.to_string(),
    }
}

/// A path as messages show it, in quotes.
pub(crate) fn shown(path: &str) -> String {
    let mut letters = path.chars();
    let start = visible(&letters.by_ref().take(SHOWN_LETTERS).collect::<String>());
    let more = if letters.next().is_some() { "…" } else { "" };
    format!("'{start}{more}'")
}

/// A name whose control characters are written as escapes.
pub(super) fn visible(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_control() {
            text.extend(letter.escape_default());
        } else {
            text.push(letter);
        }
    }
    text
}

/// A path with slashes, on every system.
fn slashed(path: &Path) -> String {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let parts: Vec<_> = parts.map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}
