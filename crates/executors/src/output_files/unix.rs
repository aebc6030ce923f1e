//! Folders of Unix, by their descriptors: no path is followed.
//!
//! In: an open folder. Out: its names, and the bytes of its regular files.

use std::{fs::File, io::Read as _, os::fd::AsFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

use super::Folder;

impl<F: AsFd> Folder for F {
    fn names(&self, most: usize) -> (Vec<Box<[u8]>>, u64) {
        let Ok(entries) = Dir::read_from(self) else { return (Vec::new(), 0) };
        let (mut names, mut further) = (Vec::new(), 0);
        for entry in entries.map_while(Result::ok) {
            let name = entry.file_name().to_bytes();
            if name.starts_with(b".") || entry.file_type() == FileType::Directory {
                continue;
            }
            if names.len() == most {
                further += 1;
            } else {
                names.push(Box::from(name));
            }
        }
        names.sort_unstable();
        (names, further)
    }

    fn regular_file_bytes(&self, name: &[u8]) -> Option<u64> {
        let status = statat(self, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        is_regular.then(|| u64::try_from(status.st_size).unwrap_or(0))
    }

    fn read(&self, name: &[u8], bytes: u64) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(self, name, flags, Mode::empty()).ok()?);
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut content = Vec::new();
        file.take(bytes).read_to_end(&mut content).ok()?;
        Some(content)
    }
}
