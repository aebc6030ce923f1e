//! The console of a call: its logs as lines of two streams.
//!
//! In: logs as they come, from a thread of the core. Out: text within the limit of a stream, and the same live for the
//! caller. Values are shown as a console shows them; no code of the sandbox runs for that.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, MutexGuard, PoisonError},
};

use isolane::{
    ExecutionLog, LogLevel, Value, inspect,
    value::{Event, Reader, Str},
};
use isolane_child::Output;
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

use crate::InvocationContext;

/// The bytes of all values of a log that are no strings, as text. A log may name one object often, so that its text would be
/// far longer than its message.
const MOST_SHOWN_BYTES: usize = 256 << 10;

/// The same for a stream that leaves bytes out already: code that logs much is not to cost its host more time than itself.
const SHOWN_BYTES_OF_MANY: usize = 16 << 10;

/// The fewest bytes to which a value is cut.
const LEAST_BYTES: usize = 16;

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
        let line = if is_overfull { line::<SHOWN_BYTES_OF_MANY> } else { line::<MOST_SHOWN_BYTES> };
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

    /// The text of both streams. What comes later is dropped.
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

/// The arguments of a log as a line, with at most that many bytes of values that are no strings.
fn line<const BYTES: usize>(args: &Value) -> String {
    if let Some(text) = only_text(args) {
        return text;
    }
    let mut room = Room { bytes: BYTES };
    let Ok(Arguments { values, are_all }) = args.deserialize::<Arguments<BYTES>>() else {
        // A message that an isolate has written is a list.
        return room.inspect(args);
    };
    let mut rest = values.iter();
    let mut line = match values.first().and_then(text_of).filter(|text| text.contains('%')) {
        Some(format) => {
            rest.next();
            formatted(&format, &mut rest, &mut room)
        }
        None => rest.next().map(|value| room.show(value)).unwrap_or_default(),
    };
    for value in rest {
        line.push(' ');
        line.push_str(&room.show(value));
    }
    if !are_all {
        line.push_str(" …");
    }
    line
}

/// The arguments of a log, each with a copy of all that it names: of values that are no strings at most that many bytes, and
/// one more.
struct Arguments<const BYTES: usize> {
    values: Vec<Value>,
    /// Whether none was left out.
    are_all: bool,
}

impl<'de, const BYTES: usize> Deserialize<'de> for Arguments<BYTES> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Few::<BYTES>)
    }
}

struct Few<const BYTES: usize>;

impl<'de, const BYTES: usize> Visitor<'de> for Few<BYTES> {
    type Value = Arguments<BYTES>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of arguments")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let (mut values, mut bytes) = (Vec::new(), 0);
        while bytes <= BYTES {
            let Some(value) = from.next_element::<Value>()? else {
                return Ok(Arguments { values, are_all: true });
            };
            if !matches!(value.reader().event(), Ok(Event::String(_))) {
                bytes += value.nodes().len();
            }
            values.push(value);
        }
        let mut are_all = true;
        while from.next_element::<IgnoredAny>()?.is_some() {
            are_all = false;
        }
        Ok(Arguments { values, are_all })
    }
}

/// The room that is left for values that are no strings.
struct Room {
    bytes: usize,
}

impl Room {
    fn show(&mut self, value: &Value) -> String {
        text_of(value).unwrap_or_else(|| self.inspect(value))
    }

    fn inspect(&mut self, value: &Value) -> String {
        if self.bytes == 0 {
            return "…".to_owned();
        }
        let text = inspect(value, self.bytes.max(LEAST_BYTES));
        self.bytes = self.bytes.saturating_sub(text.len());
        text
    }
}

/// The text of a log that has one argument, a string: most have.
fn only_text(args: &Value) -> Option<String> {
    let mut reader = Reader::new(args.nodes());
    match reader.event().ok()? {
        Event::Array(1) => match reader.event().ok()? {
            Event::String(text) => Some(owned(&text)),
            _ => None,
        },
        _ => None,
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value.reader().event().ok()? {
        Event::String(text) => Some(owned(&text)),
        _ => None,
    }
}

fn owned(text: &Str<'_>) -> String {
    text.to_string_lossy()
}

/// The format with as many values in it as it asks for, as consoles do it.
fn formatted<'v>(
    format: &str,
    values: &mut impl Iterator<Item = &'v Value>,
    room: &mut Room,
) -> String {
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        let kind = rest[at + 1..].chars().next();
        let length = 1 + kind.map_or(0, char::len_utf8);
        let directive = &rest[at..at + length];
        rest = &rest[at + length..];
        match kind {
            Some('%') => text.push('%'),
            Some(kind @ ('s' | 'd' | 'i' | 'f' | 'j' | 'o' | 'O' | 'c')) => match values.next() {
                None => text.push_str(directive),
                Some(_) if kind == 'c' => {}
                Some(value) => text.push_str(&converted(kind, value, room)),
            },
            _ => text.push_str(directive),
        }
    }
    text.push_str(rest);
    text
}

fn converted(kind: char, value: &Value, room: &mut Room) -> String {
    if !matches!(kind, 'd' | 'i' | 'f') {
        return room.show(value);
    }
    let number = match value.reader().event() {
        Ok(Event::Int(number)) => f64::from(number),
        Ok(Event::Double(number)) => number,
        Ok(Event::Bool(value)) => f64::from(u8::from(value)),
        Ok(Event::BigInt { .. }) => return room.show(value),
        Ok(Event::String(text)) => text.to_string_lossy().trim().parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    };
    let number = if kind == 'i' { number.trunc() } else { number };
    Value::serialize(&number).map_or_else(|_| "NaN".to_owned(), |number| room.show(&number))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use isolane::value::Writer;

    use super::*;

    /// A log of one array of many strings, which is named so often.
    fn repeated(times: u32) -> ExecutionLog {
        let mut writer = Writer::new();
        writer.array(times);
        writer.array(2000);
        for _ in 0..2000 {
            writer.string("xxxxxxxxxxxx");
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
