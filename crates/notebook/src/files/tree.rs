//! The tree of a folder as text.
//!
//! In: an open folder. Out: a line for each entry, indented by its depth; folders end with a slash, links with what they name.
//! Folders may hold any number of entries with any names: no more names are held than may be shown.

use std::{collections::BinaryHeap, ffi::OsString, io};

use cap_std::fs::{Dir, FileType};
use tokio_util::sync::CancellationToken;

use super::root::{io_words, visible};
use crate::text::words::grouped;

/// A tree that is being read.
pub(super) struct Tree<'s> {
    text: String,
    entries: u64,
    most_entries: u64,
    /// Whether entries are missing.
    is_cut: bool,
    hidden: bool,
    stop: &'s CancellationToken,
}

/// An entry of a folder, by its name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    name: OsString,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Folder,
    Link,
    Other,
}

impl<'s> Tree<'s> {
    pub(super) fn new(most_entries: u64, hidden: bool, stop: &'s CancellationToken) -> Self {
        Self { text: String::new(), entries: 0, most_entries, is_cut: false, hidden, stop }
    }

    /// Lists a folder, and folders in it down to so many levels.
    pub(super) fn list(&mut self, folder: &Dir, levels: u64) -> io::Result<()> {
        self.level(folder, 0, levels)
    }

    fn level(&mut self, folder: &Dir, depth: u64, levels: u64) -> io::Result<()> {
        for entry in self.entries_of(folder)? {
            if self.entries == self.most_entries || self.stop.is_cancelled() {
                self.is_cut = true;
                return Ok(());
            }
            self.entries += 1;
            let name = visible(&entry.name.to_string_lossy());
            self.text.extend((0..depth).map(|_| "  "));
            self.text.push_str(&name);
            match entry.kind {
                Kind::Folder => self.text.push('/'),
                Kind::Link => self.link(folder, &entry.name),
                Kind::Other => {}
            }
            let opened = (entry.kind == Kind::Folder && depth + 1 < levels)
                .then(|| folder.open_dir(&entry.name));
            self.text.push('\n');
            match opened {
                None => {}
                Some(Ok(inner)) => self.inner(&inner, depth + 1, levels),
                Some(Err(error)) => self.unreadable(depth + 1, &error),
            }
        }
        Ok(())
    }

    fn inner(&mut self, folder: &Dir, depth: u64, levels: u64) {
        if let Err(error) = self.level(folder, depth, levels) {
            self.unreadable(depth, &error);
        }
    }

    fn unreadable(&mut self, depth: u64, error: &io::Error) {
        self.text.extend((0..depth).map(|_| "  "));
        self.text.push_str(&format!("[{}]\n", io_words(error)));
    }

    fn link(&mut self, folder: &Dir, name: &OsString) {
        self.text.push_str(" ->");
        // One that is gone by now has no target.
        if let Ok(target) = folder.read_link_contents(name) {
            self.text.push(' ');
            self.text.push_str(&visible(&target.to_string_lossy()));
        }
    }

    /// The first entries of a folder by their names, and one more than may be shown.
    fn entries_of(&mut self, folder: &Dir) -> io::Result<Vec<Entry>> {
        let left = self.most_entries.saturating_sub(self.entries).saturating_add(1);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let mut first = BinaryHeap::new();
        for entry in folder.entries()? {
            if self.stop.is_cancelled() {
                break;
            }
            let entry = entry?;
            let name = entry.file_name();
            if !self.hidden && name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let kind = kind_of(entry.file_type()?);
            first.push(Entry { name, kind });
            if first.len() > left {
                first.pop();
            }
        }
        Ok(first.into_sorted_vec())
    }

    /// The text, and the number of entries in it.
    pub(super) fn finish(mut self) -> (String, u64) {
        if self.is_cut {
            self.text.push_str(&format!("[cut after {} entries]\n", grouped(self.entries)));
        }
        (self.text, self.entries)
    }
}

fn kind_of(kind: FileType) -> Kind {
    if kind.is_dir() {
        Kind::Folder
    } else if kind.is_symlink() {
        Kind::Link
    } else {
        Kind::Other
    }
}
