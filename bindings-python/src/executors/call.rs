//! Calls of executors: their live output and their ends, for the thread or loop that made them.

use std::{collections::VecDeque, future::Future, mem, sync::Arc};

use isolane_executors::{
    CancellationToken, CodeExecutionResult, ExecutorError, ExecutorErrorKind, InvocationContext,
    ProgramConfinement,
};
use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{IntoPyDict, PyBytes, PyList},
};

use super::{data::result_out, inbox::Inbox};
use crate::{host::PyMailbox, lock::Lock};

/// The most bytes of live output that wait for Python. More is left out, with a line that says so.
const MOST_WAITING_BYTES: usize = 4 << 20;

/// The end of a call.
pub(super) enum Done {
    Result(CodeExecutionResult),
    Nothing,
    Confinement(ProgramConfinement),
}

pub(super) type Ended = Result<Done, ExecutorError>;

/// Output, and the end if it is there.
type Taken<'py> = (Bound<'py, PyList>, Option<(bool, Bound<'py, PyAny>)>);

/// A call that goes on. Dropping it cancels the call.
#[pyclass(name = "ExecutorCall", module = "isolane._isolane", frozen)]
pub(crate) struct PyExecutorCall {
    news: Arc<News>,
    cancellation: CancellationToken,
    process: u32,
}

/// The output and the end of a call that Python has not taken yet.
pub(super) struct News {
    inbox: Inbox<()>,
    waiting: Lock<Waiting>,
}

#[derive(Default)]
struct Waiting {
    outputs: VecDeque<(bool, Vec<u8>)>,
    bytes: usize,
    left_out: usize,
    ended: Option<Ended>,
}

impl News {
    /// Adds bytes of a stream.
    fn output(&self, is_stdout: bool, bytes: &[u8]) {
        let mut waiting = self.waiting.lock();
        let kept = bytes.len().min(MOST_WAITING_BYTES - waiting.bytes);
        let (kept, rest) = bytes.split_at(kept);
        waiting.bytes += kept.len();
        waiting.left_out += rest.len();
        match waiting.outputs.back_mut() {
            Some((of_stdout, text)) if *of_stdout == is_stdout => text.extend_from_slice(kept),
            _ if kept.is_empty() => {}
            _ => waiting.outputs.push_back((is_stdout, kept.to_vec())),
        }
        drop(waiting);
        self.inbox.push(());
    }

    fn end(&self, ended: Ended) {
        let mut waiting = self.waiting.lock();
        if waiting.ended.is_none() {
            waiting.ended = Some(ended);
        }
        drop(waiting);
        self.inbox.push_last(());
    }
}

/// Ends a call whose future panics.
struct EndGuard(Arc<News>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        let message = "the executor panicked";
        self.0.end(Err(ExecutorError::new(ExecutorErrorKind::Other, message)));
    }
}

impl PyExecutorCall {
    /// A call that has not begun. Its events have that number.
    pub(super) fn new(mailbox: &PyMailbox, number: u64) -> Self {
        let news = News { inbox: Inbox::new(mailbox, number), waiting: Lock::default() };
        let cancellation = CancellationToken::new();
        Self { news: Arc::new(news), cancellation, process: std::process::id() }
    }

    /// The context of the call, which delivers the streams that Python wants.
    pub(super) fn context(
        &self,
        (invocation_id, turn, attempt): (String, u32, u32),
        (wants_stdout, wants_stderr): (bool, bool),
    ) -> InvocationContext {
        let mut context = InvocationContext::default();
        context.cancellation = self.cancellation.clone();
        (context.invocation_id, context.turn, context.attempt) = (invocation_id, turn, attempt);
        if wants_stdout {
            let news = Arc::clone(&self.news);
            context = context.with_stdout(move |bytes| news.output(true, bytes));
        }
        if wants_stderr {
            let news = Arc::clone(&self.news);
            context = context.with_stderr(move |bytes| news.output(false, bytes));
        }
        context
    }

    /// Runs the future of the call.
    pub(super) fn spawn(&self, call: impl Future<Output = Ended> + Send + 'static) {
        let news = Arc::clone(&self.news);
        drop(isolane::spawn(async move {
            let guard = EndGuard(news);
            let ended = call.await;
            guard.0.end(ended);
        }));
    }

    /// Ends the call at once.
    pub(super) fn end(&self, ended: Ended) {
        self.news.end(ended);
    }
}

impl Drop for PyExecutorCall {
    fn drop(&mut self) {
        // In a forked child the call is its parent's.
        if self.process == std::process::id() {
            self.cancellation.cancel();
        } else {
            mem::forget(self.cancellation.clone());
            mem::forget(Arc::clone(&self.news));
        }
    }
}

#[pymethods]
impl PyExecutorCall {
    /// Ends the call, which then has an error of the kind `cancelled`.
    fn cancel(&self) {
        if self.process == std::process::id() {
            self.cancellation.cancel();
        }
    }

    /// The output that has come, as pairs of whether it is of the standard output, and bytes; and the end, if it is
    /// there: whether the call succeeded, with its result, or with the kind and the message of its error.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Taken<'py>> {
        self.news.inbox.take();
        let Waiting { outputs, left_out, ended, .. } = mem::take(&mut *self.news.waiting.lock());
        let list = PyList::empty(py);
        let last = outputs.back().map(|(is_stdout, _)| *is_stdout);
        for (is_stdout, bytes) in outputs {
            list.append((is_stdout, PyBytes::new(py, &bytes)))?;
        }
        if left_out > 0 {
            let line = format!("\n... {left_out} bytes left out ...\n");
            list.append((last.unwrap_or(true), PyBytes::new(py, line.as_bytes())))?;
        }
        let ended = match ended {
            None => None,
            Some(Ok(Done::Nothing)) => Some((true, py.None().into_bound(py))),
            Some(Ok(Done::Result(result))) => {
                Some((true, result_out(py, result).into_bound_py_any(py)?))
            }
            Some(Ok(Done::Confinement(confinement))) => {
                let had = confinement.items.items().into_py_dict(py)?;
                had.set_item("memory", confinement.memory.as_str())?;
                Some((true, had.into_any()))
            }
            Some(Err(error)) => {
                Some((false, (error.kind().as_str(), error.message()).into_bound_py_any(py)?))
            }
        };
        Ok((list, ended))
    }
}
