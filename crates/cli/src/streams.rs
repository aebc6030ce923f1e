//! The program's own streams: lines of the sandbox's console as they come, and results.
//!
//! In: texts. Out: lines on stdout and stderr, each written at once, by a thread of their own. A reader that is slow
//! slows the code down. One that reads nothing keeps neither the time limit nor a signal from ending the program, and a
//! stream that nobody reads any more is no panic: the run is told to end.

use std::{
    collections::VecDeque,
    io::{self, IsTerminal, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use isolane::{ExecutionLog, LogLevel, RunInterceptor, console_line};
use tokio::sync::Notify;

/// The bytes of all values of a log that are no strings, as text.
const MOST_SHOWN_BYTES: usize = 256 << 10;

/// The bytes of lines that wait for their reader. The console waits while there are more.
const MOST_WAITING_BYTES: usize = 256 << 10;

/// Where a text goes.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// A line on stdout.
    Out,
    /// A line on stderr.
    Err,
    /// A text with colours, on stderr as it is.
    Styled,
}

/// The streams during one run.
#[derive(Debug)]
pub(crate) struct Streams {
    /// Whether the console is shown.
    is_live: bool,
    queue: Arc<Queue>,
}

/// The lines on their way to the thread that writes them.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// A line could not be written.
    closed: Notify,
    /// All lines are written.
    written: Notify,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<(Target, String)>,
    /// Their bytes, with those of the line that is being written.
    bytes: usize,
    /// The run ends: the console waits for the reader no longer.
    is_ending: bool,
    /// A line could not be written: no further one is.
    is_broken: bool,
    /// Nobody writes lines any more.
    is_over: bool,
    /// Why a line could not be written, the first time.
    failure: Option<io::Error>,
}

impl Streams {
    /// Streams that show the console if `is_live`.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn new(is_live: bool) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let writing = Arc::clone(&queue);
        // A reader may hold the thread up for ever, so nobody waits for its end.
        let writer = std::thread::Builder::new().name("isolane-streams".to_owned());
        drop(writer.spawn(move || writing.write_all())?);
        Ok(Self { is_live, queue })
    }

    /// Why a line could not be written, if one could not.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.queue.state().failure.take()
    }

    /// Resolves when a line could not be written: mostly because nobody reads the output any more.
    pub(crate) async fn closed(&self) {
        self.queue.closed.notified().await;
    }

    /// The run is about to end. From now on lines of the console are dropped while too many wait for their reader.
    pub(crate) fn end(&self) {
        self.queue.state().is_ending = true;
        self.queue.changed.notify_all();
    }

    /// Another run begins, whose console waits again.
    pub(crate) fn begin(&self) {
        self.queue.state().is_ending = false;
    }

    /// Writes a line to stdout, after those before it. Waits for nobody.
    pub(crate) fn out(&self, line: String) {
        self.queue.push(Target::Out, line);
    }

    /// Writes a text with colours to stderr, which shows them on a terminal. Waits for nobody.
    pub(crate) fn styled(&self, text: String) {
        self.queue.push(Target::Styled, text);
    }

    /// Resolves when all lines are written, or could not be.
    pub(crate) async fn written(&self) {
        self.queue.written().await;
    }

    /// Streams that write the lines of stderr which still wait, while a reader of stdout holds up those before them. No line
    /// is written twice.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn overtaking(&self) -> io::Result<Self> {
        let overtaking = Self::new(false)?;
        for (target, line) in self.queue.take_errors() {
            overtaking.queue.push(target, line);
        }
        Ok(overtaking)
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.queue.state().is_over = true;
        self.queue.changed.notify_all();
    }
}

impl RunInterceptor for Streams {
    fn logged(&self, log: &ExecutionLog) {
        if !self.is_live {
            return;
        }
        let line = console_line::<MOST_SHOWN_BYTES>(&log.args);
        let target = match log.level {
            LogLevel::Warn | LogLevel::Error => Target::Err,
            _ => Target::Out,
        };
        if self.queue.has_room() {
            self.queue.push(target, line);
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for a line; false if the run ends before.
    fn has_room(&self) -> bool {
        let is_full = |state: &mut State| {
            state.bytes > MOST_WAITING_BYTES && !state.is_ending && !state.is_broken
        };
        let waited = self.changed.wait_while(self.state(), is_full);
        let state = waited.unwrap_or_else(PoisonError::into_inner);
        state.bytes <= MOST_WAITING_BYTES
    }

    fn push(&self, target: Target, line: String) {
        let mut state = self.state();
        if state.is_broken {
            return;
        }
        state.bytes = state.bytes.saturating_add(line.len() + 1);
        state.lines.push_back((target, line));
        drop(state);
        self.changed.notify_all();
    }

    async fn written(&self) {
        loop {
            let written = self.written.notified();
            if self.state().is_written() {
                return;
            }
            written.await;
        }
    }

    /// Takes the lines of stderr, of which none is being written.
    fn take_errors(&self) -> VecDeque<(Target, String)> {
        let mut state = self.state();
        let lines = std::mem::take(&mut state.lines);
        let (out, errors) =
            lines.into_iter().partition(|(target, _)| matches!(target, Target::Out));
        state.lines = out;
        let bytes: usize = errors.iter().map(|(_, line): &(_, String)| line.len() + 1).sum();
        state.bytes = state.bytes.saturating_sub(bytes);
        errors
    }

    /// Writes lines until nobody pushes any.
    fn write_all(&self) {
        loop {
            let is_idle = |state: &mut State| state.lines.is_empty() && !state.is_over;
            let waited = self.changed.wait_while(self.state(), is_idle);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            let Some((target, line)) = state.lines.pop_front() else { return };
            drop(state);
            let written = write(target, &line);
            let mut state = self.state();
            state.bytes = state.bytes.saturating_sub(line.len() + 1);
            if let Err(error) = written {
                state.failure.get_or_insert(error);
                state.is_broken = true;
                state.bytes = 0;
                state.lines.clear();
                self.closed.notify_one();
            }
            let is_written = state.is_written();
            drop(state);
            self.changed.notify_all();
            if is_written {
                self.written.notify_waiters();
            }
        }
    }
}

impl State {
    fn is_written(&self) -> bool {
        self.bytes == 0
    }
}

fn write(target: Target, text: &str) -> io::Result<()> {
    match target {
        Target::Out => out(text),
        Target::Err => {
            let stream = io::stderr();
            let is_terminal = stream.is_terminal();
            put(stream.lock(), text, is_terminal)
        }
        Target::Styled => {
            // A stderr that nobody reads is no failure: the exit code tells the same.
            let _ = anstream::stderr().write_all(text.as_bytes());
            Ok(())
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
