//! The host of the table: the fixed functions, and their thread.
//!
//! In: a run's questions to its host. Out: answers. [`EventLoop`] plays the one thread of a caller: it handles events
//! one after another, and events that are due on a later turn wait for it.

use std::{
    collections::HashMap,
    rc::Rc,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use isolane::{
    ASYNC_FUNCTION, Completion, ExecutionResult, Host, HostCall, REPORT_SINK, RunHandle,
    value::{ErrorClass, Value, Writer},
};
use serde_json::Value as Json;

use crate::{
    compare::compare,
    js::{Callback, Js, Object, Outgoing, length, read},
    tagged::Values,
};

/// The time limit of a case.
const CEILING: Duration = Duration::from_secs(if cfg!(isolane_sanitized) { 400 } else { 20 });

/// The length of a turn while something is due on a later one.
const TURN: Duration = Duration::from_millis(1);

/// The number of turns that `settle()` waits.
const SETTLE_TURNS: u64 = 10;

type Outcome = Result<Js, Js>;

/// A function of this host.
#[derive(Clone)]
enum Function {
    Named(String),
    Adder(f64),
}

/// A call of a sandbox function: the promise that it settles, and whether the function is called once more with its
/// result.
struct Calling {
    promise: u32,
    again: Option<Rc<Callback>>,
}

/// The host's objects by number.
#[derive(Default)]
pub(crate) struct Tables {
    functions: Vec<Function>,
    promises: u32,
    calls: HashMap<u32, Calling>,
    next_call: u32,
    turn: u64,
    due: Vec<(u64, u32, Outcome)>,
    /// Promises for which a call was started, by their number here.
    started: HashMap<u32, u32>,
    /// Promises of this host that settle like a promise of the sandbox, by the number of the latter.
    relays: HashMap<u32, Vec<u32>>,
    kept: Option<Rc<Callback>>,
    sink: Option<Function>,
    sunk: usize,
}

impl Tables {
    /// The host function of that name. Each name has one function.
    pub(crate) fn function_named(&mut self, name: &str) -> Js {
        let named = |known: &Function| matches!(known, Function::Named(known) if known == name);
        match self.functions.iter().position(named) {
            Some(number) => self.numbered(length(number)),
            None => self.function(Function::Named(name.to_owned())),
        }
    }

    /// A function as it crosses. Functions that always answer with a promise are marked.
    fn numbered(&self, number: u32) -> Js {
        const ASYNC: [&str; 3] = ["later", "laterFail", "never"];
        let function = &self.functions[number as usize];
        let mark = match function {
            Function::Named(name) if ASYNC.contains(&name.as_str()) => ASYNC_FUNCTION,
            _ => 0,
        };
        Js::object(Object::HostFunction(number | mark))
    }

    fn function(&mut self, function: Function) -> Js {
        self.functions.push(function);
        self.numbered(length(self.functions.len() - 1))
    }

    /// A promise that settles so many turns from now.
    pub(crate) fn promise_after(&mut self, turns: u64, outcome: Outcome) -> Js {
        let number = self.promise();
        self.due.push((self.turn + turns, number, outcome));
        Js::object(Object::HostPromise(number))
    }

    /// A promise that settles like that promise of the sandbox, whose own number may be invalid when an answer arrives.
    fn relay(&mut self, theirs: u32) -> Js {
        let number = self.promise();
        self.relays.entry(theirs).or_default().push(number);
        Js::object(Object::HostPromise(number))
    }

    pub(crate) fn report_to(&mut self, name: &str) {
        self.sink = Some(Function::Named(name.to_owned()));
    }

    fn promise(&mut self) -> u32 {
        self.promises += 1;
        self.promises - 1
    }

    fn call(&mut self, remote: &RunHandle, callback: &Callback, args: Vec<Js>, calling: Calling) {
        // Held until they are sent: dropping a callback among them releases it.
        let args = Js::list(args);
        let message = Outgoing::message(&args, "arguments").expect("it came from the sandbox");
        self.calls.insert(self.next_call, calling);
        remote.call_function(callback.number, message, self.next_call);
        self.next_call += 1;
    }
}

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
        read(message, &self.remote).map_err(|malformed| malformed.to_string())
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Call { function, args, call } => {
                let (function, args) = self.called(function, &args)?;
                let outcome = self.answer(&function, args);
                call.reply(completion(&outcome));
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
                self.tables.call(&self.remote, &again, vec![value], once_more);
            }
            (Calling { promise, .. }, outcome) => self.settle(promise, &outcome),
        }
        Ok(())
    }

    /// The result or exception of the host function.
    fn answer(&mut self, function: &Function, args: Vec<Js>) -> Outcome {
        let arg = |index: usize| args.get(index).cloned().unwrap_or(Js::Undefined);
        let error = |class| Err(Js::error(class, &text(&arg(0)), arg(1)));
        let name = match function {
            Function::Adder(n) => return Ok(sum(&Js::Number(*n), &arg(0))),
            Function::Named(name) => name.as_str(),
        };
        match name {
            "undefined" => Ok(Js::Undefined),
            "echo" => Ok(arg(0)),
            "add" => Ok(sum(&arg(0), &arg(1))),
            "args" => Ok(Js::list(args)),
            "fail" => Err(Js::error(ErrorClass::Error, &text(&arg(0)), Js::Undefined)),
            "failType" => Err(Js::error(ErrorClass::TypeError, &text(&arg(0)), Js::Undefined)),
            "failCode" => error(ErrorClass::Error),
            "failValue" => Err(arg(0)),
            "later" => Ok(match arg(0).sandbox_promise() {
                Some(theirs) => self.tables.relay(theirs),
                None => self.tables.promise_after(1, Ok(arg(0))),
            }),
            "laterFail" => {
                let error = Js::error(ErrorClass::Error, &text(&arg(0)), Js::Undefined);
                Ok(self.tables.promise_after(1, Err(error)))
            }
            "never" => Ok(Js::object(Object::HostPromise(self.tables.promise()))),
            "fnLater" => {
                Ok(Js::record([("promise", self.tables.promise_after(1, Ok(Js::Number(42.0))))]))
            }
            "makeAdder" => match arg(0) {
                Js::Number(n) => Ok(self.tables.function(Function::Adder(n))),
                _ => Err(Js::error(
                    ErrorClass::TypeError,
                    &text(&Js::text("no number")),
                    Js::Undefined,
                )),
            },
            "call" | "callTwice" => {
                let callback = callback(&arg(0))?;
                let again = (name == "callTwice").then(|| Rc::clone(&callback));
                Ok(self.call_back(&callback, args.into_iter().skip(1).collect(), again))
            }
            "keep" => {
                self.tables.kept = Some(callback(&arg(0))?);
                Ok(Js::Undefined)
            }
            "callKept" => {
                let kept = self.tables.kept.clone();
                let kept =
                    kept.ok_or_else(|| Js::error(ErrorClass::TypeError, &[], Js::Undefined))?;
                Ok(self.call_back(&kept, args, None))
            }
            "isSame" => Ok(Js::Bool(self.is_echo(&arg(0)))),
            "describe" => Ok(Js::text(&describe(&arg(0)))),
            "terminate" => {
                let reason = match arg(0) {
                    Js::Undefined => None,
                    reason => Some(String::from_utf16_lossy(&text(&reason))),
                };
                self.remote.terminate(reason.as_deref());
                Ok(Js::Undefined)
            }
            "instance" => Ok(Js::object(Object::Instance("Pool".to_owned()))),
            "big" => match arg(0) {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a size"
                )]
                Js::Number(n) => Ok(Js::text(&"x".repeat(n as usize))),
                _ => Ok(Js::text("")),
            },
            "settle" => Ok(self.tables.promise_after(SETTLE_TURNS, Ok(Js::Undefined))),
            _ => panic!("the table has no host function '{name}'"),
        }
    }

    fn call_back(
        &mut self,
        callback: &Rc<Callback>,
        args: Vec<Js>,
        again: Option<Rc<Callback>>,
    ) -> Js {
        let promise = self.tables.promise();
        self.tables.call(&self.remote, callback, args, Calling { promise, again });
        Js::object(Object::HostPromise(promise))
    }

    fn is_echo(&self, value: &Js) -> bool {
        let Js::Object(object) = value else { return false };
        let Object::HostFunction(number) = &*object.borrow() else { return false };
        let function = self.tables.functions.get((number & !ASYNC_FUNCTION) as usize);
        matches!(function, Some(Function::Named(name)) if name == "echo")
    }
}

/// The completion for the run. A value that cannot cross is an error with the reason.
fn completion(outcome: &Outcome) -> Completion {
    let (Ok(value) | Err(value)) = outcome;
    match Outgoing::message(value, "result") {
        Ok(message) if outcome.is_ok() => Ok(message),
        Ok(message) => Err(message),
        Err(refused) => {
            let mut writer = Writer::new();
            writer.error(ErrorClass::TypeError);
            writer.string("SerializationError");
            writer.string(&refused);
            writer.undefined();
            writer.undefined();
            Err(writer.finish())
        }
    }
}

fn elements(list: &Js) -> Vec<Js> {
    let Js::Object(object) = list else { return Vec::new() };
    let Object::Array(_, elements) = &*object.borrow() else { return Vec::new() };
    elements.iter().map(|(_, value)| value.clone()).collect()
}

fn callback(value: &Js) -> Result<Rc<Callback>, Js> {
    if let Js::Object(object) = value
        && let Object::SandboxFunction(callback) = &*object.borrow()
    {
        return Ok(Rc::clone(callback));
    }
    Err(Js::error(ErrorClass::TypeError, &text(&Js::text("f is not a function")), Js::Undefined))
}

fn sum(left: &Js, right: &Js) -> Js {
    match (left, right) {
        (Js::Number(left), Js::Number(right)) => Js::Number(left + right),
        _ => Js::String([text(left), text(right)].concat()),
    }
}

/// A value as text, as far as the table needs it.
fn text(value: &Js) -> Vec<u16> {
    match value {
        Js::String(units) => units.clone(),
        Js::Undefined => Vec::new(),
        Js::Number(n) => n.to_string().encode_utf16().collect(),
        other => describe(other).encode_utf16().collect(),
    }
}

/// The kind of a value in one word.
fn describe(value: &Js) -> String {
    let object = match value {
        Js::Undefined => return "undefined".to_owned(),
        Js::Null => return "null".to_owned(),
        Js::Bool(_) => return "boolean".to_owned(),
        Js::Number(n) if *n == 0.0 && n.is_sign_negative() => return "-0".to_owned(),
        Js::Number(_) => return "number".to_owned(),
        Js::BigInt(..) => return "bigint".to_owned(),
        Js::String(_) => return "string".to_owned(),
        Js::Symbol(_) => return "symbol".to_owned(),
        Js::Object(object) => object.borrow(),
    };
    match &*object {
        Object::Plain(entries) => {
            let keys: Vec<String> =
                entries.iter().map(|(key, _)| String::from_utf16_lossy(key)).collect();
            format!("Object({})", keys.join(","))
        }
        Object::Array(length, _) => format!("Array({length})"),
        Object::Map(entries) => format!("Map({})", entries.len()),
        Object::Set(members) => format!("Set({})", members.len()),
        Object::Date(_) => "Date".to_owned(),
        Object::RegExp(..) => "RegExp".to_owned(),
        Object::Error { class, .. } => class.name().to_owned(),
        Object::Buffer(blob) => format!("ArrayBuffer({})", blob.len()),
        Object::View { kind, length, .. } => format!("{kind:?}({length})"),
        Object::HostFunction(_) | Object::SandboxFunction(_) => "function".to_owned(),
        Object::HostPromise(_) | Object::SandboxPromise(_) => "Promise".to_owned(),
        Object::Instance(class) => class.clone(),
    }
}
