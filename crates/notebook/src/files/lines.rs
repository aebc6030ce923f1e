//! Lines of a file, within a bound.
//!
//! In: a reader, the first line and the number of lines. Out: their bytes with their ends. A file may be endless: no more is
//! held than the bound, and a signal stops the reading.

use std::io::{self, Read};

use isolane::HostError;
use tokio_util::sync::CancellationToken;

use crate::text::words::grouped;

/// The bytes that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The lines to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The first one, from 1.
    pub(crate) offset: u64,
    /// How many; all without it.
    pub(crate) limit: Option<u64>,
}

impl Lines {
    pub(crate) const ALL: Self = Self { offset: 1, limit: None };

    pub(super) fn are_all(self) -> bool {
        self == Self::ALL
    }
}

/// Why lines could not be read.
#[derive(Debug)]
pub(crate) enum ReadFault {
    Io(io::Error),
    /// They have more bytes than the bound.
    TooLong,
    /// The signal was cancelled.
    Stopped,
}

/// Reads lines of at most so many bytes together.
pub(crate) fn read_lines(
    mut from: impl Read,
    lines: Lines,
    most_bytes: u64,
    stop: &CancellationToken,
) -> Result<Vec<u8>, ReadFault> {
    let (mut chunk, mut kept) = (vec![0; CHUNK_BYTES], Vec::new());
    let (mut to_skip, mut left) = (lines.offset.saturating_sub(1), lines.limit);
    while left != Some(0) {
        if stop.is_cancelled() {
            return Err(ReadFault::Stopped);
        }
        let count = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(ReadFault::Io(error)),
        };
        let bytes = chunk.get(..count).unwrap_or_default();
        let (_, bytes) = bytes.split_at(after_lines(bytes, &mut to_skip));
        let end = match &mut left {
            None => bytes.len(),
            Some(left) if to_skip == 0 => after_lines(bytes, left),
            Some(_) => 0,
        };
        let wanted = bytes.get(..end).unwrap_or_default();
        if (kept.len() + wanted.len()) as u64 > most_bytes {
            return Err(ReadFault::TooLong);
        }
        kept.extend_from_slice(wanted);
    }
    Ok(kept)
}

/// The place behind so many lines, or the end; `count` is what is left of them.
fn after_lines(bytes: &[u8], count: &mut u64) -> usize {
    let mut at = 0;
    while *count > 0 {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(newline) = rest.iter().position(|byte| *byte == b'\n') else { return bytes.len() };
        at += newline + 1;
        *count -= 1;
    }
    at
}

/// The error of a text that is too long to be read.
pub(super) fn too_long(shown: &str, bytes: Option<u64>, most: u64) -> HostError {
    let most = grouped(most);
    let message = match bytes {
        Some(bytes) => format!(
            "{shown} has {} bytes, and at most {most} can be read at once: use offset and limit",
            grouped(bytes)
        ),
        None => format!("these lines of {shown} have more than {most} bytes"),
    };
    HostError::new("RangeError", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, offset: u64, limit: Option<u64>, most: u64) -> Option<String> {
        // One byte at a time: chunks may end anywhere.
        struct Slow<'t>(&'t [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
                into[0] = *first;
                self.0 = rest;
                Ok(1)
            }
        }
        let (lines, stop) = (Lines { offset, limit }, CancellationToken::new());
        let all = read_lines(text.as_bytes(), lines, most, &stop);
        let slow = read_lines(Slow(text.as_bytes()), lines, most, &stop);
        let text =
            |read: Result<Vec<u8>, _>| read.ok().map(|read| String::from_utf8(read).expect("text"));
        let (all, slow) = (text(all), text(slow));
        assert_eq!(all, slow);
        all
    }

    #[test]
    fn lines_have_their_ends() {
        let text = "one\ntwo\r\n\nfour";
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read(text, 1, None, 99), some(text));
        assert_eq!(read(text, 2, Some(1), 99), some("two\r\n"));
        assert_eq!(read(text, 3, None, 99), some("\nfour"));
        assert_eq!(read(text, 4, Some(9), 99), some("four"));
        assert_eq!(read(text, 5, None, 99), some(""));
        assert_eq!(read(text, 1, Some(0), 99), some(""));
        assert_eq!(read(text, 2, Some(1), 5), some("two\r\n"));
        assert_eq!(read(text, 2, Some(1), 4), None);
        assert_eq!(read(text, u64::MAX, None, 4), some(""));
    }

    #[test]
    fn a_signal_stops_an_endless_file() {
        let stop = CancellationToken::new();
        stop.cancel();
        let read = read_lines(io::repeat(b'x'), Lines { offset: 2, limit: None }, 9, &stop);
        assert!(matches!(read, Err(ReadFault::Stopped)));
        let read = read_lines(io::repeat(b'x'), Lines::ALL, 9, &CancellationToken::new());
        assert!(matches!(read, Err(ReadFault::TooLong)));
    }
}
