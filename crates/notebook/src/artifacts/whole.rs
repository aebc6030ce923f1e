//! The whole text of a call, on its way into an artifact.
//!
//! In: raw bytes of its cells, as they come. Out: a file, if the result of the call had to be cut. The first bytes are held;
//! once there are more than a result shows, all goes to the file, so that the host holds no more of a longer text.

use std::sync::Arc;

use super::{Artifact, Artifacts, EVAL, NewArtifact};

/// The file of a whole text, or the reason why there is none.
pub(crate) type Kept = Result<Artifact, String>;

/// The whole text of a call.
#[derive(Debug)]
pub(crate) struct Whole {
    artifacts: Arc<Artifacts>,
    /// The text, before there is a file.
    held: Vec<u8>,
    most_held: usize,
    file: Option<NewArtifact>,
    /// Why there is no file.
    fault: Option<String>,
    /// The last byte.
    last: Option<u8>,
}

impl Whole {
    /// `most_held` is the most bytes that a result shows.
    pub(crate) fn new(artifacts: Arc<Artifacts>, most_held: usize) -> Self {
        Self { artifacts, held: Vec::new(), most_held, file: None, fault: None, last: None }
    }

    /// The head of the next cell, after an empty line.
    pub(crate) fn head(&mut self, head: &str) {
        if self.last.is_some() {
            self.end_line();
            self.push(b"\n");
        }
        self.block(head);
    }

    /// A text on lines of its own.
    pub(crate) fn block(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.end_line();
        self.push(text.as_bytes());
        self.end_line();
    }

    /// Bytes of a stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.last = bytes.last().copied().or(self.last);
        if let Some(file) = &mut self.file {
            file.push(bytes);
        } else if self.fault.is_none() {
            self.held.extend_from_slice(bytes);
            if self.held.len() > self.most_held {
                self.spill();
            }
        }
    }

    fn end_line(&mut self) {
        if self.last.is_some_and(|last| last != b'\n') {
            self.push(b"\n");
        }
    }

    /// Moves the text into a new file.
    fn spill(&mut self) {
        let held = std::mem::take(&mut self.held);
        match self.artifacts.create(EVAL, "txt") {
            Ok(mut file) => {
                file.push(&held);
                self.file = Some(file);
            }
            Err(fault) => self.fault = Some(fault),
        }
    }

    /// The call has ended. Unless its result was cut, there is no file.
    pub(crate) fn finish(mut self, is_cut: bool) -> Option<Kept> {
        if !is_cut {
            if let Some(file) = self.file.take() {
                self.artifacts.remove(file);
            }
            return None;
        }
        if self.file.is_none() && self.fault.is_none() {
            self.spill();
        }
        match (self.file, self.fault) {
            (Some(file), _) => Some(Ok(file.finish())),
            (None, fault) => Some(Err(fault.unwrap_or_default())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::ArtifactsOptions, *};

    #[test]
    fn a_text_that_was_cut_is_whole_in_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let artifacts = Artifacts::open(&ArtifactsOptions::new(folder.path())).expect("a folder");
        let artifacts = Arc::new(artifacts);
        for most_held in [0, 5, 1000] {
            let mut whole = Whole::new(Arc::clone(&artifacts), most_held);
            whole.head("[1/2] a");
            whole.push(b"x\x1b[1m");
            whole.push(b"\xff\n");
            whole.block("shown");
            whole.push(b"open");
            whole.head("[2/2]");
            whole.block("");
            whole.block("Error: b");
            let kept = whole.finish(true).expect("cut").expect("a file");
            let expected = b"[1/2] a\nx\x1b[1m\xff\nshown\nopen\n\n[2/2]\nError: b\n";
            assert_eq!(std::fs::read(kept.path).expect("a file"), expected);
        }
        let mut whole = Whole::new(artifacts, 0);
        whole.push(b"not cut");
        assert_eq!(whole.finish(false), None);
        let names = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(names, 3);
    }
}
