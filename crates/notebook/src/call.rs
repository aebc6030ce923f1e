//! One call: its cells in order, its updates, its end.
//!
//! In: checked arguments and the notebook. Out: an [`Execution`], which settles with a result whatever happens. The call
//! runs on this library's thread for futures.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use isolane::Answer;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    Args, CallResult, CellStatus, Language,
    clock::Clock,
    host::Desk,
    kernels::{Cause, Cell, End, Ended, session::Unprepared},
    notebook::Inner,
    record::{self, Record},
    report::{CellState, report},
    text::words,
};

/// How long the last update of a call may take its receiver.
const LAST_UPDATE: Duration = Duration::from_secs(5);

/// A receiver of updates: gets the result so far. The next update waits for its future. After an error it is not called
/// any more.
pub type OnUpdate = Arc<
    dyn Fn(CallResult) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync,
>;

/// The options of a call.
#[derive(Clone, Default)]
pub struct ExecuteOptions {
    /// Receives the result so far: at once, then at most every [`Limits::update_interval_ms`](crate::Limits), and before
    /// the call settles.
    pub on_update: Option<OnUpdate>,
}

/// Tells the caller of a call, on any thread and at once, that the page of a kit has commands for it.
pub(crate) type Announce = Arc<dyn Fn() + Send + Sync>;

impl fmt::Debug for ExecuteOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ExecuteOptions").field("on_update", &self.on_update.is_some()).finish()
    }
}

/// A call that runs: a future of its result, for any executor. Dropping it ends the call.
#[must_use = "dropping it ends the call"]
pub struct Execution {
    /// `None` once somebody waits for it.
    answer: Option<Answer<CallResult>>,
    end: End,
}

impl Execution {
    /// Begins a call, which a cause may have ended already.
    pub(crate) fn begin(
        inner: Arc<Inner>,
        args: Args,
        options: ExecuteOptions,
        (cause, announce): (Option<Cause>, Option<Announce>),
    ) -> Self {
        let end = inner.admit();
        if let Some(cause) = cause {
            end.end(cause);
        }
        let shared = record::Shared::new(inner.limits.clone())
            .with_artifacts(inner.functions.artifacts.clone());
        let shared = Arc::new(shared);
        let cells = args.cells.into_iter();
        let cells =
            cells.map(|cell| CellState::new(cell, Record::new(Arc::clone(&shared)))).collect();
        let call = Call {
            inner,
            shared,
            end: end.clone(),
            announce,
            cells: Mutex::new(cells),
            notice: Mutex::default(),
        };
        Self { answer: Some(isolane::spawn(call.run(options.on_update))), end }
    }

    /// Ends the call: the cell that runs is ended, and later ones do not run. Only the first reason counts.
    pub fn terminate(&self, reason: Option<&str>) {
        self.terminator().terminate(reason);
    }

    /// A handle that can end the call from anywhere.
    #[must_use]
    pub fn terminator(&self) -> CallTerminator {
        CallTerminator(self.end.clone())
    }

    /// Blocks this thread until the call has settled. Not for asynchronous code.
    #[must_use]
    pub fn wait(mut self) -> CallResult {
        let Some(answer) = self.answer.take() else { return failure("the result was taken") };
        answer.wait().unwrap_or_else(|error| failure(&error.to_string()))
    }
}

impl Future for Execution {
    type Output = CallResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallResult> {
        let Some(answer) = &mut self.answer else {
            return Poll::Ready(failure("the result was taken"));
        };
        Pin::new(answer)
            .poll(context)
            .map(|answer| answer.unwrap_or_else(|error| failure(&error.to_string())))
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.end.end(Cause::Caller(Some("the handle was dropped".to_owned())));
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Execution").finish_non_exhaustive()
    }
}

/// Ends a call, from any thread. Cheap to clone; dropping it does nothing.
#[derive(Clone, Debug)]
pub struct CallTerminator(End);

impl CallTerminator {
    /// As [`Execution::terminate`].
    pub fn terminate(&self, reason: Option<&str>) {
        self.0.end(Cause::Caller(reason.map(str::to_owned)));
    }
}

/// Why a call of an agent's notebook is ended with the cell that the agent works for.
fn agent_ended() -> Cause {
    Cause::Caller(Some("the cell that called the agent was ended".to_owned()))
}

/// The result of a call whose task failed.
fn failure(message: &str) -> CallResult {
    CallResult {
        text: format!("the call failed: {message}"),
        is_error: true,
        ..CallResult::default()
    }
}

struct Call {
    inner: Arc<Inner>,
    shared: Arc<record::Shared>,
    end: End,
    announce: Option<Announce>,
    cells: Mutex<Vec<CellState>>,
    notice: Mutex<Vec<String>>,
}

impl Call {
    async fn run(self, on_update: Option<OnUpdate>) -> CallResult {
        let mut updates = Updates { call: &self, receiver: on_update };
        {
            let work = self.work();
            tokio::pin!(work);
            tokio::select! {
                biased;
                () = updates.send_all() => {}
                () = &mut work => {}
            }
        }
        updates.send_last().await;
        self.inner.leave(&self.end);
        self.report(false)
    }

    /// Runs the cells, and ends them with the cell whose agent calls.
    async fn work(&self) {
        let forward = async {
            self.inner.agent_ended().await;
            self.end.end(agent_ended());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.run_cells() => {}
            () = forward => {}
        }
    }

    async fn run_cells(&self) {
        let _turn = tokio::select! {
            biased;
            cause = self.end.ended() => return self.refuse(0, Ended::before(cause)),
            turn = self.inner.turn.lock() => turn,
        };
        if let Some((index, ended)) = self.prepare().await {
            return self.refuse(index, ended);
        }
        let count = self.cells().len();
        for index in 0..count {
            self.run_cell(index).await;
            if self.cells()[index].status == CellStatus::Error {
                return;
            }
        }
    }

    /// Checks the backends of all cells. If one is unavailable, the first of its cells says so.
    async fn prepare(&self) -> Option<(usize, Ended)> {
        for language in [Language::Js, Language::Py] {
            let first = self.cells().iter().position(|cell| cell.input.language == language);
            let Some(index) = first else { continue };
            match self.inner.kernels.prepare(language, &self.end).await {
                Ok(notice) => {
                    self.notice.lock().unwrap_or_else(PoisonError::into_inner).extend(notice);
                }
                Err(Unprepared::Ended(cause)) => return Some((0, Ended::before(cause))),
                Err(Unprepared::Unavailable(reason)) => {
                    let text = words::unavailable(language, &reason);
                    return Some((index, Ended::refused("Unavailable", text)));
                }
            }
        }
        None
    }

    /// A cell ends without having begun.
    fn refuse(&self, index: usize, ended: Ended) {
        if let Some(cell) = self.cells().get_mut(index) {
            cell.end(ended);
        }
    }

    async fn run_cell(&self, index: usize) {
        let (input, record) = {
            let mut cells = self.cells();
            let cell = &mut cells[index];
            cell.status = CellStatus::Running;
            cell.began = Some(Instant::now());
            if cells.len() > 1 {
                let head = words::head(index, cells.len(), cells[index].input.title.as_deref());
                self.shared.whole(|whole| whole.head(&head));
            }
            (cells[index].input.clone(), cells[index].record.clone())
        };
        self.shared.changed.notify_one();
        let end = End::new();
        if let Some(cause) = self.end.cause() {
            end.end(cause);
        }
        let Inner { kernels, limits, functions, .. } = &*self.inner;
        if input.reset {
            kernels.finish(input.language, kernels.reset(input.language)).await;
        }
        let spelling = input.language.spelling();
        let desk = Arc::new(Desk::new(Arc::clone(functions), record.clone(), spelling));
        let begun = |name: String, clock: Clock| {
            let mut cells = self.cells();
            cells[index].name = Some(name);
            desk.begun(clock.clone());
            cells[index].clock = Some(clock);
        };
        let cell = Cell {
            code: &input.code,
            record: &record,
            end: &end,
            seconds: input.timeout.unwrap_or(limits.timeout_seconds),
            wall_seconds: limits.max_cell_seconds,
            desk: &desk,
            announce: self.announce.as_ref(),
            begun: &begun,
        };
        let forward = async {
            end.end(self.end.ended().await);
            std::future::pending::<()>().await;
        };
        let mut ended = tokio::select! {
            ended = kernels.run(input.language, &cell) => ended,
            () = forward => Ended::well(),
        };
        if ended.cause == Some(Cause::RolledBack) {
            // The cell of the parent may have ended first, and has undone this one.
            ended.cause = self.outer_cause().or(ended.cause);
        }
        if ended.cause == Some(Cause::Reset) {
            // The kernel told of the end of the cell. By now the state of all cells is gone.
            ended.state = "reset";
            ended.state_text = Some(words::lost(input.language));
        }
        if let Some(error) = &mut ended.error {
            record.redact_error(error);
        }
        if let Some((_, text)) = &ended.error {
            self.shared.whole(|whole| whole.block(text.trim_end()));
        }
        self.cells()[index].end(ended);
        self.shared.changed.notify_one();
    }

    /// Why the call is ended, if it is.
    fn outer_cause(&self) -> Option<Cause> {
        let of_agent = self.inner.has_agent_ended().then(agent_ended);
        self.end.cause().or(of_agent)
    }

    fn cells(&self) -> MutexGuard<'_, Vec<CellState>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, live: bool) -> CallResult {
        let notice = self.notice.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        let notice = Some(notice.as_str()).filter(|notice| !notice.is_empty());
        report(&self.cells(), notice, &self.shared, live)
    }
}

/// The updates of a call.
struct Updates<'c> {
    call: &'c Call,
    /// `None` if there is none, or once it has failed.
    receiver: Option<OnUpdate>,
}

impl Updates<'_> {
    /// Sends an update at once, and then when something has changed. It does not end.
    async fn send_all(&mut self) {
        let interval = Duration::from_millis(self.call.inner.limits.update_interval_ms);
        while self.receiver.is_some() {
            self.send().await;
            sleep(interval).await;
            self.call.shared.changed.notified().await;
        }
        std::future::pending::<()>().await;
    }

    async fn send_last(&mut self) {
        // A receiver that does not come back is not waited for.
        let _ = timeout(LAST_UPDATE, self.send()).await;
    }

    async fn send(&mut self) {
        let Some(receiver) = &self.receiver else { return };
        if let Err(error) = receiver(self.call.report(true)).await {
            self.receiver = None;
            let text = format!("the receiver of updates failed and was not called again: {error}");
            self.call.notice.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
    }
}
