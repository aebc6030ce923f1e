//! Folders of Windows, by their paths: the programs of the folder have ended.
//!
//! In: a path. Out: its names, and the bytes of its regular files.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

use super::Folder;

impl Folder for PathBuf {
    fn names(&self, most: usize) -> (Vec<Box<[u8]>>, u64) {
        let Ok(entries) = fs::read_dir(self) else { return (Vec::new(), 0) };
        let (mut names, mut further) = (Vec::<Box<[u8]>>::new(), 0);
        for entry in entries.map_while(Result::ok) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            if names.len() == most {
                further += 1;
            } else {
                names.push(name.as_bytes().into());
            }
        }
        names.sort_unstable();
        (names, further)
    }

    fn regular_file_bytes(&self, name: &[u8]) -> Option<u64> {
        let status = fs::symlink_metadata(within(self, name)?).ok()?;
        status.is_file().then_some(status.len())
    }

    fn read(&self, name: &[u8], bytes: u64) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        File::open(within(self, name)?).ok()?.take(bytes).read_to_end(&mut content).ok()?;
        Some(content)
    }
}

fn within(folder: &Path, name: &[u8]) -> Option<PathBuf> {
    Some(folder.join(std::str::from_utf8(name).ok()?))
}
