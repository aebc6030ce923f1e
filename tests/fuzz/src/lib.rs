//! Fuzz targets: functions that take bytes and panic if a run has a forbidden result.
//!
//! Each target makes runs of its bytes through the crate's public face and checks all of them in the same way (`run`):
//! one settlement, in time, with a status that fits, readable messages, bounded texts, and a pristine realm for the
//! next run. A finding of a sanitizer or a panic ends the process.
//!
//! Built by `tests/fuzz/run` the targets are libFuzzer's. Built otherwise they replay the given files and folders, as
//! `tests/corpus.rs` does with the committed corpus.

pub mod cells;
pub mod clone;
mod equal;
pub mod interleaving;
pub mod modules;
mod program;
mod run;
pub mod source;
mod values;

use std::{fs, path::Path};

/// The `main` of a target.
#[macro_export]
macro_rules! target {
    ($check:path) => {
        #[cfg(feature = "libfuzzer")]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $check(data));

        #[cfg(not(feature = "libfuzzer"))]
        fn main() {
            for path in std::env::args_os().skip(1) {
                isolane_fuzz::replay(std::path::Path::new(&path), $check);
            }
        }
    };
}

/// Passes a file, or every file of a folder, to a target. Returns their number.
///
/// # Panics
/// If the target does, or if there is nothing to read.
pub fn replay(path: &Path, check: fn(&[u8])) -> usize {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a readable folder");
        return entries.map(|entry| replay(&entry.expect("an entry").path(), check)).sum();
    }
    println!("{}", path.display());
    check(&fs::read(path).expect("a readable file"));
    1
}
