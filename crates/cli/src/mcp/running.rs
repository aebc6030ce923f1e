//! A cell that runs for a call of the host.
//!
//! In: a cell that has begun, and the request that waits for it. Out: its answer; or questions for the user, which the host
//! answers with its next request. A call that the host cancels, and the end of the input, end the cell.

use futures_util::StreamExt;
use isolane::{Execution, ExecutionResult, Session, SessionState, inspect};
use isolane_environment::CancellationToken;
use rmcp::{
    RoleServer,
    model::{CallToolResult, ProgressNotificationParam},
    service::RequestContext,
};

use super::{
    answer,
    approvals::{Asking, Question},
    sessions::Use,
};

/// The most reports of a run that are told while it runs. All are in the answer.
const MOST_TOLD: usize = 1000;

/// The bytes of a report that are shown as progress.
const MOST_SHOWN_BYTES: usize = 4 << 10;

/// A cell that runs.
pub(super) struct Running {
    pub(super) execution: Execution,
    /// Until the end of the cell it may ask the user.
    pub(super) asking: Option<Asking>,
    pub(super) session: Held,
}

/// The session of a cell, which lives as long.
pub(super) enum Held {
    /// One that no name has.
    Once(Session),
    /// One that stays.
    Named(Use),
}

impl Held {
    pub(super) fn session(&self) -> &Session {
        match self {
            Self::Once(session) => session,
            Self::Named(used) => used.session(),
        }
    }

    fn answer(&self, mut result: ExecutionResult) -> CallToolResult {
        match self {
            Self::Once(_) => answer::of_result(&result, false),
            Self::Named(used) => {
                if let Some(cell) = result.cell.as_mut().filter(|_| used.is_reset()) {
                    cell.session = SessionState::Reset;
                }
                answer::of_result(&result, true)
            }
        }
    }
}

/// How far a cell has come.
pub(super) enum Step {
    Done(CallToolResult),
    /// It goes on when these are answered.
    Asks(Running, Vec<Question>),
}

impl Running {
    /// Waits for the end of the cell, for questions, or until nobody wants the answer any more.
    ///
    /// # Errors
    /// The text for a model, if the cell has no result.
    pub(super) async fn go_on(
        self,
        context: &RequestContext<RoleServer>,
        closing: &CancellationToken,
    ) -> Result<Step, String> {
        let Self { mut execution, mut asking, session } = self;
        let telling = tell(&execution, context);
        let ended = {
            let questions = async {
                match &mut asking {
                    Some(asking) => asking.questions().await,
                    None => std::future::pending().await,
                }
            };
            let running = async { tokio::join!(&mut execution, telling).0 };
            tokio::select! {
                result = running => Some(Ok(result)),
                questions = questions => Some(Err(questions)),
                // The host learns of no reason: it canceled the call, or is gone.
                () = context.ct.cancelled() => None,
                () = closing.cancelled() => None,
            }
        };
        let result = match ended {
            Some(Ok(result)) => result,
            Some(Err(questions)) => {
                return Ok(Step::Asks(Self { execution, asking, session }, questions));
            }
            None => {
                execution.terminate(Some("the call was canceled"));
                execution.await
            }
        };
        let result = result.map_err(|error| error.message().to_owned())?;
        Ok(Step::Done(session.answer(result)))
    }
}

/// Tells the host of reports as they come, if it asked for progress.
fn tell(
    execution: &Execution,
    context: &RequestContext<RoleServer>,
) -> impl Future<Output = ()> + Send + use<> {
    let token = context.meta.get_progress_token();
    let (peer, reports) = (context.peer.clone(), execution.report_stream());
    async move {
        let Some(token) = token else { return };
        let mut reports = reports.take(MOST_TOLD);
        let mut progress = 0.0;
        while let Some(report) = reports.next().await {
            progress += 1.0;
            let told = ProgressNotificationParam::new(token.clone(), progress)
                .with_message(inspect(&report, MOST_SHOWN_BYTES));
            if peer.notify_progress(told).await.is_err() {
                return;
            }
        }
    }
}
