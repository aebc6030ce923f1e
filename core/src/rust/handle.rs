//! The caller's handle on a run.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use super::{reports::Reports, side::HostSide};
use crate::{Error, ErrorKind, ExecutionResult, Interception, RunHandle, Value};

/// A handle on a run. Awaiting it, in any executor, yields the result; dropping it terminates the run.
///
/// It yields misuse of an option as an `Err`. Events in the sandbox are results with a status.
#[must_use = "dropping it ends the run"]
pub struct Execution(State);

enum State {
    Refused(Option<Error>),
    Started { remote: RunHandle, side: Arc<HostSide> },
}

impl Execution {
    pub(super) fn new(remote: RunHandle, side: Arc<HostSide>) -> Self {
        Self(State::Started { remote, side })
    }

    pub(super) fn refused(error: Error) -> Self {
        Self(State::Refused(Some(error)))
    }

    /// Terminates the run, which settles as `terminated` with that reason as its message. Only the first call has an
    /// effect, and only while the run is running.
    pub fn terminate(&self, reason: Option<&str>) {
        self.terminator().terminate(reason);
    }

    /// A handle that can terminate the run from anywhere, such as from a deadline's thread.
    #[must_use]
    pub fn terminator(&self) -> Terminator {
        Terminator(match &self.0 {
            State::Refused(_) => None,
            State::Started { remote, .. } => Some(remote.clone()),
        })
    }

    /// Tells how long the run has computed, from anywhere.
    #[must_use]
    pub fn meter(&self) -> Meter {
        Meter(self.terminator().0)
    }

    /// The interception of the run, if it is intercepted.
    #[must_use]
    pub fn interception(&self) -> Option<Interception> {
        match &self.0 {
            State::Refused(_) => None,
            State::Started { remote, .. } => remote.interception(),
        }
    }

    /// Whether the run has not settled yet.
    #[must_use]
    pub fn running(&self) -> bool {
        matches!(&self.0, State::Started { remote, .. } if remote.running())
    }

    /// The reports of the sandbox so far, in call order. Costs a copy of each.
    #[must_use]
    pub fn reports(&self) -> Vec<Value> {
        match &self.0 {
            State::Started { remote, side } if side.is_here() => side.feed.all(remote),
            State::Started { .. } | State::Refused(_) => Vec::new(),
        }
    }

    /// The reports as they come, from the first one on: a stream of its own, independent of this handle and of other
    /// streams.
    ///
    /// The run does not wait for its readers: it keeps the reports, and they read at their own pace. There are reports
    /// only if [`ExecutionOptions::report`] asks for them.
    ///
    /// ```
    /// use futures::StreamExt;
    /// use isolane::{ExecutionOptions, Report, run_code};
    ///
    /// let source = "for (const step of ['read', 'count']) report({ step }); export default 2";
    /// let run = run_code(source, ExecutionOptions { report: Report::On, ..Default::default() });
    /// let mut reports = run.report_stream();
    /// let show = async {
    ///     while let Some(report) = reports.next().await {
    ///         println!("{}", serde_json::to_string(&report).expect("plain data"));
    ///     }
    /// };
    /// let (result, ()) = futures::executor::block_on(async { futures::join!(run, show) });
    /// assert_eq!(result?.reports.len(), 2);
    /// # Ok::<(), isolane::Error>(())
    /// ```
    ///
    /// [`ExecutionOptions::report`]: crate::ExecutionOptions::report
    pub fn report_stream(&self) -> Reports {
        match &self.0 {
            State::Started { remote, side } => Reports::new(remote, side),
            State::Refused(_) => Reports::ended(),
        }
    }

    /// Blocks this thread until the run has settled: for callers without an executor.
    ///
    /// Not for asynchronous code: a host function that is a future may need this very thread.
    ///
    /// # Errors
    /// Misuse of an option, a runtime that took no more runs, or a run that was started before this process was forked.
    pub fn wait(mut self) -> Result<ExecutionResult, Error> {
        if let State::Started { side, .. } = &self.0 {
            if !side.is_over() && !side.is_here() {
                return Err(elsewhere());
            }
            side.wait_over();
        }
        self.take().unwrap_or_else(|| Err(gone()))
    }

    /// The result of the run, if it has one that nobody has taken.
    fn take(&mut self) -> Option<Result<ExecutionResult, Error>> {
        match &mut self.0 {
            State::Refused(error) => error.take().map(Err),
            State::Started { remote, side } => side.take_result(remote).map(Ok),
        }
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Internal, "the result of this run was already taken")
}

fn elsewhere() -> Error {
    let message = "the run was started before this process was forked: runs do not survive a fork";
    Error::new(ErrorKind::Unavailable, message)
}

impl Future for Execution {
    type Output = Result<ExecutionResult, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let over = match &self.0 {
            State::Refused(_) => true,
            State::Started { side, .. } if side.is_over() => true,
            State::Started { side, .. } if side.is_here() => side.poll_over(context),
            State::Started { .. } => return Poll::Ready(Err(elsewhere())),
        };
        if over { Poll::Ready(self.take().unwrap_or_else(|| Err(gone()))) } else { Poll::Pending }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if let State::Started { remote, .. } = &self.0 {
            remote.terminate(Some("the handle was dropped"));
        }
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Execution").field("running", &self.running()).finish_non_exhaustive()
    }
}

/// Terminates a run, from any thread. Cheap to clone; dropping it does nothing.
#[derive(Clone, Debug)]
pub struct Terminator(Option<RunHandle>);

impl Terminator {
    /// As [`Execution::terminate`].
    pub fn terminate(&self, reason: Option<&str>) {
        if let Some(remote) = &self.0 {
            remote.terminate(reason);
        }
    }
}

/// Tells how long a run has computed, from any thread. Cheap to clone; dropping it does nothing.
#[derive(Clone, Debug)]
pub struct Meter(Option<RunHandle>);

impl Meter {
    /// The time for which the run's code has computed so far, about: without the time in which it waits for its host, or for
    /// its turn. Zero if the run was refused.
    #[must_use]
    pub fn computed(&self) -> Duration {
        self.0.as_ref().map(RunHandle::computed).unwrap_or_default()
    }
}
