//! One execution: from its place in the queue to its end.
//!
//! In: a process that has a place. Out: its end. The environment decides how it ends; this task gives it up if it does not
//! settle in time after a kill or after its time limit. Giving up frees the place.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::{Instant, sleep_until};

use super::{host::Host, inner::Inner};
use crate::{
    EnvironmentBindings, EnvironmentError, ExecutionExitState, ExecutionInput, ExecutionOptions,
    ProcessState,
    locks::lock,
    process::{Body, End, Phase, Process},
};

/// Starts the execution of a process that has a place.
pub(super) fn start(inner: &Arc<Inner>, process: Arc<Process>, attempt: u64) {
    // The task ends by itself: nobody waits for it.
    drop(inner.handle.spawn(drive(Arc::clone(inner), process, attempt)));
}

/// The answer of an environment's `execute`.
type Outcome = std::thread::Result<Result<ExecutionExitState, EnvironmentError>>;

/// How an execution came to its end.
enum Ending {
    Settled(Outcome),
    /// It did not stop after a kill.
    Stuck,
    /// It did not settle after its time limit.
    Late,
}

async fn drive(inner: Arc<Inner>, process: Arc<Process>, attempt: u64) {
    let pid = process.pid;
    let host = Arc::new(Host::new(&inner, &process, attempt));
    let bindings = EnvironmentBindings::new(pid, Arc::clone(&host) as _);
    let options = process.timeout_ms.map(|timeout_ms| ExecutionOptions { timeout_ms });
    let input = ExecutionInput { eid: pid, code: process.code.clone(), options };
    let environment = Arc::clone(&inner.environment);
    let execute = async move { environment.execute(input, bindings).await };
    let mut execute = Box::pin(AssertUnwindSafe(execute).catch_unwind());
    let is_killed = match &process.body().live {
        Some(live) => live.killed.is_cancelled(),
        None => true,
    };
    let ending = if is_killed {
        // It was killed before the environment had it.
        Ending::Settled(Ok(Ok(ExecutionExitState::Canceled)))
    } else {
        watch(&inner, &process, &mut execute).await
    };
    host.close();
    if let Ending::Late = ending {
        kill(&inner, pid);
    }
    // The environment is not asked any more: its bindings do nothing from now on.
    drop(execute);
    let (grace, backstop) = (inner.options.kill_grace_ms, inner.options.backstop_ms);
    inner.settle(&process, attempt, |body| match ending {
        Ending::Settled(outcome) => settled(outcome, body),
        Ending::Stuck => {
            let error = format!("the environment did not stop within {grace} ms");
            End { state: ExecutionExitState::Canceled, error: Some(error), details: None }
        }
        Ending::Late => {
            let backstop = backstop.unwrap_or_default();
            failed(format!("the environment did not answer within {backstop} ms of its timeout"))
        }
    });
}

/// Waits for the end of an execution.
async fn watch(
    inner: &Arc<Inner>,
    process: &Process,
    execute: &mut (impl Future<Output = Outcome> + Unpin),
) -> Ending {
    let begun = Instant::now();
    let (killed, mut phase) = match &process.body().live {
        Some(live) => (live.killed.clone(), live.phase.subscribe()),
        // Not before it has settled.
        None => return Ending::Late,
    };
    let patience = inner.options.backstop_ms.zip(process.timeout_ms);
    let patience = patience.map(|(more, limit)| Duration::from_millis(more.saturating_add(limit)));
    let grace = Duration::from_millis(inner.options.kill_grace_ms);
    let mut kill_until = None;
    loop {
        let since = match *phase.borrow_and_update() {
            Phase::Silent => Some(begun),
            Phase::Queued => None,
            Phase::Running(since) => Some(since),
        };
        let late = since.zip(patience).map(|(since, patience)| since + patience);
        let until = kill_until.or(late);
        tokio::select! {
            biased;
            outcome = &mut *execute => return Ending::Settled(outcome),
            () = killed.cancelled(), if kill_until.is_none() => {
                kill_until = Some(Instant::now() + grace);
                kill(inner, process.pid);
            }
            changed = phase.changed(), if kill_until.is_none() => {
                // The sender lives as long as the execution.
                if changed.is_err() {
                    return Ending::Late;
                }
            }
            () = sleep_until(until.unwrap_or(begun)), if until.is_some() => {
                lock(&inner.counts).given_up += 1;
                return if kill_until.is_some() { Ending::Stuck } else { Ending::Late };
            }
        }
    }
}

/// Calls the environment's `kill`. Nobody waits for it; an error is logged.
fn kill(inner: &Arc<Inner>, pid: u64) {
    let inner = Arc::clone(inner);
    let handle = inner.handle.clone();
    drop(handle.spawn(async move {
        let killed = AssertUnwindSafe(inner.environment.kill(pid)).catch_unwind().await;
        match killed {
            Ok(Ok(())) => {}
            Ok(Err(error)) => inner.log(&format!("kill of process {pid} failed: {error}")),
            Err(_) => inner.log(&format!("kill of process {pid} panicked")),
        }
    }));
}

/// The end that an environment gave an execution. The service believes it.
fn settled(outcome: Outcome, body: &mut Body) -> End {
    let failure = body.live.as_mut().and_then(|live| live.failure.take());
    let is_terminating = body.state == ProcessState::Terminating;
    let thrown = match outcome {
        Ok(Ok(state)) => {
            let error = failure.as_ref().map(crate::ExecutionFailure::line);
            let details = failure.as_ref().and_then(|failure| failure.details().cloned());
            let unknown = (state == ExecutionExitState::Failed && error.is_none())
                .then(|| "the environment gave no reason".to_owned());
            return End { state, error: error.or(unknown), details };
        }
        Ok(Err(error)) if error.is_no_exit_state() => return failed(error.message().to_owned()),
        Ok(Err(error)) => error.message().to_owned(),
        Err(_) => "the environment panicked".to_owned(),
    };
    if is_terminating {
        return End { state: ExecutionExitState::Canceled, error: None, details: None };
    }
    failed(thrown)
}

fn failed(error: String) -> End {
    End { state: ExecutionExitState::Failed, error: Some(error), details: None }
}
