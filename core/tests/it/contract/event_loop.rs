//! The thread of the table's host while a run is under way.
//!
//! In: a run's questions to its host, and the steps of its case. Out: the run's result. The loop handles events one
//! after another, and events that are due on a later turn wait for it.

use std::{
    rc::Rc,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use isolane::{Completion, ExecutionResult, Host, HostCall, REPORT_SINK, RunHandle, value::Value};
use serde_json::Value as Json;

use super::{
    compare::compare,
    functions::{Calling, Function, Outcome, Tables, answered, completion, elements},
    js::{Js, read},
    remote::Remote,
    tagged::Values,
};

/// The time limit of a case.
const CEILING: Duration = Duration::from_secs(if cfg!(isolane_sanitized) { 400 } else { 120 });

/// The length of a turn while something is due on a later one.
const TURN: Duration = Duration::from_millis(1);

/// A message of a run to its host.
pub(crate) enum Event {
    Call { function: u32, args: Value, call: HostCall },
    Start { function: u32, args: Value, promise: u32 },
    FunctionSettled { call: u32, completion: Completion },
    PromiseSettled { promise: u32, completion: Completion },
    Settled,
}

/// The run's end of the line to its host.
struct Line(Sender<Event>);

impl Host for Line {
    fn call(&self, function: u32, args: Value, call: HostCall) {
        let _ = self.0.send(Event::Call { function, args, call });
    }

    fn start(&self, function: u32, args: Value, promise: u32) {
        let _ = self.0.send(Event::Start { function, args, promise });
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        let _ = self.0.send(Event::FunctionSettled { call, completion });
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        let _ = self.0.send(Event::PromiseSettled { promise, completion });
    }

    fn settled(&self) {
        let _ = self.0.send(Event::Settled);
    }
}

/// The caller's end of one run.
pub(crate) struct EventLoop {
    events: Receiver<Event>,
    tables: Tables,
    remote: RunHandle,
    steps: Vec<Json>,
    /// The turn on which the waiting step continues.
    waits: Option<u64>,
    turned: Instant,
    result: Option<ExecutionResult>,
}

/// A line from a run to its host: the run's end and the host's.
pub(crate) fn line() -> (Arc<dyn Host>, Receiver<Event>) {
    let (sender, receiver) = channel();
    (Arc::new(Line(sender)), receiver)
}

impl EventLoop {
    pub(crate) fn new(
        events: Receiver<Event>,
        tables: Tables,
        remote: RunHandle,
        steps: &[Json],
    ) -> Self {
        let mut steps = steps.to_vec();
        steps.reverse();
        let turned = Instant::now();
        Self { events, tables, remote, steps, waits: None, turned, result: None }
    }

    /// Plays the host until the run has settled.
    pub(crate) fn run(mut self) -> Result<(ExecutionResult, RunHandle), String> {
        let deadline = Instant::now() + CEILING;
        loop {
            self.take_steps()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.remote.terminate(Some("the case took too long"));
                return Err(format!("not settled after {} s", CEILING.as_secs()));
            }
            let busy = !self.tables.due.is_empty() || !self.steps.is_empty();
            let wait = if busy { TURN.saturating_sub(self.turned.elapsed()) } else { left };
            match self.events.recv_timeout(wait) {
                Ok(event) => self.handle(event)?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the run let go of its host".to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.turned.elapsed() >= TURN {
                self.next_turn();
            }
            if let Some(result) = self.result.take() {
                return Ok((result, self.remote));
            }
        }
    }

    fn next_turn(&mut self) {
        self.turned = Instant::now();
        self.tables.turn += 1;
        let turn = self.tables.turn;
        let due = std::mem::take(&mut self.tables.due);
        let (now, later) = due.into_iter().partition(|(at, ..)| *at <= turn);
        self.tables.due = later;
        for (_, promise, outcome) in now {
            self.settle(promise, &outcome);
        }
    }

    fn settle(&self, promise: u32, outcome: &Outcome) {
        let promise = *self.tables.started.get(&promise).unwrap_or(&promise);
        self.remote.settle_promise(promise, completion(outcome));
    }

    /// Executes the steps of the case up to the first that has to wait.
    fn take_steps(&mut self) -> Result<(), String> {
        while let Some(step) = self.steps.last() {
            let (what, said) =
                step.as_object().and_then(|step| step.iter().next()).expect("a step");
            match what.as_str() {
                "terminate" => {
                    let reason = Values::new(&mut self.tables).value(said).as_text();
                    self.remote.terminate(reason.as_deref());
                }
                "reports"
                    if (self.remote.reports_since(0).len() as u64)
                        < said.as_u64().expect("a count") =>
                {
                    return Ok(());
                }
                "turns" => {
                    let turn = self.tables.turn;
                    let until = *self.waits.get_or_insert(turn + said.as_u64().expect("a count"));
                    if turn < until {
                        return Ok(());
                    }
                    self.waits = None;
                }
                "expectReports" => {
                    let shown = self.remote.reports_since(0);
                    let shown = shown
                        .iter()
                        .map(|report| self.read(report))
                        .collect::<Result<Vec<_>, _>>()?;
                    compare(said, &Js::list(shown), "handle.reports")?;
                }
                "expectRunning" if said.as_bool() != Some(self.remote.running()) => {
                    return Err(format!("handle.running: expected {said}"));
                }
                "reports" | "expectRunning" => {}
                _ => return Err(format!("unknown step {step}")),
            }
            self.steps.pop();
        }
        Ok(())
    }

    fn read(&self, message: &Value) -> Result<Js, String> {
        let remote: Rc<dyn Remote> = Rc::new(self.remote.clone());
        read(message, &remote).map_err(|malformed| malformed.to_string())
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Call { function, args, call } => {
                let (function, args) = self.called(function, &args)?;
                let outcome = self.answer(&function, args);
                call.reply(answered(&function, &outcome));
            }
            Event::Start { function, args, promise } => {
                let (function, args) = self.called(function, &args)?;
                let outcome = self.answer(&function, args);
                match outcome.as_ref().ok().and_then(Js::host_promise) {
                    Some(own) => drop(self.tables.started.insert(own, promise)),
                    None => self.settle(promise, &outcome),
                }
            }
            Event::FunctionSettled { call, completion } => self.called_back(call, &completion)?,
            Event::PromiseSettled { promise, completion } => {
                for own in self.tables.relays.remove(&promise).unwrap_or_default() {
                    self.settle(own, &self.outcome(&completion)?);
                }
            }
            Event::Settled => {
                let result = self.remote.take_result();
                self.result = Some(result.ok_or("settled without a result")?);
            }
        }
        Ok(())
    }

    fn answer(&mut self, function: &Function, args: Vec<Js>) -> Outcome {
        let remote = self.remote.clone();
        self.tables.answer(function, args, &|reason| remote.terminate(reason))
    }

    fn outcome(&self, completion: &Completion) -> Result<Outcome, String> {
        Ok(match completion {
            Ok(value) => Ok(self.read(value)?),
            Err(value) => Err(self.read(value)?),
        })
    }

    /// The called function and its arguments. The sink gets the newest report.
    fn called(&mut self, function: u32, args: &Value) -> Result<(Function, Vec<Js>), String> {
        if function != REPORT_SINK {
            let function =
                self.tables.functions.get(function as usize).ok_or("an unknown function")?;
            return Ok((function.clone(), elements(&self.read(args)?)));
        }
        let report = self.remote.reports_since(self.tables.sunk);
        self.tables.sunk += report.len();
        let report = report.last().map(|report| self.read(report)).transpose()?;
        let sink =
            self.tables.sink.clone().unwrap_or_else(|| Function::Named("undefined".to_owned()));
        Ok((sink, report.into_iter().collect()))
    }

    fn called_back(&mut self, call: u32, completion: &Completion) -> Result<(), String> {
        let calling = self.tables.calls.remove(&call).ok_or("an unknown call")?;
        match (calling, self.outcome(completion)?) {
            (Calling { promise, again: Some(again) }, Ok(value)) => {
                let once_more = Calling { promise, again: None };
                self.tables.call(&again, vec![value], once_more);
            }
            (Calling { promise, .. }, outcome) => self.settle(promise, &outcome),
        }
        Ok(())
    }
}
