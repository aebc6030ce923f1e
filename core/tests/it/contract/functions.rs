//! The fixed functions of the table's host, and its objects by number.
//!
//! In: a call with its arguments. Out: a result or an exception, and promises that settle on later turns.

use std::{collections::HashMap, rc::Rc};

use isolane::{
    ASYNC_FUNCTION, Completion, answer_of,
    value::{ErrorClass, Writer},
};

use super::js::{Callback, Js, Object, Outgoing, length};

/// The number of turns that `settle()` waits.
const SETTLE_TURNS: u64 = 10;

pub(crate) type Outcome = Result<Js, Js>;

/// A function of this host.
#[derive(Clone)]
pub(crate) enum Function {
    Named(String),
    Adder(f64),
}

/// A call of a sandbox function: the promise that it settles, and whether the function is called once more with its
/// result.
pub(crate) struct Calling {
    pub(crate) promise: u32,
    pub(crate) again: Option<Rc<Callback>>,
}

/// The host's objects by number.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) functions: Vec<Function>,
    promises: u32,
    pub(crate) calls: HashMap<u32, Calling>,
    next_call: u32,
    pub(crate) turn: u64,
    pub(crate) due: Vec<(u64, u32, Outcome)>,
    /// Promises for which a call was started, by their number here.
    pub(crate) started: HashMap<u32, u32>,
    /// Promises of this host that settle like a promise of the sandbox, by the number of the latter.
    pub(crate) relays: HashMap<u32, Vec<u32>>,
    pub(crate) kept: Option<Rc<Callback>>,
    pub(crate) sink: Option<Function>,
    pub(crate) sunk: usize,
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

    pub(crate) fn promise(&mut self) -> u32 {
        self.promises += 1;
        self.promises - 1
    }

    pub(crate) fn call(&mut self, callback: &Callback, args: Vec<Js>, calling: Calling) {
        // Held until they are sent: dropping a callback among them releases it.
        let args = Js::list(args);
        let message = Outgoing::message(&args, "arguments").expect("it came from the sandbox");
        self.calls.insert(self.next_call, calling);
        callback.remote.call_function(callback.number, message, self.next_call);
        self.next_call += 1;
    }
}

impl Tables {
    /// The result or exception of the host function. `terminate` ends the run that called it.
    pub(crate) fn answer(
        &mut self,
        function: &Function,
        args: Vec<Js>,
        terminate: &dyn Fn(Option<&str>),
    ) -> Outcome {
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
                Some(theirs) => self.relay(theirs),
                None => self.promise_after(1, Ok(arg(0))),
            }),
            "laterFail" => {
                let error = Js::error(ErrorClass::Error, &text(&arg(0)), Js::Undefined);
                Ok(self.promise_after(1, Err(error)))
            }
            "never" => Ok(Js::object(Object::HostPromise(self.promise()))),
            "fnLater" => Ok(Js::record([("promise", self.promise_after(1, Ok(Js::Number(42.0))))])),
            "makeAdder" => match arg(0) {
                Js::Number(n) => Ok(self.function(Function::Adder(n))),
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
                self.kept = Some(callback(&arg(0))?);
                Ok(Js::Undefined)
            }
            "callKept" => {
                let kept = self.kept.clone();
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
                terminate(reason.as_deref());
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
            "settle" => Ok(self.promise_after(SETTLE_TURNS, Ok(Js::Undefined))),
            _ => panic!("the table has no host function '{name}'"),
        }
    }

    /// Calls a function of the sandbox. The promise settles with its outcome.
    pub(crate) fn call_back(
        &mut self,
        callback: &Rc<Callback>,
        args: Vec<Js>,
        again: Option<Rc<Callback>>,
    ) -> Js {
        let promise = self.promise();
        self.call(callback, args, Calling { promise, again });
        Js::object(Object::HostPromise(promise))
    }

    fn is_echo(&self, value: &Js) -> bool {
        let Js::Object(object) = value else { return false };
        let Object::HostFunction(number) = &*object.borrow() else { return false };
        let function = self.functions.get((number & !ASYNC_FUNCTION) as usize);
        matches!(function, Some(Function::Named(name)) if name == "echo")
    }
}

/// The completion of a promise for the run. A value that cannot cross is an error with the reason.
pub(crate) fn completion(outcome: &Outcome) -> Completion {
    completion_at(outcome, "result")
}

/// The answer of a function for the run. Each function has the name in the sandbox that it has here.
pub(crate) fn answered(function: &Function, outcome: &Outcome) -> Completion {
    let name = match function {
        Function::Named(name) => name,
        Function::Adder(_) => "",
    };
    completion_at(outcome, &answer_of(name))
}

fn completion_at(outcome: &Outcome, root: &str) -> Completion {
    let (Ok(value) | Err(value)) = outcome;
    match Outgoing::message(value, root) {
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

pub(crate) fn elements(list: &Js) -> Vec<Js> {
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
