//! The program's own streams: lines of the sandbox's console as they come, and results.
//!
//! In: texts. Out: lines on stdout and stderr, each written at once. A stream that nobody reads any more is no panic: the
//! run is told to end.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
};

use isolane::{ExecutionLog, LogLevel, RunInterceptor, console_line};
use tokio::sync::Notify;

/// The bytes of all values of a log that are no strings, as text.
const MOST_SHOWN_BYTES: usize = 256 << 10;

/// The streams during one run.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Whether the console is shown.
    is_live: bool,
    /// Why a line could not be written, the first time.
    failure: Mutex<Option<io::Error>>,
    closed: Notify,
}

impl Streams {
    /// Streams that show the console if `is_live`.
    pub(crate) fn new(is_live: bool) -> Self {
        Self { is_live, ..Self::default() }
    }

    /// Why a line could not be written, if one could not.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Resolves when a line could not be written: mostly because nobody reads the output any more.
    pub(crate) async fn closed(&self) {
        self.closed.notified().await;
    }
}

impl RunInterceptor for Streams {
    fn logged(&self, log: &ExecutionLog) {
        if !self.is_live {
            return;
        }
        let line = console_line::<MOST_SHOWN_BYTES>(&log.args);
        let written = match log.level {
            LogLevel::Warn | LogLevel::Error => {
                let stream = io::stderr();
                let is_terminal = stream.is_terminal();
                put(stream.lock(), &line, is_terminal)
            }
            _ => out(&line),
        };
        if let Err(error) = written {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            self.closed.notify_one();
        }
    }
}

/// Writes a line to stdout.
pub(crate) fn out(line: &str) -> io::Result<()> {
    let stream = io::stdout();
    let is_terminal = stream.is_terminal();
    put(stream.lock(), line, is_terminal)
}

fn put(mut stream: impl Write, line: &str, is_terminal: bool) -> io::Result<()> {
    let line = if is_terminal { harmless(line) } else { line.to_owned() };
    stream.write_all(format!("{line}\n").as_bytes())?;
    stream.flush()
}

/// A text of the sandbox in which a terminal obeys nothing but tabs and line breaks.
pub(crate) fn harmless(text: &str) -> String {
    let is_obeyed = |char: char| char.is_control() && char != '\t' && char != '\n';
    text.replace(is_obeyed, "\u{fffd}")
}
