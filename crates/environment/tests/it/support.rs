//! A service with a clock that tests set, and an environment that tests drive.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use isolane_environment::{
    Environment, EnvironmentBindings, EnvironmentError, ExecutionExitState, ExecutionInput,
    NewProcess, ProcessRecord, ProcessService, ProcessServiceOptions, ProcessState,
};
use tokio::{runtime::Handle, sync::oneshot};

pub(crate) type Outcome = Result<ExecutionExitState, EnvironmentError>;

/// An environment whose executions end when the test says so.
#[derive(Clone, Default)]
pub(crate) struct Driven(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    inputs: Vec<ExecutionInput>,
    bindings: HashMap<u64, EnvironmentBindings>,
    ends: HashMap<u64, oneshot::Sender<Outcome>>,
    kills: Vec<u64>,
    kill_error: Option<String>,
    shutdowns: u32,
}

impl Driven {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bindings of an execution that the environment has.
    pub(crate) fn bindings(&self, eid: u64) -> EnvironmentBindings {
        self.seen().bindings.get(&eid).expect("the environment has it").clone()
    }

    /// Waits until the environment has an execution.
    pub(crate) async fn begun(&self, eid: u64) -> EnvironmentBindings {
        until(|| self.seen().bindings.contains_key(&eid)).await;
        self.bindings(eid)
    }

    pub(crate) fn inputs(&self) -> Vec<ExecutionInput> {
        self.seen().inputs.clone()
    }

    pub(crate) fn kills(&self) -> Vec<u64> {
        self.seen().kills.clone()
    }

    pub(crate) fn shutdowns(&self) -> u32 {
        self.seen().shutdowns
    }

    pub(crate) fn fail_kills(&self, message: &str) {
        self.seen().kill_error = Some(message.to_owned());
    }

    /// Ends an execution.
    pub(crate) fn end(&self, eid: u64, outcome: Outcome) {
        let end = self.seen().ends.remove(&eid).expect("the environment has it");
        // The service may have given it up.
        let _ = end.send(outcome);
    }
}

#[async_trait]
impl Environment for Driven {
    async fn execute(&self, input: ExecutionInput, bindings: EnvironmentBindings) -> Outcome {
        let (sender, end) = oneshot::channel();
        {
            let mut seen = self.seen();
            seen.bindings.insert(input.eid, bindings);
            seen.ends.insert(input.eid, sender);
            seen.inputs.push(input);
        }
        end.await.expect("the test ends it")
    }

    async fn kill(&self, eid: u64) -> Result<(), EnvironmentError> {
        let mut seen = self.seen();
        seen.kills.push(eid);
        seen.kill_error.clone().map_or(Ok(()), |message| Err(EnvironmentError::new(message)))
    }

    async fn shutdown(&self) {
        self.seen().shutdowns += 1;
    }
}

/// A service in this test's runtime, whose clock is paused.
pub(crate) fn service(options: ProcessServiceOptions) -> (ProcessService, Driven) {
    let driven = Driven::default();
    let environment = Some(Arc::new(driven.clone()) as Arc<dyn Environment>);
    let options = ProcessServiceOptions { environment, handle: Some(Handle::current()), ..options };
    (ProcessService::new(options).expect("valid options"), driven)
}

/// A service with one place.
pub(crate) fn narrow() -> (ProcessService, Driven) {
    service(ProcessServiceOptions { concurrency: 1, ..ProcessServiceOptions::default() })
}

/// Waits for something that threads do.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(2), wait).await.expect("within the ceiling");
}

/// Lets all tasks go on until each of them waits.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn create(service: &ProcessService, code: &str) -> ProcessRecord {
    let record = service.create(NewProcess::new(code)).await.expect("created");
    settle().await;
    record
}

pub(crate) async fn state(service: &ProcessService, pid: u64) -> ProcessState {
    service.get(pid).await.expect("known").state
}

/// The end of a process that is idle: its exit state and its error.
pub(crate) async fn end(service: &ProcessService, pid: u64) -> (&'static str, Option<String>) {
    settle().await;
    let record = service.get(pid).await.expect("known");
    assert_eq!(record.state, ProcessState::Idle);
    (record.exit_state.expect("it has ended").as_str(), record.error)
}
