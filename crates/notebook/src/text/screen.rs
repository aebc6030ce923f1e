//! The text of a cell as a terminal would show it: lines in the order in which their characters came.
//!
//! In: bytes of two streams, and blocks of displays. Out: a bounded text without leading blank lines and trailing white
//! space.

use super::{
    clean::{Cleaner, Piece},
    kept::Kept,
};

/// A stream of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// The text of a cell so far.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    stdout: Cleaner,
    stderr: Cleaner,
    lines: Lines,
}

#[derive(Clone, Debug)]
struct Lines {
    /// Whole lines, but for blank ones at either end.
    done: Kept,
    /// Blank lines that count if another line follows.
    blank: u64,
    line: Kept,
    /// Whether the line starts anew with the next character.
    is_returned: bool,
}

impl Screen {
    /// Of the text at most so many bytes are kept at either end.
    pub(crate) fn new(limit: usize) -> Self {
        let lines =
            Lines { done: Kept::new(limit), blank: 0, line: Kept::new(limit), is_returned: false };
        Self { stdout: Cleaner::default(), stderr: Cleaner::default(), lines }
    }

    pub(crate) fn stream(&mut self, stream: Stream, bytes: &[u8]) {
        let cleaner = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        cleaner.push(bytes, |piece| self.lines.take(piece));
    }

    /// Adds text that stands on lines of its own.
    pub(crate) fn block(&mut self, text: &str) {
        if !self.lines.line.is_empty() {
            self.lines.take(Piece::Newline);
        }
        let mut cleaner = Cleaner::default();
        cleaner.push(text.as_bytes(), |piece| self.lines.take(piece));
        cleaner.finish(|piece| self.lines.take(piece));
        self.lines.take(Piece::Newline);
    }

    /// The text.
    pub(crate) fn text(&self) -> Kept {
        let mut lines = self.lines.clone();
        for cleaner in [&self.stdout, &self.stderr] {
            cleaner.clone().finish(|piece| lines.take(piece));
        }
        lines.end_line(false);
        lines.done.trim_end();
        lines.done
    }
}

impl Lines {
    fn take(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Text(text) => {
                if std::mem::take(&mut self.is_returned) {
                    self.line.clear();
                }
                self.line.push(text);
            }
            Piece::Newline => self.end_line(true),
            Piece::Return => self.is_returned = true,
        }
    }

    fn end_line(&mut self, with_newline: bool) {
        self.is_returned = false;
        if self.line.is_blank() {
            if !self.done.is_empty() {
                self.blank += 1;
            }
        } else {
            let blank = std::mem::take(&mut self.blank);
            self.done.push_newlines(blank);
            self.done.append(&self.line);
            if with_newline {
                self.done.push("\n");
            }
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_blocks_stand_in_order() {
        let mut screen = Screen::new(100);
        screen.stream(Stream::Stdout, b"\n \na");
        screen.stream(Stream::Stderr, b"b\n\nc");
        screen.block("d\ne");
        screen.stream(Stream::Stdout, b"f \n\n");
        let text = screen.text();
        assert_eq!(text.whole().as_deref(), Some("ab\n\nc\nd\ne\nf"));
        assert_eq!(text.lines(), 6);
    }

    #[test]
    fn a_bar_of_progress_is_one_line() {
        let mut screen = Screen::new(10);
        for step in 0..1000 {
            screen.stream(Stream::Stderr, format!("\r{step} of 1000").as_bytes());
        }
        screen.stream(Stream::Stderr, b"\ndone");
        assert_eq!(screen.text().whole().as_deref(), Some("999 of 1000\ndone"));
    }
}
