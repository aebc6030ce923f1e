//! An artifact that is being written.
//!
//! In: an open file and bytes, any number of them. Out: the artifact, with the bytes that are in the file and those that were
//! dropped: beyond the bound, or since the disk has failed.

use std::{
    fmt,
    io::{BufWriter, Write as _},
    path::PathBuf,
};

use cap_std::fs::File;

/// The bytes that are written at once.
const BUFFER_BYTES: usize = 64 << 10;

/// A file with what was too long for a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// `artifact://eval-3`: cells read it with `output('eval-3')`.
    pub uri: String,
    /// The absolute path of the file.
    pub path: PathBuf,
    /// The bytes in it.
    pub bytes: u64,
    /// The bytes that were dropped: beyond `max_bytes`, or after a fault of the disk.
    pub dropped_bytes: u64,
}

/// A file that is being written. Once the disk has failed the rest is dropped and counted.
pub(crate) struct NewArtifact {
    file: BufWriter<File>,
    name: String,
    /// The bytes that may still come.
    left: u64,
    artifact: Artifact,
    is_broken: bool,
}

impl fmt::Debug for NewArtifact {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NewArtifact").field("artifact", &self.artifact).finish_non_exhaustive()
    }
}

impl NewArtifact {
    /// A file that was just made, for at most so many bytes.
    pub(super) fn new(file: File, name: String, uri: String, path: PathBuf, most: u64) -> Self {
        Self {
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            name,
            left: most,
            artifact: Artifact { uri, path, bytes: 0, dropped_bytes: 0 },
            is_broken: false,
        }
    }

    /// Gives it up: the name of the file.
    pub(super) fn into_name(self) -> String {
        self.name
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let fits = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let (kept, rest) = bytes.split_at(fits);
        self.artifact.dropped_bytes += rest.len() as u64;
        if !self.is_broken && self.file.write_all(kept).is_ok() {
            self.left -= kept.len() as u64;
            self.artifact.bytes += kept.len() as u64;
        } else {
            self.artifact.dropped_bytes += kept.len() as u64;
            self.is_broken = true;
        }
    }

    pub(crate) fn finish(mut self) -> Artifact {
        let is_flushed = self.file.flush().is_ok();
        let Self { file, mut artifact, is_broken, .. } = self;
        // The system tells how much of it there is.
        if (is_broken || !is_flushed)
            && let Ok(status) = file.get_ref().metadata()
        {
            let all = artifact.bytes + artifact.dropped_bytes;
            artifact.bytes = status.len().min(all);
            artifact.dropped_bytes = all - artifact.bytes;
        }
        artifact
    }
}
