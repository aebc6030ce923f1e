//! Artifacts: files of a folder of the host that keep what is too long for a result.
//!
//! In: texts, bytes, a label. Out: new files `<label>-<n>.<extension>` for their owner alone, and what cells read of them.
//! No file is written over; `n` goes on after what is in the folder. `names` has the rules of names, `file` is one that is
//! being written, `whole` the whole text of a call on its way into one.

mod file;
mod names;
mod whole;

use std::{
    collections::HashMap,
    fmt, io,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

#[cfg(unix)]
use cap_std::fs::OpenOptionsExt as _;
use cap_std::{
    ambient_authority,
    fs::{Dir, OpenOptions},
};
use isolane::{HostError, Spelling};
use serde_json::Value as Json;
use tokio_util::sync::CancellationToken;

pub use self::file::Artifact;
pub(crate) use self::whole::{Kept, Whole};
use self::{
    file::NewArtifact,
    names::{is_id, last_number, safe_label},
};
use crate::{
    Misuse,
    files::{Lines, ReadFault, io_words, nonblocking, read_lines, shown},
    given::{Group, MOST},
};

/// The label of what a call shows.
pub(crate) const EVAL: &str = "eval";

/// The most bytes that a cell reads of an artifact at once.
const MOST_READ_BYTES: u64 = 16 << 20;

/// The names that are tried for a new file: others may write into the folder, too.
const MOST_TRIES: u64 = 10_000;

/// The extensions of artifacts, those of text first.
const EXTENSIONS: [&str; 8] = ["txt", "json", "png", "jpg", "gif", "webp", "svg", "bin"];

/// The folder for artifacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactsOptions {
    /// The folder, which is made if it is not there. It should have nothing else in it: cells can read it by the names of
    /// artifacts.
    pub dir: PathBuf,
    /// The most bytes of one file, 256 MiB. The rest is dropped and counted.
    pub max_bytes: u64,
}

impl ArtifactsOptions {
    /// A folder, with the usual bound.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), max_bytes: 256 << 20 }
    }

    pub(crate) fn read(given: &Json, spelling: Spelling) -> Result<Self, Misuse> {
        let group = Group::new("artifacts.", given, &["dir", "max_bytes"], spelling)?;
        let dir = group.text("dir")?;
        let usual = Self::new(dir.ok_or_else(|| Misuse::new(group.path("dir"), " is missing"))?);
        let max_bytes = group.count("max_bytes", 1, MOST)?.unwrap_or(usual.max_bytes);
        Ok(Self { max_bytes, ..usual })
    }
}

/// The artifacts of a notebook and of its children.
pub(crate) struct Artifacts {
    dir: Dir,
    path: PathBuf,
    max_bytes: u64,
    /// The next number of each label that was used.
    next: Mutex<HashMap<String, u64>>,
}

impl fmt::Debug for Artifacts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Artifacts").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Artifacts {
    /// Opens the folder; makes it if it is not there.
    pub(crate) fn open(options: &ArtifactsOptions) -> Result<Self, Misuse> {
        let opened = || {
            let path = std::path::absolute(&options.dir)?;
            std::fs::create_dir_all(&path)?;
            let dir = Dir::open_ambient_dir(&path, ambient_authority())?;
            let last = last_number(&dir, EVAL)?;
            Ok((path, dir, HashMap::from([(EVAL.to_owned(), last + 1)])))
        };
        let (path, dir, next) = opened().map_err(|error: io::Error| {
            let rest = format!(": the folder cannot be opened: {}", io_words(&error));
            Misuse::new("artifacts.dir", &rest)
        })?;
        Ok(Self { dir, path, max_bytes: options.max_bytes, next: Mutex::new(next) })
    }

    /// Keeps a text, such as the result of an agent. It blocks.
    ///
    /// # Errors
    /// The reason why there is no file.
    pub(crate) fn put(&self, label: &str, text: &str) -> Result<Artifact, String> {
        self.keep(label, "txt", text.as_bytes())
    }

    /// Keeps bytes.
    ///
    /// # Errors
    /// The reason why there is no file.
    pub(crate) fn keep(
        &self,
        label: &str,
        extension: &str,
        bytes: &[u8],
    ) -> Result<Artifact, String> {
        let mut file = self.create(label, extension)?;
        file.push(bytes);
        Ok(file.finish())
    }

    /// Begins a new file.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) fn create(&self, label: &str, extension: &str) -> Result<NewArtifact, String> {
        let label = safe_label(label);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        options.mode(0o600);
        // While one is made no other is, so that no number is used twice.
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let first = match next.get(&label) {
            Some(number) => *number,
            None => last_number(&self.dir, &label).map_err(|error| io_words(&error))? + 1,
        };
        for number in first..first.saturating_add(MOST_TRIES) {
            let id = format!("{label}-{number}");
            let name = format!("{id}.{extension}");
            match self.dir.open_with(&name, &options) {
                Ok(file) => {
                    next.insert(label, number + 1);
                    let uri = format!("artifact://{id}");
                    let path = self.path.join(&name);
                    return Ok(NewArtifact::new(file, name, uri, path, self.max_bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io_words(&error)),
            }
        }
        Err("its folder has too many files".to_owned())
    }

    /// Removes a file that is not needed after all.
    fn remove(&self, file: NewArtifact) {
        // One that is gone already is gone.
        let _ = self.dir.remove_file(file.into_name());
    }

    /// Reads lines of an artifact: its bytes, and whether they are text. It blocks.
    ///
    /// # Errors
    /// For the cell: there is no such artifact, or the lines are too long.
    pub(crate) fn read(
        &self,
        id: &str,
        lines: Lines,
        stop: &CancellationToken,
    ) -> Result<(Vec<u8>, bool), HostError> {
        let id = id.strip_prefix("artifact://").unwrap_or(id);
        let missing = || {
            let message = format!("there is no artifact {}", shown(id));
            HostError::new("FileNotFoundError", message)
        };
        if !is_id(id) {
            return Err(missing());
        }
        let open = |extension: &str| {
            let mut options = OpenOptions::new();
            nonblocking(options.read(true));
            let file = self.dir.open_with(format!("{id}.{extension}"), &options).ok()?;
            let is_file = file.metadata().ok()?.is_file();
            is_file.then_some((file, matches!(extension, "txt" | "json" | "svg")))
        };
        let (file, is_text) = EXTENSIONS.into_iter().find_map(open).ok_or_else(missing)?;
        let read = read_lines(file, lines, MOST_READ_BYTES, stop).map_err(|fault| match fault {
            ReadFault::Io(error) => {
                HostError::new("OSError", format!("{}: {}", shown(id), io_words(&error)))
            }
            ReadFault::TooLong => {
                let mib = MOST_READ_BYTES >> 20;
                let message =
                    format!("{} has more than {mib} MiB there: use offset and limit", shown(id));
                HostError::new("RangeError", message)
            }
            ReadFault::Stopped => HostError::new("Error", "the cell was ended"),
        });
        read.map(|bytes| (bytes, is_text))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn opened(dir: &Path, max_bytes: u64) -> Artifacts {
        Artifacts::open(&ArtifactsOptions { dir: dir.to_owned(), max_bytes }).expect("a folder")
    }

    fn text(artifacts: &Artifacts, id: &str) -> Result<String, String> {
        let stop = CancellationToken::new();
        let read = artifacts.read(id, Lines::ALL, &stop);
        read.map(|(bytes, _)| String::from_utf8(bytes).expect("text"))
            .map_err(|error| error.message)
    }

    #[test]
    fn numbers_go_on_and_nothing_is_written_over() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["eval-2.txt", "eval-7.png", "eval-x.txt", "eval-99999999999999999999.txt"] {
            std::fs::write(folder.path().join(name), name).expect("written");
        }
        let artifacts = opened(folder.path(), 100);
        std::fs::write(folder.path().join("eval-8.txt"), "of another").expect("written");
        let kept = artifacts.keep(EVAL, "txt", b"mine").expect("kept");
        assert_eq!(
            (kept.uri.as_str(), kept.bytes, kept.dropped_bytes),
            ("artifact://eval-9", 4, 0)
        );
        assert_eq!(kept.path, folder.path().join("eval-9.txt"));
        assert_eq!(text(&artifacts, "eval-8").as_deref(), Ok("of another"));
        assert_eq!(text(&artifacts, "artifact://eval-9").as_deref(), Ok("mine"));
        let of_agent = artifacts.put("find ../bugs", "none").expect("kept");
        assert_eq!(of_agent.uri, "artifact://find----bugs-1");
        assert_eq!(text(&artifacts, "find----bugs-1").as_deref(), Ok("none"));
    }

    #[test]
    fn the_rest_of_a_long_one_is_dropped_and_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let artifacts = opened(folder.path(), 6);
        let mut file = artifacts.create(EVAL, "txt").expect("begun");
        for part in ["abcd", "efgh", "ij"] {
            file.push(part.as_bytes());
        }
        let kept = file.finish();
        assert_eq!((kept.bytes, kept.dropped_bytes), (6, 4));
        assert_eq!(text(&artifacts, "eval-1").as_deref(), Ok("abcdef"));
    }

    #[test]
    fn names_that_are_no_artifacts_are_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("dir");
        std::fs::write(folder.path().join("secret-1.txt"), "secret").expect("written");
        let artifacts = opened(&dir, 100);
        std::fs::write(dir.join("notes.txt"), "private").expect("written");
        for id in
            ["", "notes", "../secret-1", "a/../../secret-1", "-", "eval-", "eval-1\0", "eval-1.txt"]
        {
            assert!(
                text(&artifacts, id)
                    .expect_err("no artifact")
                    .starts_with("there is no artifact '")
            );
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret-1.txt", dir.join("link-1.txt")).expect("a link");
            assert_eq!(text(&artifacts, "link-1"), Err("there is no artifact 'link-1'".to_owned()));
        }
    }

    #[test]
    #[cfg(unix)]
    fn files_are_their_owners_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let kept = opened(folder.path(), 100).keep(EVAL, "json", b"[]").expect("kept");
        let mode = std::fs::metadata(kept.path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
