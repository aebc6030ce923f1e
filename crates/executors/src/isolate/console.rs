//! The console of a call: its logs as lines of two streams.
//!
//! In: logs as they come, from a thread of the core. Out: text within the limit of a stream, and the same live for the
//! caller. Values are shown as a console shows them; no code of the sandbox runs for that.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, MutexGuard, PoisonError},
};

use isolane::{ExecutionLog, LogLevel, console_line};
use isolane_child::Output;

use crate::InvocationContext;

/// The bytes of all values of a log that are no strings, as text. A log may name one object often, so that its text would be
/// far longer than its message.
const MOST_SHOWN_BYTES: usize = 256 << 10;

/// The same for a stream that leaves bytes out already: code that logs much is not to cost its host more time than itself.
const SHOWN_BYTES_OF_MANY: usize = 16 << 10;

/// The streams of one call.
#[derive(Debug)]
pub(super) struct Console {
    context: InvocationContext,
    streams: Mutex<Option<Streams>>,
}

#[derive(Debug)]
struct Streams {
    stdout: Output,
    stderr: Output,
}

impl Console {
    /// A console with that limit for each stream.
    pub(super) fn new(context: InvocationContext, limit_bytes: usize) -> Self {
        let streams =
            Streams { stdout: Output::new(limit_bytes), stderr: Output::new(limit_bytes) };
        Self { context, streams: Mutex::new(Some(streams)) }
    }

    /// Adds the line of a log.
    pub(super) fn log(&self, log: &ExecutionLog) {
        let is_error = matches!(log.level, LogLevel::Warn | LogLevel::Error);
        let is_overfull = match &*self.streams() {
            // The call is over.
            None => return,
            Some(both) if is_error => both.stderr.is_overfull(),
            Some(both) => both.stdout.is_overfull(),
        };
        let line = if is_overfull {
            console_line::<SHOWN_BYTES_OF_MANY>
        } else {
            console_line::<MOST_SHOWN_BYTES>
        };
        self.write(is_error, &line(&log.args));
    }

    /// Adds a line to the standard output.
    pub(super) fn out(&self, line: &str) {
        self.write(false, line);
    }

    /// Adds a line to the standard error.
    pub(super) fn err(&self, line: &str) {
        self.write(true, line);
    }

    /// The text of both streams. Later text is dropped.
    pub(super) fn take(&self) -> (String, String) {
        let streams = self.streams().take();
        streams.map(|both| (both.stdout.into_text(), both.stderr.into_text())).unwrap_or_default()
    }

    /// Has what comes later dropped, at the latest when the returned value is dropped.
    pub(super) fn closing(&self) -> impl Drop {
        Closing(self)
    }

    fn write(&self, is_error: bool, line: &str) {
        let mut streams = self.streams();
        let Some(both) = &mut *streams else { return };
        let output = if is_error { &mut both.stderr } else { &mut both.stdout };
        output.push(line.as_bytes());
        output.push(b"\n");
        // Within the lock, so that lines keep their order. A receiver that panics has told so by itself, and the thread
        // serves other runs, too.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            for bytes in [line.as_bytes(), b"\n"].into_iter().filter(|bytes| !bytes.is_empty()) {
                if is_error {
                    self.context.stderr(bytes);
                } else {
                    self.context.stdout(bytes);
                }
            }
        }));
    }

    fn streams(&self) -> MutexGuard<'_, Option<Streams>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Closing<'c>(&'c Console);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use isolane::value::Writer;

    use super::*;

    /// A log of one array of long strings, which is named so often.
    fn repeated(times: u32) -> ExecutionLog {
        let mut writer = Writer::new();
        writer.array(times);
        writer.array(60);
        for _ in 0..60 {
            writer.string(&"x".repeat(500));
        }
        for _ in 1..times {
            // The list is object 0, and the array object 1.
            writer.reference(1);
        }
        ExecutionLog { level: LogLevel::Log, args: writer.finish(), timestamp: 0.0 }
    }

    /// A console, and the bytes that its caller was told.
    fn console(limit_bytes: usize) -> (Console, Arc<AtomicUsize>) {
        let told = Arc::new(AtomicUsize::new(0));
        let context = InvocationContext::default().with_stdout({
            let told = Arc::clone(&told);
            move |bytes| {
                told.fetch_add(bytes.len(), Ordering::Relaxed);
            }
        });
        (Console::new(context, limit_bytes), told)
    }

    #[test]
    fn text_of_an_object_that_is_named_often_is_bounded() {
        let (console, told) = console(1 << 20);
        console.log(&repeated(2));
        let few = told.swap(0, Ordering::Relaxed);
        assert!((60_000..70_000).contains(&few), "{few}");
        console.log(&repeated(20_000));
        let many = told.swap(0, Ordering::Relaxed);
        assert!((MOST_SHOWN_BYTES..MOST_SHOWN_BYTES + 100).contains(&many), "{many}");
    }

    #[test]
    fn logs_of_an_overfull_stream_are_short_and_those_after_the_end_are_not_told() {
        let (console, told) = console(1000);
        console.log(&repeated(2));
        told.store(0, Ordering::Relaxed);
        console.log(&repeated(20_000));
        let next = told.swap(0, Ordering::Relaxed);
        assert!((SHOWN_BYTES_OF_MANY..SHOWN_BYTES_OF_MANY + 100).contains(&next), "{next}");
        let (stdout, _) = console.take();
        assert!(stdout.ends_with("…\n"), "{stdout}");
        console.log(&repeated(20_000));
        assert_eq!(told.load(Ordering::Relaxed), 0);
        assert_eq!(console.take(), (String::new(), String::new()));
    }
}
