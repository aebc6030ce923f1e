//! The host of the corpus: eight functions, a bridge, and their later effects.
//!
//! In: calls of the sandbox. Out: answers, and unasked messages where a call requests them. The same host serves an
//! isolate alone and a whole run.

use std::{collections::HashMap, mem};

use super::corpus::Program;
use crate::{
    ASYNC_FUNCTION, Completion, REPORT_SINK, Request, SourceText, Value,
    binding::inbound::Inbound,
    os::sync::Mutex,
    value::{ErrorClass, Event, ViewKind, Writer},
};

/// The globals of the corpus, by number.
const FUNCTIONS: &[&str] =
    &["echo", "later", "fail", "failLater", "callback", "settled", "values", "start"];
const ECHO: u32 = 0;
const LATER: u32 = 1;
const FAIL: u32 = 2;
const FAIL_LATER: u32 = 3;
const CALLBACK: u32 = 4;
const SETTLED: u32 = 5;
/// Asynchronous as the sandbox sees it.
const START: u32 = 7;

/// A run of that program.
pub(super) fn request(program: &Program) -> Request {
    let mut inputs = Writer::new();
    inputs.array(u32::try_from(FUNCTIONS.len()).expect("few") + 3);
    for (number, name) in (0..).zip(FUNCTIONS) {
        inputs.host_function(if number == START { number | ASYNC_FUNCTION } else { number });
        inputs.string(name);
    }
    inputs.host_function(ECHO);
    inputs.string("echo");
    inputs.int(42);
    inputs.array(0);
    let text = |text: &str| SourceText::from(text.to_owned());
    Request {
        modules: program.modules.iter().map(|(key, m)| ((*key).to_owned(), text(m))).collect(),
        globals: FUNCTIONS.iter().map(|name| (*name).to_owned()).collect(),
        imports: vec![("bridge".to_owned(), vec!["echo".to_owned(), "answer".to_owned()])],
        inputs: inputs.finish(),
        report: true,
        ..Request::new(text(program.source))
    }
}

/// The pending work of the host.
#[derive(Default)]
pub(super) struct Stage {
    hand: Mutex<Hand>,
}

#[derive(Default)]
struct Hand {
    /// The number of host promises given out.
    promises: u32,
    /// The promise that is settled by a call of a sandbox function or by a promise of the sandbox.
    calls: HashMap<u32, u32>,
    watched: HashMap<u32, u32>,
    outbox: Vec<Inbound>,
}

impl Stage {
    /// Answers a call.
    pub(super) fn call(&self, function: u32, args: Value) -> Completion {
        let mut hand = self.hand.lock();
        match function {
            REPORT_SINK => Ok(Value::undefined()),
            ECHO => Ok(args),
            LATER | START => Ok(hand.promise(Some(Ok(args)))),
            FAIL => Err(error("as the program wants")),
            FAIL_LATER => Ok(hand.promise(Some(Err(error("later, as the program wants"))))),
            CALLBACK => {
                let promise = hand.promises;
                hand.calls.insert(promise, promise);
                let function = first(&args, |event| match event {
                    Event::SandboxFunction(number) => Some(number),
                    _ => None,
                });
                hand.outbox.push(Inbound::FunctionCall {
                    function,
                    args: args_of(7),
                    call: promise,
                });
                Ok(hand.promise(None))
            }
            SETTLED => {
                let watched = first(&args, |event| match event {
                    Event::SandboxPromise(number) => Some(number),
                    _ => None,
                });
                let promise = hand.promises;
                hand.watched.insert(watched, promise);
                Ok(hand.promise(None))
            }
            _ => Ok(every_kind()),
        }
    }

    /// Starts a call that settles a promise of the sandbox.
    pub(super) fn start(&self, function: u32, args: Value, promise: u32) {
        assert_eq!(function, START, "the only one that is started");
        self.hand.lock().outbox.push(Inbound::PromiseSettled { promise, completion: Ok(args) });
    }

    pub(super) fn function_settled(&self, call: u32, completion: Completion) {
        let mut hand = self.hand.lock();
        if let Some(promise) = hand.calls.remove(&call) {
            hand.outbox.push(Inbound::PromiseSettled { promise, completion });
        }
    }

    pub(super) fn promise_settled(&self, promise: u32, completion: Completion) {
        let mut hand = self.hand.lock();
        if let Some(promise) = hand.watched.remove(&promise) {
            hand.outbox.push(Inbound::PromiseSettled { promise, completion });
        }
    }

    /// The messages that the host has by now.
    pub(super) fn outbox(&self) -> Vec<Inbound> {
        mem::take(&mut self.hand.lock().outbox)
    }
}

impl Hand {
    /// A new promise of the host, later settled with `completion`.
    fn promise(&mut self, completion: Option<Completion>) -> Value {
        let promise = self.promises;
        self.promises += 1;
        if let Some(completion) = completion {
            self.outbox.push(Inbound::PromiseSettled { promise, completion });
        }
        let mut writer = Writer::new();
        writer.host_promise(promise);
        writer.finish()
    }
}

/// The number in the first element of a message that is an array.
fn first(args: &Value, number: impl Fn(Event<'_>) -> Option<u32>) -> u32 {
    let mut reader = args.reader();
    assert!(matches!(reader.event(), Ok(Event::Array(_))), "a call's arguments");
    reader.event().ok().and_then(number).unwrap_or(u32::MAX - 1)
}

fn args_of(number: i32) -> Value {
    let mut writer = Writer::new();
    writer.array(1);
    writer.int(number);
    writer.finish()
}

pub(super) fn error(message: &str) -> Value {
    let mut writer = Writer::new();
    writer.error(ErrorClass::TypeError);
    writer.string("HostError");
    writer.string(message);
    writer.undefined();
    writer.string("E_HOST");
    writer.finish()
}

/// One object with a value of every kind in it.
fn every_kind() -> Value {
    let mut writer = Writer::new();
    writer.object();
    writer.new_key("text");
    writer.string("ä text");
    writer.new_key("lone");
    writer.string16(&[0x61, 0xd800]);
    writer.new_key("numbers");
    writer.array(5);
    writer.int(-7);
    writer.double(-0.0);
    writer.double(f64::NAN);
    writer.bigint(true, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    writer.bool(true);
    writer.new_key("map");
    writer.map(2);
    writer.string("key");
    writer.null();
    writer.object();
    writer.end_object();
    writer.undefined();
    writer.new_key("set");
    writer.set(2);
    writer.int(1);
    writer.string("two");
    writer.new_key("date");
    writer.date(1e12);
    writer.new_key("pattern");
    writer.regexp();
    writer.string("(a)+");
    writer.string("gi");
    writer.new_key("error");
    writer.error(ErrorClass::RangeError);
    writer.string("OwnName");
    writer.string("message");
    writer.undefined();
    writer.int(5);
    writer.new_key("bytes");
    let blob = writer.blob(vec![1, 2, 3, 4, 5, 6, 7, 8]);
    writer.view(ViewKind::Uint8Array, blob, 0, 8);
    writer.new_key("floats");
    writer.view(ViewKind::Float32Array, blob, 4, 1);
    writer.new_key("view");
    writer.view(ViewKind::DataView, blob, 2, 3);
    writer.new_key("buffer");
    writer.buffer(blob);
    writer.new_key("sparse");
    writer.sparse_array(1000);
    writer.sparse_index(999);
    writer.int(1);
    writer.end_sparse_array();
    writer.new_key("holes");
    writer.array(3);
    writer.hole();
    writer.int(1);
    writer.hole();
    writer.new_key("shared");
    writer.array(2);
    let shared = writer.next_object();
    writer.object();
    writer.known_key(0);
    writer.int(1);
    writer.end_object();
    writer.reference(shared);
    writer.end_object();
    writer.finish()
}
