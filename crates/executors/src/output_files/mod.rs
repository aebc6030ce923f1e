//! Output files: the regular files that a program has left, new or changed, within limits.
//!
//! In: the open folder, which no program writes to any more, and the input files. Out: files in the order of their names,
//! and a line for each that is left out. Neither links nor anything but a regular file is opened. `unix` and `windows` read
//! folders of the systems.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use isolane_child::push_line;

use crate::{ExecFile, checks::check_name};

/// The most files of a call.
const MOST_FILES: usize = 64;

/// The largest file.
const MOST_FILE_BYTES: u64 = 8 << 20;

/// The most bytes of all files together.
const MOST_TOTAL_BYTES: u64 = 32 << 20;

/// The most lines about files that are left out; one more counts the rest.
const MOST_LINES: usize = 100;

/// The most names that are read of a folder.
const MOST_NAMES: usize = 100_000;

/// A folder that is read.
pub(crate) trait Folder {
    /// The names in it that do not begin with a dot, in order, at most that many, and how many more there are.
    fn names(&self, most: usize) -> (Vec<Box<[u8]>>, u64);

    /// The size of a regular file. Nothing else has one.
    fn regular_file_bytes(&self, name: &[u8]) -> Option<u64>;

    /// Reads a regular file of at most that many bytes.
    fn read(&self, name: &[u8], bytes: u64) -> Option<Vec<u8>>;
}

/// Output files within the limits, and what is to be said of others.
#[derive(Debug, Default)]
pub(crate) struct OutputFiles {
    pub(crate) files: Vec<ExecFile>,
    total_bytes: u64,
    lines: Vec<String>,
    unsaid: u64,
}

impl OutputFiles {
    /// Reads the files of a folder.
    pub(crate) fn collect(folder: &impl Folder, inputs: &[ExecFile]) -> Self {
        let mut collected = Self::default();
        let (names, further) = folder.names(MOST_NAMES);
        collected.unsaid += further;
        for name in names {
            if let Some(bytes) = folder.regular_file_bytes(&name) {
                collected.take(folder, &name, bytes, inputs);
            }
        }
        collected
    }

    /// Takes the file of that name if it is new or changed, and fits.
    fn take(&mut self, folder: &impl Folder, name: &[u8], bytes: u64, inputs: &[ExecFile]) {
        let text = std::str::from_utf8(name).ok().filter(|name| check_name(name).is_ok());
        let input = inputs.iter().find(|input| Some(input.name.as_str()) == text);
        let is_same_size = input.is_some_and(|input| input.content.len() as u64 == bytes);
        // A file of the size of an input is read to see whether it has changed.
        let (Some(text), true) = (text, is_same_size || self.fits(bytes)) else {
            return self.leave_out(&String::from_utf8_lossy(name), bytes);
        };
        let Some(content) = folder.read(name, bytes) else {
            return self.leave_out(text, bytes);
        };
        if input.is_some_and(|input| input.content == content) {
            return;
        }
        self.add(ExecFile { name: text.to_owned(), content, mime_type: None });
    }

    /// Adds a file, unless it does not fit.
    pub(crate) fn add(&mut self, file: ExecFile) {
        let bytes = file.content.len() as u64;
        if !self.fits(bytes) {
            return self.leave_out(&file.name, bytes);
        }
        self.total_bytes += bytes;
        let mime_type = mime_guess::from_path(&file.name).first_raw().map(str::to_owned);
        self.files.push(ExecFile { mime_type, ..file });
    }

    /// Adds the lines about files that were left out to the standard error.
    pub(crate) fn tell(&self, stderr: &mut String) {
        for line in &self.lines {
            push_line(stderr, line);
        }
        if self.unsaid > 0 {
            push_line(stderr, &format!("isolane: {} more output files left out", self.unsaid));
        }
    }

    fn fits(&self, bytes: u64) -> bool {
        self.files.len() < MOST_FILES
            && bytes <= MOST_FILE_BYTES
            && self.total_bytes + bytes <= MOST_TOTAL_BYTES
    }

    /// Leaves a file out.
    pub(crate) fn leave_out(&mut self, name: &str, bytes: u64) {
        if self.lines.len() == MOST_LINES {
            self.unsaid += 1;
            return;
        }
        // A name may contain a line break.
        let name = name.escape_debug();
        self.lines.push(format!("isolane: output file '{name}' left out ({bytes} bytes)"));
    }
}
