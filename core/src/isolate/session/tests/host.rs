//! A host for the tests of sessions, and cells run to their ends.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    binding::{
        host::{Completion, Refusal},
        inbound::Inbound,
    },
    data::{
        cell::{SessionState, ValueFrom},
        inspect::inspect,
        outcome::{ExecutionError, LogLevel, Status},
        portable::{Input, Output, Portable},
        source::{Language, SourceText},
    },
    isolate::{
        embedder::{Embedder, Started},
        end::{CellEnd, End, Turn},
        memory::{
            home::{Home, Tenant},
            pool::{Pool, PoolOptions},
            termination::Termination,
        },
        realm::Realm,
        session::{
            SessionIsolate,
            work::{CellSeat, Work},
        },
    },
    modules::{
        cache::Cache,
        session_request::{SessionRequest, UpdateRequest},
    },
    os::sync::Mutex,
    value::{Event, InFlight, Value, Writer},
};

/// Everything that the sandbox has asked for.
#[derive(Default)]
pub(super) struct Host {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Whether cells are asked to end before their first instruction.
    ends_early: bool,
    logs: Vec<String>,
    started: Vec<u32>,
    exported: Option<u32>,
    settled: Vec<(u32, Result<String, String>)>,
}

impl Host {
    pub(super) fn logs(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().logs)
    }

    pub(super) fn exported(&self) -> Option<u32> {
        self.seen.lock().exported.take()
    }
}

pub(super) fn text(text: &str) -> Value {
    let mut writer = Writer::new();
    writer.string(text);
    writer.finish()
}

impl Embedder for Host {
    fn call(&self, function: u32, args: Value) -> Option<Completion> {
        let mut reader = args.reader();
        let mut seen = self.seen.lock();
        if let (Ok(Event::Array(_)), Ok(Event::SandboxFunction(number))) =
            (reader.event(), reader.event())
        {
            seen.exported = Some(number);
        }
        Some(Ok(text(&format!("called {function}"))))
    }

    fn start(&self, _function: u32, _args: Value, promise: u32) -> Started {
        self.seen.lock().started.push(promise);
        Started::GoesOn
    }

    fn report(&self, _value: Value) -> Option<Completion> {
        Some(Ok(Value::undefined()))
    }

    fn refusal(&self, _message: &Value) -> Option<Refusal> {
        None
    }

    fn log(&self, _level: LogLevel, args: Value) {
        let text = inspect(&args, 1000);
        let text = text.trim_start_matches("[ '").trim_end_matches("' ]");
        self.seen.lock().logs.push(text.to_owned());
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        let shown = completion.map(|v| inspect(&v, 1000)).map_err(|v| inspect(&v, 1000));
        self.seen.lock().settled.push((call, shown));
    }

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn poll(&self, _now: Instant) {}

    fn begins(&self, _can_undo: bool) -> bool {
        !self.seen.lock().ends_early
    }
}

/// The outcome of a cell.
#[derive(Debug)]
pub(super) enum Outcome {
    Cell(Box<CellEnd>),
    Failed(Status, Box<ExecutionError>),
    Ended,
    Memory,
}

#[derive(Debug)]
pub(super) struct Settled {
    pub(super) outcome: Outcome,
    pub(super) state: SessionState,
}

impl Settled {
    pub(super) fn text(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Cell(end) => end.text.clone(),
            _ => panic!("{self:?}"),
        }
    }

    pub(super) fn uncloned(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Cell(end) => end.uncloned.clone(),
            _ => panic!("{self:?}"),
        }
    }

    pub(super) fn value_from(&self) -> Option<ValueFrom> {
        match &self.outcome {
            Outcome::Cell(end) => end.value_from,
            _ => panic!("{self:?}"),
        }
    }

    pub(super) fn error(&self) -> String {
        match &self.outcome {
            Outcome::Failed(_, error) => format!("{}: {}", error.name, error.message),
            _ => panic!("{self:?}"),
        }
    }

    pub(super) fn status(&self) -> &'static str {
        match &self.outcome {
            Outcome::Cell(_) => "success",
            Outcome::Failed(status, _) => status.as_str(),
            Outcome::Ended => "ended",
            Outcome::Memory => "memory",
        }
    }
}

pub(super) fn source(text: &str) -> SourceText {
    SourceText { text: text.to_owned(), lone_surrogate: None }
}

fn numbers(values: &[(&str, i32)]) -> Value {
    let mut writer = Writer::new();
    writer.array(u32::try_from(values.len()).expect("few"));
    for (_, value) in values {
        writer.int(*value);
    }
    writer.finish()
}

fn names<T>(values: &[(&str, T)]) -> Vec<String> {
    values.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// A session with those globals and modules.
pub(super) fn request(globals: &[(&str, i32)], modules: &[(&str, &str)]) -> SessionRequest {
    SessionRequest {
        globals: names(globals),
        inputs: numbers(globals),
        modules: modules.iter().map(|(key, text)| ((*key).to_owned(), source(text))).collect(),
        ..SessionRequest::default()
    }
}

/// An update with those globals.
pub(super) fn globals(globals: &[(&str, i32)]) -> UpdateRequest {
    UpdateRequest { globals: names(globals), inputs: numbers(globals), ..UpdateRequest::default() }
}

/// A session with those functions of the host.
pub(super) fn functions(functions: &[(&str, u32)]) -> SessionRequest {
    let mut writer = Writer::new();
    writer.array(u32::try_from(functions.len()).expect("few"));
    for (name, number) in functions {
        writer.host_function(*number);
        writer.string(name);
    }
    SessionRequest {
        globals: names(functions),
        inputs: writer.finish(),
        ..SessionRequest::default()
    }
}

/// A session whose cells run on this thread.
pub(super) struct Cells {
    pub(super) isolate: Box<SessionIsolate>,
    pub(super) host: Arc<Host>,
    pub(super) report: bool,
    /// The bytes that count beside the heap.
    pub(super) in_flight: Arc<InFlight>,
    again: Vec<Inbound>,
    count: u32,
}

impl Cells {
    pub(super) fn open() -> Self {
        Self::with(SessionRequest::default())
    }

    pub(super) fn with(request: SessionRequest) -> Self {
        assert!(SessionIsolate::is_available(true));
        let pool = Pool::new(Realm::build, PoolOptions::default());
        let home = Home::new(pool.take(64 << 20, false).expect("an instance"));
        let tenant = Tenant::new(&home).expect("the first tenant");
        let cache = Arc::new(Cache::new(1 << 20));
        let request = SessionRequest { memory_limit_bytes: Some(64e6), ..request };
        let isolate = SessionIsolate::open(tenant, request, &cache);
        Self::of(isolate)
    }

    fn of(isolate: Box<SessionIsolate>) -> Self {
        let (host, in_flight) = (Arc::default(), Arc::default());
        Self { isolate, host, report: false, in_flight, again: Vec::new(), count: 0 }
    }

    pub(super) fn fork(&mut self) -> Self {
        Self::of(self.isolate.fork().expect("a fork"))
    }

    /// The session as bytes for another worker.
    pub(super) fn written(&self) -> Vec<u8> {
        let mut out = Output::default();
        self.isolate.write(&mut out).expect("a state in a slot");
        out.into_bytes()
    }

    /// Whether another slot takes these bytes as a session, which does not run. `lies`: with that slot's identity.
    pub(super) fn is_read(bytes: &[u8], lies: bool) -> bool {
        let pool = Pool::new(Realm::build, PoolOptions::default());
        let lease = pool.take(64 << 20, false).expect("an instance");
        let cache = Arc::new(Cache::new(1 << 20));
        let mut identity = Output::default();
        lease.slot().expect("a slot").identity().write(&mut identity);
        let identity = identity.into_bytes();
        let mut bytes = bytes.to_vec();
        if lies && bytes.len() > identity.len() {
            bytes[..identity.len()].copy_from_slice(&identity);
        }
        let mut input = Input::new(&bytes);
        SessionIsolate::read(&mut input, lease, &SessionRequest::default(), &cache).is_some()
    }

    fn seat(&self) -> CellSeat {
        let host = Arc::clone(&self.host);
        CellSeat { number: 0, embedder: host, termination: Arc::default(), report: self.report }
    }

    fn work(&mut self, text: &str) -> Work {
        self.count += 1;
        let filename = format!("<cell {}>", self.count);
        Work::Source { source: source(text), filename, language: Language::TypeScript }
    }

    fn settle(&mut self, work: Work, seat: &CellSeat) -> Settled {
        let inbox = std::mem::take(&mut self.again);
        let turn = self.isolate.start(work, seat, inbox);
        self.conclude(turn)
    }

    /// Begins a cell that waits for its host.
    pub(super) fn begin(&mut self, text: &str) {
        let (work, seat) = (self.work(text), self.seat());
        let inbox = std::mem::take(&mut self.again);
        assert!(matches!(self.isolate.start(work, &seat, inbox), Turn::Idle { .. }), "{text}");
    }

    /// Begins a cell with a number, which interleaves with others. Returns whether it waits for its host.
    pub(super) fn begin_as(&mut self, number: u32, text: &str) -> bool {
        let (work, mut seat) = (self.work(text), self.seat());
        seat.number = number;
        seat.termination = Arc::new(Termination::of_cell(Arc::clone(&self.in_flight)));
        let inbox = std::mem::take(&mut self.again);
        let turn = self.isolate.start(work, &seat, inbox);
        let keep = matches!(turn, Turn::Ended(End::Cell(_) | End::Failed(..)));
        let waits = matches!(turn, Turn::Idle { .. });
        if !waits {
            let concluded = self.isolate.conclude(number, keep);
            assert_eq!(concluded.state, SessionState::Kept, "{turn:?}");
        }
        waits
    }

    /// Hands the cell that waits what there is. `None` if it waits for more.
    pub(super) fn go_on(&mut self) -> Option<Settled> {
        let inbox = std::mem::take(&mut self.again);
        match self.isolate.turn(inbox) {
            Turn::Idle { .. } => None,
            ended @ Turn::Ended(_) => Some(self.conclude(ended)),
        }
    }

    fn conclude(&mut self, turn: Turn) -> Settled {
        let outcome = match turn {
            Turn::Idle { .. } => panic!("the cell waits: {:?}", self.isolate.stalled()),
            Turn::Ended(End::Cell(end)) => Outcome::Cell(end),
            Turn::Ended(End::Failed(status, error)) => Outcome::Failed(status, error),
            Turn::Ended(End::Memory | End::Oversized(_)) => Outcome::Memory,
            Turn::Ended(End::Stopped(stopped)) if stopped.is_memory => Outcome::Memory,
            Turn::Ended(End::Asked | End::Stopped(_)) => Outcome::Ended,
            Turn::Ended(end) => panic!("{end:?}"),
        };
        let keep = matches!(outcome, Outcome::Cell(_) | Outcome::Failed(..));
        let concluded = self.isolate.conclude(0, keep);
        self.again = concluded.again;
        Settled { outcome, state: concluded.state }
    }

    pub(super) fn run(&mut self, text: &str) -> Settled {
        let (work, seat) = (self.work(text), self.seat());
        self.settle(work, &seat)
    }

    /// Runs a cell, which another thread ends once it has begun.
    pub(super) fn run_ended(&mut self, text: &str) -> Settled {
        let (work, seat) = (self.work(&format!("console.log('begun'); {text}")), self.seat());
        let termination: Arc<Termination> = Arc::clone(&seat.termination);
        let host = Arc::clone(&self.host);
        thread::scope(|scope| {
            scope.spawn(move || {
                let started = Instant::now();
                while !host.seen.lock().logs.iter().any(|log| log == "begun")
                    && started.elapsed() < Duration::from_mins(2)
                {
                    thread::sleep(Duration::from_millis(1));
                }
                host.seen.lock().logs.clear();
                thread::sleep(Duration::from_millis(20));
                termination.raise();
            });
            self.settle(work, &seat)
        })
    }

    /// Runs a cell that is ended while it is compiled.
    pub(super) fn run_ended_early(&mut self, text: &str) -> Settled {
        let (work, seat) = (self.work(text), self.seat());
        seat.termination.raise();
        self.settle(work, &seat)
    }

    /// Runs a cell that is ended when it has been loaded.
    pub(super) fn run_ended_when_loaded(&mut self, text: &str) -> Settled {
        self.host.seen.lock().ends_early = true;
        let settled = self.run(text);
        self.host.seen.lock().ends_early = false;
        settled
    }

    /// The text of a cell's value.
    pub(super) fn text(&mut self, text: &str) -> String {
        let settled = self.run(text);
        match &settled.outcome {
            Outcome::Cell(end) => end.text.clone().unwrap_or_else(|| "undefined".to_owned()),
            Outcome::Failed(_, error) => format!("{}: {}", error.name, error.message),
            outcome => panic!("{outcome:?}"),
        }
    }

    pub(super) fn call(&mut self, name: &str, arg: i32) -> Settled {
        let work = Work::Call { name: name.to_owned(), args: numbers(&[("", arg)]) };
        let seat = self.seat();
        self.settle(work, &seat)
    }

    /// Calls a function that the host holds.
    pub(super) fn held(&mut self, function: u32, arg: i32) -> Result<String, String> {
        let work = Work::Held { function, args: numbers(&[("", arg)]), call: 7 };
        let seat = self.seat();
        let settled = self.settle(work, &seat);
        assert_eq!(settled.status(), "success");
        let mut seen = std::mem::take(&mut self.host.seen.lock().settled);
        assert_eq!(seen.len(), 1);
        let (call, outcome) = seen.remove(0);
        assert_eq!(call, 7);
        outcome
    }

    /// Answers the calls that were started, when the next cell runs.
    pub(super) fn answer_started(&mut self, with: &str) {
        let started = std::mem::take(&mut self.host.seen.lock().started);
        self.answer(&started, with);
    }

    /// The promises of the calls that were started.
    pub(super) fn started(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.host.seen.lock().started)
    }

    /// Answers these calls, as the above.
    pub(super) fn answer(&mut self, started: &[u32], with: &str) {
        let answers = started
            .iter()
            .copied()
            .map(|promise| Inbound::PromiseSettled { promise, completion: Ok(text(with)) });
        self.again.extend(answers);
    }

    /// Each name with its kind, its type and its size.
    pub(super) fn names(&mut self) -> Vec<String> {
        let names = self.isolate.names().expect("names").into_iter();
        let shown = names.map(|name| {
            let size = name.size.map(|size| format!(" {size}")).unwrap_or_default();
            format!("{} {} {}{size}", name.name, name.kind.as_str(), name.kind_of)
        });
        shown.collect()
    }
}
