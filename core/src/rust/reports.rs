//! Reports as a stream.
//!
//! In: a run that reports. Out: [`Reports`], each report once and in order, whoever else reads them. A stream keeps
//! only the reports that it fetched and has not yielded. The run keeps its reports until the result is taken.
//! Afterwards the [`Feed`] keeps them, which all streams and the handle of a run share.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    vec,
};

use futures_core::Stream;

use super::side::HostSide;
use crate::{ExecutionResult, RunHandle, Value, os::sync::Mutex};

/// The reports of a run, from the first one on, as they come: see [`Execution::report_stream`].
///
/// Ends when the run has settled and all its reports were yielded. Dropping it does nothing to the run.
///
/// [`Execution::report_stream`]: crate::Execution::report_stream
#[must_use = "a stream yields nothing unless it is polled"]
pub struct Reports {
    /// `None` when it has ended.
    source: Option<Source>,
    fetched: vec::IntoIter<Value>,
    /// How many were fetched, of all.
    count: usize,
}

struct Source {
    remote: RunHandle,
    side: Arc<HostSide>,
    number: u64,
}

impl Reports {
    pub(super) fn new(remote: &RunHandle, side: &Arc<HostSide>) -> Self {
        let number = if side.is_here() { side.feed.enter() } else { 0 };
        let source = Source { remote: remote.clone(), side: Arc::clone(side), number };
        Self { source: Some(source), ..Self::ended() }
    }

    /// The stream of a run that was never started.
    pub(super) fn ended() -> Self {
        Self { source: None, fetched: Vec::new().into_iter(), count: 0 }
    }
}

impl Stream for Reports {
    type Item = Value;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Value>> {
        let this = self.get_mut();
        if let Some(report) = this.fetched.next() {
            return Poll::Ready(Some(report));
        }
        let Some(Source { remote, side, number }) = &this.source else { return Poll::Ready(None) };
        let more = if side.is_here() {
            let waker = (*number, context.waker());
            std::task::ready!(side.feed.poll(remote, this.count, waker, || side.is_over()))
        } else {
            Vec::new()
        };
        this.count += more.len();
        this.fetched = more.into_iter();
        let next = this.fetched.next();
        if next.is_none() {
            this.source = None;
        }
        Poll::Ready(next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let fetched = self.fetched.len();
        (fetched, self.source.is_none().then_some(fetched))
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if !self.side.is_over() && self.side.is_here() {
            self.side.feed.leave(self.number);
        }
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yielded = self.count - self.fetched.len();
        out.debug_struct("Reports").field("yielded", &yielded).finish_non_exhaustive()
    }
}

/// The state that the streams and the handle of one run share.
#[derive(Default)]
pub(super) struct Feed(Mutex<Readers>);

#[derive(Default)]
struct Readers {
    /// The number of the last stream.
    last: u64,
    /// Streams that wait, each at most once.
    waiting: Vec<(u64, Waker)>,
    /// The reports of a result that was taken.
    kept: Option<Vec<Value>>,
}

impl Feed {
    /// Wakes every stream that waits: there is a new report, or the run has ended.
    pub(super) fn wake_readers(&self) {
        let waiting = std::mem::take(&mut self.0.lock().waiting);
        for (_, waker) in waiting {
            waker.wake();
        }
    }

    /// All reports so far.
    pub(super) fn all(&self, remote: &RunHandle) -> Vec<Value> {
        self.0.lock().since(0, remote)
    }

    /// Takes the result, once it is there, and keeps a copy of its reports.
    pub(super) fn take_result(&self, remote: &RunHandle) -> Option<ExecutionResult> {
        let mut readers = self.0.lock();
        let result = remote.take_result()?;
        readers.kept = Some(result.reports.clone());
        Some(result)
    }

    fn enter(&self) -> u64 {
        let mut readers = self.0.lock();
        readers.last += 1;
        readers.last
    }

    fn leave(&self, number: u64) {
        self.0.lock().waiting.retain(|(other, _)| *other != number);
    }

    /// The reports from that index on; an empty list means that the run has ended. The run keeps a report before it
    /// calls [`Feed::wake_readers`]. This holds the lock from reading the reports to storing the waker, so a later
    /// report wakes the stream.
    fn poll(
        &self,
        remote: &RunHandle,
        index: usize,
        (number, waker): (u64, &Waker),
        is_over: impl FnOnce() -> bool,
    ) -> Poll<Vec<Value>> {
        let mut readers = self.0.lock();
        // Checked first: a run that has ended has all its reports.
        let over = is_over();
        let more = readers.since(index, remote);
        if over || !more.is_empty() {
            return Poll::Ready(more);
        }
        match readers.waiting.iter_mut().find(|(other, _)| *other == number) {
            Some((_, known)) => known.clone_from(waker),
            None => readers.waiting.push((number, waker.clone())),
        }
        Poll::Pending
    }
}

impl Readers {
    fn since(&self, index: usize, remote: &RunHandle) -> Vec<Value> {
        match &self.kept {
            Some(kept) => kept.get(index..).unwrap_or_default().to_vec(),
            None => remote.reports_since(index),
        }
    }
}
