//! Pages of files that forks inherit.
//!
//! In: the process that becomes the zygote, while it still sees files. Out: the same process. Every process that it
//! forks from then on inherits the touched pages of its program and libraries. A fork copies no page table of a mapping
//! that is backed by a file alone, since the pages can be read again. A worker would take some ninety faults for them,
//! which is more work than a small run. A fork copies the table of every mapping that has a page of its own, so each
//! mapping gets one, with the same bytes.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
};

/// The file through which a process can write to its read-only memory.
const OWN_MEMORY: &str = "/proc/self/mem";

/// Changes no byte. Where the system does not allow it, workers only start more slowly.
pub(crate) fn hand_on_files() {
    let memory = OpenOptions::new().read(true).write(true).open(OWN_MEMORY);
    if let (Ok(memory), Ok(mappings)) = (memory, fs::read_to_string("/proc/self/maps")) {
        for start in mappings.lines().filter_map(start_of_file) {
            let _ = rewrite(&memory, start);
        }
    }
}

/// The start of the mapping in that line, if it is backed by a file and not writable.
fn start_of_file(line: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    let (addresses, access) = (words.next()?, words.next()?);
    let path = words.nth(3)?;
    let private = access.starts_with("r-") && access.ends_with('p');
    let (start, _) = addresses.split_once('-')?;
    if private && path.starts_with('/') { u64::from_str_radix(start, 16).ok() } else { None }
}

fn rewrite(memory: &File, at: u64) -> io::Result<()> {
    let mut byte = [0];
    memory.read_exact_at(&mut byte, at)?;
    memory.write_all_at(&byte, at)
}

#[cfg(test)]
mod tests {
    use super::start_of_file;

    #[test]
    fn private_mappings_of_files_that_nobody_writes_to_are_found() {
        let of = |line| start_of_file(line);
        assert_eq!(
            of("7f00a000-7f00b000 r-xp 00001000 fe:00 12   /usr/lib/libc.so.6"),
            Some(0x7f00_a000)
        );
        assert_eq!(of("7f00a000-7f00b000 r--p 00000000 fe:00 12 /a b"), Some(0x7f00_a000));
        assert_eq!(of("7f00a000-7f00b000 rw-p 00001000 fe:00 12 /usr/lib/libc.so.6"), None);
        assert_eq!(of("7f00a000-7f00b000 r--s 00001000 fe:00 12 /usr/lib/libc.so.6"), None);
        assert_eq!(of("7f00a000-7f00b000 r-xp 00000000 00:00 0 [vdso]"), None);
        assert_eq!(of("7f00a000-7f00b000 r--p 00000000 00:00 0"), None);
        assert_eq!(of(""), None);
    }
}
