//! Promises that a host has received: after the run nothing is kept of them.

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use crate::{
    binding::host::{Completion, Refusal},
    data::{outcome::LogLevel, source::SourceText},
    isolate::{Embedder, End, Isolate, Pool, PoolOptions, Realm, Started, Task, Termination, Turn},
    modules::{cache::Cache, program, request::Request},
    value::{EXPORTED_BYTES, Event, Value, Writer, walk},
};

const LIMIT: usize = 16 << 20;

/// A host that takes promises and notes which ones settle.
#[derive(Default)]
struct Host {
    named: Mutex<Vec<u32>>,
    settled: Mutex<Vec<u32>>,
}

impl Host {
    fn note(&self, message: &Value) {
        walk(message, |event| {
            if let Event::SandboxPromise(number) = event {
                self.named.lock().expect("the test's own").push(*number);
            }
        })
        .expect("a message");
    }
}

impl Embedder for Host {
    fn call(&self, _function: u32, args: Value) -> Option<Completion> {
        self.note(&args);
        Some(Ok(Value::undefined()))
    }

    fn start(&self, _function: u32, _args: Value, _promise: u32) -> Started {
        Started::Ended
    }

    fn report(&self, _value: Value) -> Option<Completion> {
        None
    }

    fn refusal(&self, _message: &Value) -> Option<Refusal> {
        None
    }

    fn log(&self, _level: LogLevel, _args: Value) {}

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, promise: u32, completion: Completion) {
        let (Ok(value) | Err(value)) = &completion;
        self.note(value);
        self.settled.lock().expect("the test's own").push(promise);
    }

    fn poll(&self, _now: Instant) {}
}

/// Runs a source that calls `h`. Also returns how much it kept at the end.
fn run(source: &str) -> (Turn, Arc<Host>, usize) {
    let options =
        PoolOptions { ready: 1, spare: 0, max_slots: 1, kept_slots: 0, runs_per_slot: u32::MAX };
    let pool = Pool::new(Realm::build, options);
    let mut inputs = Writer::new();
    inputs.array(1);
    inputs.host_function(0);
    inputs.string("h");
    let globals = vec!["h".to_owned()];
    let source = SourceText { text: source.to_owned(), lone_surrogate: None };
    let request = Request { globals: globals.clone(), ..Request::new(source) };
    let task =
        Task { export: "default".to_owned(), globals, inputs: inputs.finish(), ..Task::default() };
    let linker = program::link(&Arc::new(Cache::new(0)), request).expect("it links");
    let host = Arc::new(Host::default());
    let embedder = Arc::clone(&host) as Arc<dyn Embedder>;
    let home = pool.take(LIMIT, false).expect("a home");
    let termination = Arc::<Termination>::default();
    let mut isolate = Isolate::new(home, embedder, linker, task, LIMIT, termination);
    let turn = isolate.start();
    let kept = isolate.kept_bytes();
    drop(isolate.finish());
    (turn, host, kept)
}

#[test]
fn nothing_is_kept_of_promises_whose_outcome_the_host_knows() {
    let source = |rounds: u32| {
        format!(
            "const big = 'x'.repeat(1e5);
            for (let i = 0; i < {rounds}; i++) {{
                h(i & 1 ? Promise.resolve([big]) : Promise.reject(big));
                for (let jobs = 0; jobs < 4; jobs++) await 0;
            }}
            export default 1"
        )
    };
    let (turn, host, few) = run(&source(1_000));
    assert!(matches!(turn, Turn::Ended(End::Success(_))), "{turn:?}");
    assert_eq!(*host.settled.lock().expect("ours"), (0..1_000).collect::<Vec<_>>());
    let (turn, _, many) = run(&source(3_000));
    assert!(matches!(turn, Turn::Ended(End::Success(_))), "{turn:?}");
    assert!(many < few + EXPORTED_BYTES, "{few} bytes after 1,000 promises, {many} after 3,000");
}

#[test]
fn a_promise_that_crosses_again_has_another_number() {
    let source = "const ready = Promise.resolve(1);
        let resolve;
        const itself = new Promise((r) => { resolve = r });
        h(ready, ready); h(ready);
        for (let jobs = 0; jobs < 4; jobs++) await 0;
        h(ready);
        for (let jobs = 0; jobs < 4; jobs++) await 0;
        h(itself); resolve({ itself });
        for (let jobs = 0; jobs < 4; jobs++) await 0;
        export default 1";
    let (turn, host, _) = run(source);
    assert!(matches!(turn, Turn::Ended(End::Success(_))), "{turn:?}");
    assert_eq!(*host.named.lock().expect("ours"), [0, 0, 1, 2, 2]);
    assert_eq!(*host.settled.lock().expect("ours"), [0, 1, 2]);
}

#[test]
fn a_chain_of_promises_is_charged_link_by_link() {
    let source = "const wait = () => { let resolve; const promise = new Promise((r) => { resolve = r }); return [promise, resolve] };
        const [first, settleFirst] = wait(), [second, settleSecond] = wait();
        const big = 'x'.repeat(1e4);
        settleFirst({ second, big }); settleSecond({ first, big });
        h(first);
        for (;;) await 0;";
    let (turn, host, _) = run(source);
    let is_memory = match &turn {
        Turn::Ended(End::Stopped(stopped)) => stopped.is_memory,
        Turn::Ended(end) => matches!(end, End::Memory),
        Turn::Idle { .. } => false,
    };
    assert!(is_memory, "{turn:?}");
    assert!(host.settled.lock().expect("ours").len() < LIMIT / 10_000);
}
