//! The task of a call: it runs in tokio, whatever polls its future, and ends when that is dropped.
//!
//! In: a future that listens to a token. Out: its result. So executors work in any runtime, and a call that nobody awaits
//! any more kills its processes.

use std::future::Future;

use tokio_util::sync::CancellationToken;

use crate::{ExecutorError, ExecutorErrorKind, InvocationContext};

/// Runs the future that is made of a token. The token is cancelled with the context, and when the returned future is
/// dropped.
pub(crate) async fn run<T, F>(
    context: &InvocationContext,
    make: impl FnOnce(CancellationToken) -> F,
) -> Result<T, ExecutorError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, ExecutorError>> + Send + 'static,
{
    if context.cancellation.is_cancelled() {
        return Err(ExecutorError::cancelled());
    }
    let cancelled = context.cancellation.child_token();
    let _guard = cancelled.clone().drop_guard();
    let answer = isolane::spawn(make(cancelled));
    answer.await.map_err(|error| {
        let message = error.to_string();
        ExecutorError::new(ExecutorErrorKind::Other, message).with_source(error)
    })?
}
