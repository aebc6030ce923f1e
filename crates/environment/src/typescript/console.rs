//! The console of an execution: its logs as lines of two streams, while the code runs.
//!
//! In: logs as they come, from a thread of the core. Out: text for the bindings. Values are shown as a console shows them;
//! no code of the sandbox runs for that.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use isolane::{
    CallRequest, CellRequest, Error, ExecutionLog, LogLevel, RunInterceptor, SessionInterceptor,
    console_line,
};

use super::Reporter;

/// The bytes of all values of a log that are no strings, as text.
const MOST_SHOWN_BYTES: usize = 256 << 10;

/// The same for code that has printed very much: it is not to cost its host more time than itself.
const SHOWN_BYTES_OF_MANY: usize = 16 << 10;

/// That much is very much.
const MANY_BYTES: usize = 8 << 20;

/// The bytes of one call of a binding.
const MOST_BYTES: usize = 4 << 20;

/// The console of one execution.
#[derive(Debug)]
pub(super) struct Console {
    bindings: Reporter,
    printed: AtomicUsize,
}

impl Console {
    pub(super) fn new(bindings: Reporter) -> Self {
        Self { bindings, printed: AtomicUsize::new(0) }
    }
}

impl RunInterceptor for Console {
    fn logged(&self, log: &ExecutionLog) {
        let has_many = self.printed.load(Ordering::Relaxed) > MANY_BYTES;
        let show = if has_many {
            console_line::<SHOWN_BYTES_OF_MANY>
        } else {
            console_line::<MOST_SHOWN_BYTES>
        };
        let mut line = show(&log.args);
        line.push('\n');
        self.printed.fetch_add(line.len(), Ordering::Relaxed);
        let is_error = matches!(log.level, LogLevel::Warn | LogLevel::Error);
        let eid = self.bindings.eid();
        for bytes in line.as_bytes().chunks(MOST_BYTES) {
            // Neither the number nor the size can be wrong.
            let _ = if is_error {
                self.bindings.stderr(eid, bytes)
            } else {
                self.bindings.stdout(eid, bytes)
            };
        }
    }
}

/// The interceptor of a session: gives its one cell the console.
#[derive(Debug)]
pub(super) struct Consoles(pub(super) Arc<Console>);

impl SessionInterceptor for Consoles {
    fn cell(&self, _cell: &mut CellRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        Ok(Arc::clone(&self.0) as Arc<dyn RunInterceptor>)
    }

    fn call(&self, _call: &mut CallRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        Ok(self.outside())
    }

    fn outside(&self) -> Arc<dyn RunInterceptor> {
        Arc::new(Outside)
    }
}

/// The interceptor outside of the cell.
#[derive(Debug)]
struct Outside;

impl RunInterceptor for Outside {}
