//! The files of a run: those that the caller gave, and those that programs left.
//!
//! In: the output files of one program after another. Out: the files that the next one finds. The run keeps files within
//! bounds, whatever its programs leave.

use std::collections::BTreeMap;

use crate::{ExecFile, output_files::OutputFiles};

/// The most files that programs leave in one run.
const MOST_FILES: usize = 256;

/// The most bytes of them together.
const MOST_BYTES: usize = 64 << 20;

/// The files of a run.
pub(super) struct Files<'g> {
    given: &'g [ExecFile],
    /// The files that programs left, the newest of each name.
    left: BTreeMap<String, ExecFile>,
    left_bytes: usize,
}

impl<'g> Files<'g> {
    pub(super) fn new(given: &'g [ExecFile]) -> Self {
        Self { given, left: BTreeMap::new(), left_bytes: 0 }
    }

    /// The files that a program finds, in the order of names.
    pub(super) fn all(&self) -> Vec<ExecFile> {
        let all = self.given.iter().chain(self.left.values());
        let newest: BTreeMap<_, _> = all.map(|file| (file.name.as_str(), file)).collect();
        newest.into_values().cloned().collect()
    }

    /// Takes the files that a program left. For each that is not kept, `stderr` gets a line.
    pub(super) fn add(&mut self, files: Vec<ExecFile>, stderr: &mut String) {
        let mut left_out = OutputFiles::default();
        for file in files {
            let (bytes, older) = (file.content.len(), self.left.get(&file.name));
            let count = self.left.len() + usize::from(older.is_none());
            let total = self.left_bytes - older.map_or(0, |older| older.content.len()) + bytes;
            if count > MOST_FILES || total > MOST_BYTES {
                left_out.leave_out(&file.name, bytes as u64);
                continue;
            }
            self.left_bytes = total;
            self.left.insert(file.name.clone(), file);
        }
        left_out.tell(stderr);
    }

    /// The files that programs left, in the order of names.
    pub(super) fn into_left(self) -> Vec<ExecFile> {
        self.left.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, bytes: usize) -> ExecFile {
        ExecFile { name: name.to_owned(), content: vec![b'x'; bytes], mime_type: None }
    }

    fn names(files: &[ExecFile]) -> Vec<(&str, usize)> {
        files.iter().map(|file| (file.name.as_str(), file.content.len())).collect()
    }

    #[test]
    fn the_newest_of_a_name_counts_and_a_given_one_may_be_replaced() {
        let given = [file("c", 1), file("a", 1)];
        let mut files = Files::new(&given);
        let mut stderr = String::new();
        files.add(vec![file("b", 2), file("a", 2)], &mut stderr);
        files.add(vec![file("b", 3)], &mut stderr);
        assert_eq!(names(&files.all()), [("a", 2), ("b", 3), ("c", 1)]);
        assert_eq!(names(&files.into_left()), [("a", 2), ("b", 3)]);
        assert_eq!(stderr, "");
    }

    #[test]
    fn bytes_are_bounded_over_all_programs() {
        let given = [file("given", 9 << 20)];
        let mut files = Files::new(&given);
        let mut stderr = String::from("oops");
        files.add(vec![file("a", 40 << 20)], &mut stderr);
        files.add(vec![file("b", 25 << 20), file("c", 24 << 20)], &mut stderr);
        assert_eq!(stderr, "oops\nisolane: output file 'b' left out (26214400 bytes)\n");
        // A newer one takes the place of the older one; if it does not fit, the older one stays.
        files.add(vec![file("c", 25 << 20)], &mut stderr);
        files.add(vec![file("a", 1), file("b", 2)], &mut stderr);
        assert_eq!(names(&files.into_left()), [("a", 1), ("b", 2), ("c", 24 << 20)]);
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let mut files = Files::new(&[]);
        let mut stderr = String::new();
        files.add((0..300).map(|index| file(&format!("{index:03}"), 0)).collect(), &mut stderr);
        files.add(vec![file("007", 1)], &mut stderr);
        assert_eq!(stderr.lines().count(), 44);
        assert!(stderr.starts_with("isolane: output file '256' left out (0 bytes)\n"), "{stderr}");
        let left = files.into_left();
        assert_eq!((left.len(), left[7].content.len()), (256, 1));
    }
}
