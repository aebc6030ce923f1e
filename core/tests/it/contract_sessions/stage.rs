//! The host of a case while it is played: one thread with its sessions, its cells in flight and its host functions.
//!
//! In: events of the sandbox. Out: answers. Events are handled one after another, while an act of the case waits;
//! whatever is due on a later turn waits for it.

use std::{
    collections::HashMap,
    rc::Rc,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::{Duration, Instant},
};

use isolane::{
    CellRequest, Completion, ExecutionResult, REPORT_SINK, RunHandle, Runtime, SessionHandle,
    SourceText, value::Value,
};

use super::{
    functions::{Calling, Function, Outcome, Tables, answered, completion, elements},
    host::{Answer, Event, Line, Origin, SessionNumber},
    js::{Js, Object, read},
    remote::Remote,
};

/// The time limit of one wait.
const CEILING: Duration = Duration::from_secs(if cfg!(isolane_sanitized) { 400 } else { 120 });

/// The length of a turn while something is due on a later one.
const TURN: Duration = Duration::from_millis(1);

/// A cell that was started.
pub(crate) struct RunningCell {
    pub(crate) handle: RunHandle,
    pub(crate) session: SessionNumber,
    pub(crate) result: Option<ExecutionResult>,
    sink: Option<Function>,
    /// The reports that its sink has seen.
    sunk: usize,
    /// The promise of the host function `run` that started it.
    promise: Option<u32>,
}

/// A session that was opened.
pub(crate) struct OpenSession {
    pub(crate) handle: SessionHandle,
    remote: Rc<dyn Remote>,
    sink: Option<Function>,
}

/// A call of `ask`.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) arrived: bool,
    promise: Option<u32>,
}

pub(crate) struct Stage {
    pub(crate) runtime: Runtime,
    pub(crate) tables: Tables,
    pub(crate) sessions: Vec<OpenSession>,
    pub(crate) cells: Vec<RunningCell>,
    /// Calls of `ask` by their key.
    pub(crate) asked: HashMap<String, Asked>,
    /// Outcomes of calls that a step made, by their promises.
    pub(crate) outcomes: HashMap<u32, Option<Outcome>>,
    pub(crate) answers: HashMap<u32, Answer>,
    /// Promises of the sandbox's for calls that were started, by the number of the host's promise.
    started: HashMap<u32, (SessionNumber, u32)>,
    questions: u32,
    events: Receiver<(Origin, Event)>,
    pub(crate) sender: Sender<(Origin, Event)>,
    turned: Instant,
}

impl Stage {
    pub(crate) fn new(runtime: Runtime) -> Self {
        let (sender, events) = channel();
        Self {
            runtime,
            tables: Tables::default(),
            sessions: Vec::new(),
            cells: Vec::new(),
            asked: HashMap::new(),
            outcomes: HashMap::new(),
            answers: HashMap::new(),
            started: HashMap::new(),
            questions: 0,
            events,
            sender,
            turned: Instant::now(),
        }
    }

    pub(crate) fn add_session(&mut self, handle: SessionHandle, sink: Option<Function>) {
        let remote: Rc<dyn Remote> = Rc::new(handle.downgrade());
        self.sessions.push(OpenSession { handle, remote, sink });
    }

    /// The sink of a session, which its copies share.
    pub(crate) fn sink(&self, session: SessionNumber) -> Option<Function> {
        self.sessions[session].sink.clone()
    }

    /// The line of the cell that is started next, or of a session outside of any.
    pub(crate) fn origin(&self, session: SessionNumber, is_cell: bool) -> Origin {
        Origin { session, cell: is_cell.then_some(self.cells.len()) }
    }

    pub(crate) fn add_cell(
        &mut self,
        session: SessionNumber,
        handle: RunHandle,
        sink: Option<Function>,
    ) -> usize {
        let sink = sink.or_else(|| self.sink(session));
        let (result, sunk, promise) = (None, 0, None);
        self.cells.push(RunningCell { handle, session, result, sink, sunk, promise });
        self.cells.len() - 1
    }

    /// A number for a question, and the function that sends its answer.
    pub(crate) fn question(&mut self) -> (u32, impl FnOnce(Answer) + Send + 'static) {
        self.questions += 1;
        let (number, sender) = (self.questions, self.sender.clone());
        let origin = Origin { session: 0, cell: None };
        (number, move |answer| drop(sender.send((origin, Event::Answered(number, answer)))))
    }

    /// Plays the host until something is there.
    pub(crate) fn wait<T>(
        &mut self,
        what: &str,
        mut ready: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, String> {
        let deadline = Instant::now() + CEILING;
        loop {
            if let Some(value) = ready(self) {
                return Ok(value);
            }
            if Instant::now() > deadline {
                return Err(format!("waited {} s for {what}", CEILING.as_secs()));
            }
            match self.events.recv_timeout(TURN.saturating_sub(self.turned.elapsed())) {
                Ok((origin, event)) => self.handle(origin, event)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the stage has a sender"),
            }
            if self.turned.elapsed() >= TURN {
                self.next_turn();
            }
        }
    }

    pub(crate) fn answer_to(&mut self, number: u32, what: &str) -> Result<Answer, String> {
        self.wait(what, |stage| stage.answers.remove(&number))
    }

    /// Resolves or rejects a promise of the host.
    pub(crate) fn settle(&mut self, promise: u32, outcome: Outcome) {
        if let Some(place) = self.outcomes.get_mut(&promise) {
            *place = Some(outcome);
        } else if let Some((session, theirs)) = self.started.remove(&promise) {
            self.sessions[session].handle.settle_promise(theirs, completion(&outcome));
        } else {
            // A copy of the session that got it has it too, under the same number.
            for session in &self.sessions {
                session.handle.settle_promise(promise, completion(&outcome));
            }
        }
    }

    /// The promise of the call of `ask` with that key.
    pub(crate) fn asked_promise(&mut self, key: &str) -> u32 {
        if let Some(promise) = self.asked.get(key).and_then(|asked| asked.promise) {
            return promise;
        }
        let promise = self.tables.promise();
        self.asked.entry(key.to_owned()).or_default().promise = Some(promise);
        promise
    }

    pub(crate) fn read(&self, session: SessionNumber, message: &Value) -> Result<Js, String> {
        read(message, &self.sessions[session].remote).map_err(|malformed| malformed.to_string())
    }

    fn next_turn(&mut self) {
        self.turned = Instant::now();
        self.tables.turn += 1;
        let turn = self.tables.turn;
        let due = std::mem::take(&mut self.tables.due);
        let (now, later) = due.into_iter().partition(|(at, ..)| *at <= turn);
        self.tables.due = later;
        for (_, promise, outcome) in now {
            self.settle(promise, outcome);
        }
    }

    fn handle(&mut self, origin: Origin, event: Event) -> Result<(), String> {
        match event {
            Event::Call { function, args, call } => {
                let (function, args) = self.called(origin, function, &args, &call)?;
                let outcome = self.answer(&function, args);
                call.reply(answered(&function, &outcome));
            }
            Event::Start { function, args, promise } => {
                let args = elements(&self.read(origin.session, &args)?);
                let function = self.function(function)?;
                let outcome = self.answer(&function, args);
                let own = outcome.as_ref().ok().and_then(Js::host_promise);
                let own = own.unwrap_or_else(|| self.tables.promise());
                self.started.insert(own, (origin.session, promise));
                if outcome.as_ref().ok().and_then(Js::host_promise).is_none() {
                    self.settle(own, outcome);
                }
            }
            Event::FunctionSettled { call, completion } => {
                self.called_back(origin.session, call, &completion)?;
            }
            Event::PromiseSettled { promise, completion } => {
                for own in self.tables.relays.remove(&promise).unwrap_or_default() {
                    let outcome = self.outcome(origin.session, &completion)?;
                    self.settle(own, outcome);
                }
            }
            Event::Settled => {
                if let Some(cell) = origin.cell {
                    self.cell_settled(cell)?;
                }
            }
            Event::Answered(number, answer) => drop(self.answers.insert(number, answer)),
        }
        Ok(())
    }

    fn cell_settled(&mut self, number: usize) -> Result<(), String> {
        let cell = &mut self.cells[number];
        let result = cell.handle.take_result().ok_or("settled without a result")?;
        let (session, promise) = (cell.session, cell.promise);
        if let Some(promise) = promise {
            let status = Js::text(result.status.as_str());
            let value =
                result.result.as_ref().map(|value| self.read(session, value)).transpose()?;
            let record = match value {
                Some(value) => Js::record([("status", status), ("result", value)]),
                None => Js::record([("status", status)]),
            };
            self.settle(promise, Ok(record));
        }
        self.cells[number].result = Some(result);
        Ok(())
    }

    fn function(&self, number: u32) -> Result<Function, String> {
        let function = self.tables.functions.get(number as usize);
        Ok(function.ok_or("an unknown function")?.clone())
    }

    /// The called function and its arguments. The sink gets the newest report.
    fn called(
        &mut self,
        origin: Origin,
        function: u32,
        args: &Value,
        call: &isolane::HostCall,
    ) -> Result<(Function, Vec<Js>), String> {
        if function != REPORT_SINK {
            return Ok((self.function(function)?, elements(&self.read(origin.session, args)?)));
        }
        let (sink, report) = match origin.cell {
            Some(number) => {
                let cell = &mut self.cells[number];
                let reports = cell.handle.reports_since(cell.sunk);
                cell.sunk += reports.len();
                (cell.sink.clone(), reports.last().cloned())
            }
            None => (self.sink(origin.session), call.take_report()),
        };
        let report = report.map(|report| self.read(origin.session, &report)).transpose()?;
        let sink = sink.unwrap_or_else(|| Function::Named("undefined".to_owned()));
        Ok((sink, report.into_iter().collect()))
    }

    fn called_back(
        &mut self,
        session: SessionNumber,
        call: u32,
        completion: &Completion,
    ) -> Result<(), String> {
        let calling = self.tables.calls.remove(&call).ok_or("an unknown call")?;
        match (calling, self.outcome(session, completion)?) {
            (Calling { promise, again: Some(again) }, Ok(value)) => {
                self.tables.call(&again, vec![value], Calling { promise, again: None });
            }
            (Calling { promise, .. }, outcome) => self.settle(promise, outcome),
        }
        Ok(())
    }

    fn outcome(&self, session: SessionNumber, completion: &Completion) -> Result<Outcome, String> {
        Ok(match completion {
            Ok(value) => Ok(self.read(session, value)?),
            Err(value) => Err(self.read(session, value)?),
        })
    }

    /// The result of a host function: one of this table's own, or of those of runs.
    fn answer(&mut self, function: &Function, args: Vec<Js>) -> Outcome {
        let first = || args.first().and_then(Js::as_text).unwrap_or_default();
        match function {
            Function::Named(name) if name == "ask" => {
                let key = first();
                let promise = self.asked_promise(&key);
                self.asked.entry(key).or_default().arrived = true;
                Ok(Js::object(Object::HostPromise(promise)))
            }
            Function::Named(name) if name == "run" => {
                let promise = self.tables.promise();
                let request = CellRequest::new(SourceText::from(first()));
                let line = Line::host(&self.sender, self.origin(0, true));
                let started = self.sessions[0].handle.run(request, line);
                let cell = started.map(|handle| self.add_cell(0, handle, None));
                self.cells[cell.expect("the session is open")].promise = Some(promise);
                Ok(Js::object(Object::HostPromise(promise)))
            }
            _ => {
                let last = self.cells.last().map(|cell| cell.handle.clone());
                let terminate = |reason: Option<&str>| {
                    if let Some(handle) = &last {
                        handle.terminate(reason);
                    }
                };
                self.tables.answer(function, args, &terminate)
            }
        }
    }
}
