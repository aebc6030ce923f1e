//! The events of a run as a stream, which drives the run.
//!
//! In: a run, and the queue of its events. Out: each event once and in order, then the error of the model if there is one.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::Stream;

use super::{LoopEvent, LoopResult, events::Events};
use crate::{CancellationToken, ModelError};

type Run = Pin<Box<dyn Future<Output = Result<LoopResult, ModelError>> + Send>>;

/// The events of a run, as they come. The run goes on while the stream is read. Dropping it cancels the run.
#[must_use = "a stream yields nothing unless it is polled"]
pub struct LoopStream {
    /// `None` when it is over.
    run: Option<Run>,
    events: Events,
    cancellation: CancellationToken,
    error: Option<ModelError>,
    result: Option<LoopResult>,
}

impl LoopStream {
    pub(super) fn new(run: Run, events: Events, cancellation: CancellationToken) -> Self {
        Self { run: Some(run), events, cancellation, error: None, result: None }
    }

    /// The result, when the last event was read.
    #[must_use]
    pub fn result(&self) -> Option<&LoopResult> {
        self.result.as_ref()
    }

    /// The same, to keep.
    #[must_use]
    pub fn into_result(mut self) -> Option<LoopResult> {
        self.result.take()
    }
}

impl Stream for LoopStream {
    type Item = Result<LoopEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(run) = &mut this.run
            && let Poll::Ready(ended) = run.as_mut().poll(context)
        {
            this.run = None;
            match ended {
                Ok(result) => this.result = Some(result),
                Err(error) => this.error = Some(error),
            }
        }
        match this.events.poll_next(context.waker()) {
            Poll::Ready(event) => Poll::Ready(Some(Ok(event))),
            Poll::Pending if this.run.is_some() => Poll::Pending,
            Poll::Pending => Poll::Ready(this.error.take().map(Err)),
        }
    }
}

impl Drop for LoopStream {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}

impl fmt::Debug for LoopStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_over = self.run.is_none();
        out.debug_struct("LoopStream").field("is_over", &is_over).finish_non_exhaustive()
    }
}
