//! The context of a call: its place in a loop, its cancellation, its live output.
//!
//! In: what the caller wants to know and to decide during a call. Out: for an executor, whom to tell.

use std::{fmt, sync::Arc};

use isolane_child::OutputSink;
use tokio_util::sync::CancellationToken;

/// A receiver of live output. It is called on a thread of the library and must not block.
type Sink = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// The context of a call. `InvocationContext::default()` is that of a call by itself.
#[derive(Clone)]
pub struct InvocationContext {
    /// The run of the loop to which the call belongs, or an empty text.
    pub invocation_id: String,
    /// The turn of the loop, from 1; 0 outside of a loop.
    pub turn: u32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Ends the call, which is then an error of the kind `cancelled`.
    pub cancellation: CancellationToken,
    stdout: Option<Sink>,
    stderr: Option<Sink>,
}

impl InvocationContext {
    /// The same, with a receiver of all bytes of the standard output, as they come. It has no limit.
    #[must_use]
    pub fn with_stdout(self, sink: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self { stdout: Some(Arc::new(sink)), ..self }
    }

    /// The same for the standard error.
    #[must_use]
    pub fn with_stderr(self, sink: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self { stderr: Some(Arc::new(sink)), ..self }
    }

    /// Hands bytes of the program's standard output over, as an executor does it.
    pub fn stdout(&self, bytes: &[u8]) {
        if let Some(sink) = &self.stdout {
            sink(bytes);
        }
    }

    /// Hands bytes of the program's standard error over.
    pub fn stderr(&self, bytes: &[u8]) {
        if let Some(sink) = &self.stderr {
            sink(bytes);
        }
    }
}

impl OutputSink for InvocationContext {
    fn stdout(&self, bytes: &[u8]) {
        self.stdout(bytes);
    }

    fn stderr(&self, bytes: &[u8]) {
        self.stderr(bytes);
    }
}

impl Default for InvocationContext {
    fn default() -> Self {
        Self {
            invocation_id: String::new(),
            turn: 0,
            attempt: 1,
            cancellation: CancellationToken::new(),
            stdout: None,
            stderr: None,
        }
    }
}

impl fmt::Debug for InvocationContext {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invocation_id, turn, attempt, cancellation, .. } = self;
        out.debug_struct("InvocationContext")
            .field("invocation_id", invocation_id)
            .field("turn", turn)
            .field("attempt", attempt)
            .field("is_cancelled", &cancellation.is_cancelled())
            .finish_non_exhaustive()
    }
}
