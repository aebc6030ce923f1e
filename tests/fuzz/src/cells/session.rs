//! A session of the target, with the account of what its cells must have left.
//!
//! In: cells, questions and ends. Out: nothing, if every cell has a result that its session allows, if the session
//! answers afterwards, and if its names are those that the account has.

use std::{
    cell::{Cell, OnceCell},
    collections::BTreeSet,
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::Ordering,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use isolane::{
    CallRequest, CellRequest, Error, ExecutionResult, Name, RunHandle, SessionHandle,
    SessionRequest, SessionState, Status, value::Writer,
};

use super::host::{Ear, Numbers, Table};
use crate::run::{self, CEILING, PATIENCE};

/// The longest text of a cell's value.
const TEXT_BYTES: usize = 16 << 10;

/// The most names that are compared with their values.
const MOST_NAMES: usize = 64;

/// A cell of the caller's.
struct Flight {
    run: RunHandle,
    ear: Arc<Ear>,
    options: Options,
    terminated: Cell<bool>,
    outcome: OnceCell<(Status, SessionState)>,
}

/// The parts of a cell that decide which ends it may have.
#[derive(Default)]
struct Options {
    /// The number of the name that the cell declares before anything else.
    mark: Option<u32>,
    /// Whether the cell imports modules. One that throws ends the cell before it has declared anything.
    imports: bool,
    has_timeout: bool,
}

/// An event of a session, in the order of the calls.
#[derive(Clone)]
enum Moment {
    Cell(Rc<Flight>),
    Reset,
    /// A call of the host's own may have reset the session before this.
    Unknown,
}

/// A question whose answer is due when the cells before it are done.
enum Question {
    Names(Receiver<Result<Vec<Name>, Error>>),
    Reset(Receiver<Result<(), Error>>),
    Fork(Receiver<Result<SessionHandle, Error>>, Box<Copied>),
}

/// The part of a copy that its host makes.
struct Copied {
    own: Arc<Ear>,
    bell: (Sender<()>, Receiver<()>),
    history: Vec<Moment>,
}

pub(super) struct Session {
    handle: SessionHandle,
    /// The host of events outside of cells.
    own: Arc<Ear>,
    numbers: Arc<Numbers>,
    bell: (Sender<()>, Receiver<()>),
    interleaves: bool,
    limit_bytes: f64,
    history: Vec<Moment>,
    /// The cells that have not been collected.
    flights: Vec<Rc<Flight>>,
    questions: Vec<Question>,
    /// The calls that the host made.
    calls: Vec<u32>,
}

impl Session {
    pub(super) fn open(request: SessionRequest, numbers: &Arc<Numbers>) -> Self {
        let (interleaves, limit_bytes) = (request.interleave, request.memory_limit_bytes);
        let bell = mpsc::channel();
        let own = Ear::new(&Arc::default(), numbers, &bell.0);
        let handle = run::runtime().open_session(request, Arc::clone(&own) as _);
        Self {
            handle: handle.expect("valid options"),
            own,
            numbers: Arc::clone(numbers),
            bell,
            interleaves,
            limit_bytes: limit_bytes.unwrap_or(f64::from(128 << 20)),
            history: Vec::new(),
            flights: Vec::new(),
            questions: Vec::new(),
            calls: Vec::new(),
        }
    }

    pub(super) fn handle(&self) -> &SessionHandle {
        &self.handle
    }

    pub(super) fn table(&self) -> &Mutex<Table> {
        &self.own.table
    }

    /// Queues a cell. `mark`: the number of a name that it declares first. `imports`: whether it may import modules.
    pub(super) fn run(&mut self, request: CellRequest, mark: Option<u32>, imports: bool) {
        let options = Options { mark, imports, has_timeout: request.timeout_ms.is_some() };
        self.begin(options, |session, ear| session.run(request, ear));
    }

    /// Queues a call of something that a cell may have declared.
    pub(super) fn call(&mut self, request: CallRequest) {
        let has_timeout = request.timeout_ms.is_some();
        let options = Options { has_timeout, ..Options::default() };
        self.begin(options, |session, ear| session.call(request, ear));
    }

    fn begin(
        &mut self,
        options: Options,
        start: impl FnOnce(&SessionHandle, Arc<Ear>) -> Result<RunHandle, Error>,
    ) {
        let ear = Ear::new(&self.own.table, &self.numbers, &self.bell.0);
        let run = start(&self.handle, Arc::clone(&ear)).expect("an open session takes cells");
        let (terminated, outcome) = (Cell::new(false), OnceCell::new());
        let flight = Rc::new(Flight { run, ear, options, terminated, outcome });
        self.history.push(Moment::Cell(Rc::clone(&flight)));
        self.flights.push(flight);
    }

    /// Ends one of the cells that have not been collected.
    pub(super) fn terminate(&self, which: usize) {
        if let Some(flight) = self.flights.get(which % self.flights.len().max(1)) {
            flight.terminate();
        }
    }

    /// Calls one of the functions that the sandbox gave out, or one that it did not.
    pub(super) fn call_function(&mut self, which: usize, arg: i32) {
        let known = self.own.table().functions.get(which).copied();
        let function = known.unwrap_or(u32::try_from(which).unwrap_or_default());
        let call = self.numbers.next();
        let mut args = Writer::new();
        args.array(1);
        args.int(arg);
        self.calls.push(call);
        self.handle.call_function(function, args.finish(), call);
    }

    pub(super) fn ask_names(&mut self) {
        let (done, answer) = mpsc::channel();
        self.handle.names(move |names| drop(done.send(names)));
        self.questions.push(Question::Names(answer));
    }

    pub(super) fn reset(&mut self) {
        let (done, answer) = mpsc::channel();
        self.handle.reset(move |result| drop(done.send(result)));
        self.questions.push(Question::Reset(answer));
        self.history.push(Moment::Reset);
    }

    /// Asks for a copy, which `drain` returns.
    pub(super) fn fork(&mut self) {
        let (done, answer) = mpsc::channel();
        let (bell, table) = (mpsc::channel(), Arc::new(Mutex::<Table>::default()));
        let own = Ear::new(&table, &self.numbers, &bell.0);
        own.table().functions.clone_from(&self.own.table().functions);
        self.handle.fork(Arc::clone(&own) as _, move |copy| drop(done.send(copy)));
        let mut history = self.history.clone();
        if !self.calls.is_empty() {
            history.push(Moment::Unknown);
        }
        let copied = Copied { own, bell, history };
        self.questions.push(Question::Fork(answer, Box::new(copied)));
    }

    /// Answers the sandbox until all cells have settled, and ends those that take longer than `patience`. Checks their
    /// results, and returns the copies that were made meanwhile.
    pub(super) fn drain(&mut self, patience: Duration) -> Vec<Self> {
        self.settle(patience);
        for flight in std::mem::take(&mut self.flights) {
            self.collect(&flight);
        }
        self.collect_answers(patience)
    }

    fn settle(&mut self, patience: Duration) {
        let (began, mut is_asked) = (Instant::now(), false);
        while self.flights.iter().any(|flight| flight.is_in_flight()) {
            Table::answer(&self.own.table, &self.handle, usize::MAX);
            let left = patience.saturating_sub(began.elapsed());
            let left = if is_asked { CEILING } else { left };
            if self.bell.1.recv_timeout(left).is_err() {
                assert!(!is_asked, "a cell does not settle");
                is_asked = true;
                self.flights.iter().for_each(|flight| flight.terminate());
            }
        }
    }

    fn collect_answers(&mut self, patience: Duration) -> Vec<Self> {
        let mut copies = Vec::new();
        let mut patience = patience;
        for question in std::mem::take(&mut self.questions) {
            match question {
                Question::Names(answer) => {
                    if let Ok(names) = self.wait(&answer, &mut patience) {
                        check_names(&names);
                    }
                }
                Question::Reset(answer) => {
                    self.wait(&answer, &mut patience).expect("an open session is reset");
                }
                Question::Fork(answer, copied) => {
                    if let Ok(handle) = self.wait(&answer, &mut patience) {
                        copies.push(self.copy(handle, *copied));
                    }
                }
            }
        }
        copies
    }

    /// An answer. A session that computes for the host, without a cell that could be ended, is reset.
    fn wait<T>(&mut self, answer: &Receiver<T>, patience: &mut Duration) -> T {
        if let Ok(answer) = answer.recv_timeout(*patience) {
            return answer;
        }
        *patience = CEILING;
        self.handle.reset(|_| {});
        self.history.push(Moment::Reset);
        answer.recv_timeout(CEILING).expect("a question is answered")
    }

    fn copy(&self, handle: SessionHandle, copied: Copied) -> Self {
        let Copied { own, bell, history } = copied;
        Self {
            handle,
            own,
            numbers: Arc::clone(&self.numbers),
            bell,
            interleaves: self.interleaves,
            limit_bytes: self.limit_bytes,
            history,
            flights: Vec::new(),
            questions: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// Takes the result of a cell that has settled.
    fn collect(&self, flight: &Flight) -> ExecutionResult {
        assert!(!flight.run.running(), "a settled cell is over");
        let result = flight.run.take_result().expect("a settled cell has a result");
        assert!(flight.run.take_result().is_none(), "a result is taken once");
        run::judge(&result, self.limit_bytes);
        let cell = result.cell.as_ref().expect("the outcome of a cell");
        assert_eq!(flight.ear.take_concluded(), [cell.session], "{result:?}");
        assert!(cell.text.as_deref().unwrap_or_default().len() <= TEXT_BYTES);
        let is_success = result.status == Status::Success;
        assert!(is_success || (cell.uncloned.is_none() && cell.value_from.is_none()));
        let is_kept = cell.session == SessionState::Kept;
        let may_be_undone = matches!(result.status, Status::Terminated | Status::Memory);
        assert!(is_kept || may_be_undone, "{result:?}");
        assert!(self.is_possible(flight, &result), "nobody ended this: {result:?}");
        assert!(flight.outcome.set((result.status, cell.session)).is_ok());
        result
    }

    fn is_possible(&self, flight: &Flight, result: &ExecutionResult) -> bool {
        if result.status != Status::Terminated {
            return true;
        }
        match result.error.as_ref().map(|error| error.name.as_str()) {
            Some("Terminated") => flight.terminated.get(),
            Some("Timeout") => flight.options.has_timeout,
            Some("SessionRolledBack") => self.interleaves,
            // A stall; a reset of this session, or of one whose home is stuck.
            Some("SafetyCap" | "SessionReset") => true,
            Some("SessionClosed") => self.handle.is_closed(),
            _ => false,
        }
    }

    /// Checks that the session answers, and that its names are those that its cells have left. One that cells have made
    /// unable to answer must do so after a reset. All questions have been answered.
    pub(super) fn survey(&mut self) {
        if self.answers(PATIENCE) {
            return;
        }
        self.reset();
        drop(self.drain(CEILING));
        assert_eq!(self.names(CEILING), Some(Vec::new()), "a reset leaves no names");
        assert!(self.answers(CEILING), "a session that was reset does not answer");
    }

    /// Whether a cell can be run. Code that earlier cells have left may end it, but cannot change its value.
    fn answers(&mut self, patience: Duration) -> bool {
        let Some(names) = self.names(patience) else { return false };
        check_names(&names);
        self.check_marks(&names);
        let shown = &names[..names.len().min(MOST_NAMES)];
        self.begin(Options::default(), |session, ear| {
            session.run(CellRequest::new(probe(shown).into()), ear)
        });
        let result = self.last_result(patience);
        if matches!(result.status, Status::Terminated | Status::Memory) {
            return false;
        }
        let value = result.result.as_ref().unwrap_or_else(|| panic!("no value: {result:?}"));
        let seen: String = value.deserialize().expect("a text");
        let seen: Vec<&str> = seen.split_terminator(',').collect();
        assert_eq!(seen.len(), shown.len(), "{result:?}");
        if self.names(patience).as_ref() == Some(&names) {
            for (name, seen) in shown.iter().zip(&seen) {
                assert!(is_of(name, seen), "{name:?} is {seen}");
            }
        }
        true
    }

    /// The result of the only cell in flight.
    fn last_result(&mut self, patience: Duration) -> ExecutionResult {
        self.settle(patience);
        let flight = self.flights.pop().expect("the cell that was begun");
        self.collect(&flight)
    }

    /// The names, if the session answers at all.
    fn names(&mut self, patience: Duration) -> Option<Vec<Name>> {
        let (done, answer) = mpsc::channel();
        self.handle.names(move |names| drop(done.send(names)));
        answer.recv_timeout(patience).ok()?.ok()
    }

    /// Whether a cell has reset the session since the last moment after which its state was known. Of cells that
    /// interleave nobody knows which have completed before.
    fn has_reset_itself(&self) -> bool {
        let is_reset = |moment: &Moment| match moment {
            Moment::Cell(flight) => {
                matches!(flight.outcome.get(), Some((_, SessionState::Reset)))
            }
            Moment::Reset | Moment::Unknown => false,
        };
        let mut recent = self.history.iter().rev().take_while(|it| matches!(it, Moment::Cell(_)));
        recent.any(is_reset)
    }

    /// Compares the marks among the names with the account.
    fn check_marks(&mut self, names: &[Name]) {
        let was_reset = self.own.take_concluded().contains(&SessionState::Reset);
        if was_reset || (self.interleaves && self.has_reset_itself()) {
            self.history.push(Moment::Unknown);
        }
        let (mut kept, mut possible) = (BTreeSet::new(), BTreeSet::new());
        for moment in &self.history {
            let (flight, outcome) = match moment {
                Moment::Cell(flight) => (flight, flight.outcome.get()),
                Moment::Reset => {
                    (kept, possible) = (BTreeSet::new(), BTreeSet::new());
                    continue;
                }
                Moment::Unknown => {
                    possible.append(&mut kept);
                    continue;
                }
            };
            match outcome {
                Some((Status::Error, _)) if flight.options.imports => {
                    possible.extend(flight.options.mark);
                }
                Some((Status::Success | Status::Error, _)) => kept.extend(flight.options.mark),
                // Another cell may have completed meanwhile, and then this one's declarations stay.
                Some((_, SessionState::RolledBack)) if self.interleaves => {
                    possible.extend(flight.options.mark);
                }
                Some((_, SessionState::Reset)) if !self.interleaves => {
                    (kept, possible) = (BTreeSet::new(), BTreeSet::new());
                }
                Some(_) => {}
                // A copy was made before this cell of its base settled.
                None => possible.extend(flight.options.mark),
            }
        }
        let marks = names.iter().filter_map(|name| name.name.strip_prefix(MARK)?.parse().ok());
        let marks: BTreeSet<u32> = marks.collect();
        let is_all = kept.is_subset(&marks);
        possible.append(&mut kept);
        assert!(is_all && marks.is_subset(&possible), "{marks:?} of {possible:?}: {names:?}");
    }

    /// The text that is the value of a cell, which has to succeed.
    pub(super) fn value(&mut self, source: &str) -> String {
        self.begin(Options::default(), |session, ear| {
            session.run(CellRequest::new(source.to_owned().into()), ear)
        });
        let result = self.last_result(CEILING);
        let value = result.result.as_ref().unwrap_or_else(|| panic!("no value: {result:?}"));
        value.deserialize().expect("a text")
    }

    /// Drops the session. Its cells are ended, for which nobody waits.
    pub(super) fn abandon(self) {
        // Nothing but a reset or a close ends a call between cells that does not return.
        if !self.calls.is_empty() {
            return self.close();
        }
        self.flights.iter().for_each(|flight| flight.terminate());
    }

    /// Closes the session, whatever runs in it.
    pub(super) fn close(mut self) {
        let (done, closed) = mpsc::channel();
        self.handle.close(move || done.send(()).expect("somebody waits"));
        closed.recv_timeout(CEILING).expect("a session closes");
        assert!(self.handle.is_closed());
        self.settle(CEILING);
        for flight in std::mem::take(&mut self.flights) {
            self.collect(&flight);
        }
        let refused =
            self.handle.run(CellRequest::new("0".to_owned().into()), Arc::clone(&self.own) as _);
        assert!(refused.is_err(), "a closed session takes a cell");
        let began = Instant::now();
        let has_all = || {
            let outcomes = &self.own.table().outcomes;
            self.calls.iter().all(|call| outcomes.contains_key(call))
        };
        while !has_all() || self.own.settlements.load(Ordering::SeqCst) == 0 {
            assert!(began.elapsed() < CEILING, "a call of the host does not settle");
            thread::sleep(Duration::from_micros(50));
        }
        let outcomes = &self.own.table().outcomes;
        assert!(self.calls.iter().all(|call| outcomes[call] == 1), "{outcomes:?}");
    }
}

impl Flight {
    fn is_in_flight(&self) -> bool {
        self.ear.settlements.load(Ordering::SeqCst) == 0
    }

    fn terminate(&self) {
        self.terminated.set(true);
        self.run.terminate(Some("enough"));
    }
}

/// The beginning of the name of a mark.
pub(super) const MARK: &str = "mark_";

/// A cell whose value has a text for each name: its `typeof`, or `uninitialized`. The value is a string, which code of
/// other cells cannot make a thenable.
fn probe(names: &[Name]) -> String {
    let texts = names.iter().map(|Name { name, .. }| {
        format!(
            "(() => {{ try {{ return typeof {name}; }} catch {{ return 'uninitialized'; }} }})()"
        )
    });
    texts.fold("''".to_owned(), |all, text| all + " + " + &text + " + ','")
}

/// Whether `typeof` may give that text for a name.
fn is_of(name: &Name, seen: &str) -> bool {
    match name.kind_of.as_str() {
        "uninitialized" | "undefined" | "boolean" | "number" | "bigint" | "string" | "symbol"
        | "function" => seen == name.kind_of,
        "Proxy" => seen == "object" || seen == "function",
        _ => seen == "object",
    }
}

fn check_names(names: &[Name]) {
    let different: BTreeSet<&str> = names.iter().map(|name| name.name.as_str()).collect();
    assert_eq!(different.len(), names.len(), "a name twice: {names:?}");
}
