//! Messages of every program of the corpus, unchanged and broken.
//!
//! The core accepts each message of an isolate to its host, with the weight that its writer counted. In broken messages
//! a few bytes are changed, as a compromised worker may send them. Every reader of the core reads an accepted one
//! without an error of the format. A failure is reproduced with the printed seed in `ISOLANE_TEST_SEED`.

use std::{sync::Arc, time::Instant};

use super::{
    Random,
    corpus::{CORPUS, Program},
    stage::{Stage, request},
};
use crate::{
    Completion, LogLevel, Refusal, Value,
    data::inspect::inspect,
    isolate::{
        Embedder, End, Isolate, Pool, PoolOptions, Realm, STACK_LIMIT_BYTES, Started, Task,
        Termination, Turn,
    },
    modules::{cache::Cache, program},
    os::sync::Mutex,
    value::{Event, Purpose, Writer, check, copy_message, tag, walk},
};

const LIMIT: usize = 64 << 20;

/// The number of broken variants of each recorded message.
const BROKEN: usize = 20;

/// The size limit of messages to break. Larger ones would take long, and fail where a small one does.
const LARGE_BYTES: usize = 4 << 10;

/// Values that the corpus lacks, at least in these forms.
const FORMS: &[Program] = &[
    form(
        "buffers and views of all kinds",
        "const b = new ArrayBuffer(64, { maxByteLength: 128 }), u = new Uint8Array(b, 8, 16),
        d = new DataView(b, 3);
        const kinds = [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array,
        Uint32Array,
            BigInt64Array, BigUint64Array, Float16Array, Float32Array, Float64Array];
        const over = new ArrayBuffer(32), own = kinds.map((K) => new K(over.slice(0), 8, 2));
        echo(own); echo([u, d, b, u]); echo([b, u]); echo([u, u, d]);
        echo(kinds.map((K) => new K(over, 16))); echo([...kinds.map((K) => new K(over, 16)), over]);
        echo(new ArrayBuffer(0), new Float64Array(0), new DataView(new ArrayBuffer(8), 8));
        echo({ u, get shrunk() { b.resize(4); return 1 }, b, d: 1 }); echo([{ get grown() { b.resize(100);
        return b } }, new Uint8Array(b)]);
        export default [over, new Float32Array(over, 4, 3)]",
    ),
    form(
        "numbers and dates in every form",
        "const bits = (n) => new Float64Array(new BigUint64Array([n]).buffer)[0];
        echo(bits(0x7ff80000deadbeefn), bits(0xfff0000000000001n), bits(0x8000000000000000n), bits(1n),
        2 ** 31, -(2 ** 31), 2 ** 31 - 1, 1.0, 4.5 - 0.5);
        echo(new Date(-0), new Date(NaN), new Date(8.64e15), new Date(-8.64e15), new Date(1.9),
        new Date(0.5 - 1));
        echo(0n, -0n, -1n, 255n, 256n, -(2n ** 64n), (1n << 1048574n) - 1n, -(1n << 1048574n), Object(5),
        Object(5n), Object(true), Object('s'));
        export default [NaN, -NaN, Infinity, -0, 5e-324]",
    ),
    form(
        "texts in every form",
        "echo('', 'é', '€uro', '😀', '\\ud83d', 'a\\udc00b', '\\ud83d' + '\\ude00', 'x'.repeat(300),
        'é'.repeat(200));
        echo({ '\\ud800': 1, '': 2, __proto__: null, ['__proto__']: 3, '😀': 4, 'é': 5, 0: 6, '-1': 7 },
        { '\\ud800': 1, '': 2 });
        echo(/(?:)/, /a/dgimsuy, /[\\p{L}--[a]]/v, new RegExp('\\ud800'), new RegExp(''), /\\//g);
        export default ['\\ud800', { a: { a: { a: 1 } }, b: { a: 1, b: 2 } }]",
    ),
    form(
        "arrays that change while they are read",
        "const cut = [1, 2, 3, 4]; Object.defineProperty(cut, 0, { get() { cut.length = 2;
        return 1 }, enumerable: true });
        const gone = [, 1, 2, , 4]; Object.defineProperty(gone, 1, { get() { delete gone[2]; gone.push(9);
        return 1 }, enumerable: true });
        const full = [1, , 3]; Object.defineProperty(full, 0, { get() { full[1] = 2;
        return 1 }, enumerable: true });
        const huge = []; huge.length = 4294967295; huge[4294967294] = 1; const none = new Array(5);
        const names = Object.assign([1, 2], { extra: 1 }), hidden = [1, 2];
        Object.defineProperty(hidden, 1, { value: 2, enumerable: false });
        echo(cut); echo(gone); echo(full); echo(huge, none, [], [[]], names, hidden, new Array(1));
        const o = { get a() { delete o.b; o.c = 3; return 1 }, b: 2 }; echo(o);
        export default [cut, gone]",
    ),
    form(
        "errors, collections, functions and promises",
        "class Own extends RangeError { code = 'E'; get name() { return 'Own' } }
        const odd = Object.assign(new Error('m'), { code: 1.5, name: '\\ud800', message: '\\ud800' }),
        plain = new Error(); plain.name = 5; plain.message = null; plain.code = {};
        echo(new Own('o'), odd, plain, Object.assign(new EvalError(''), { code: '\\udc00' }),
        Object.assign(new Error(), { code: 7 }), new AggregateError([1], 'a'), new URIError('u'));
        const m = new Map([[NaN, 1], [-0, 2], [{}, new Set([1, '1', 1n])]]); m.set(m, m);
        echo(m, new Set(), new Map());
        const f = () => 1; f.nested = 1; const p = Promise.resolve(5);
        echo(f, f, echo, echo, p, p, { f, deep: [f, class {}, async () => {}] });
        const cyclic = { list: [] }; cyclic.list.push(cyclic, cyclic.list); echo(cyclic, cyclic);
        report({ echo, again: [echo, start] });
        console.log(f, p, echo, Symbol('s'), new Proxy({}, {}), { f, p, when: new Date(0) }, [, 1]);
        console.error(/x/, [/y/g, cyclic, m], { a: [new Uint8Array(4).subarray(1)] }, cyclic, new Array(3));
        console.table([{ a: 1 }]); console.dir({ a: /x/ }); console.assert(false, /x/, 2);
        console.group(/x/); console.count(); console.trace();
        const say = async (act) => { try { await act() } catch {} };
        await say(() => settled(Promise.reject(odd)));
        await say(() => settled(Promise.resolve(new Map([[f, p]]))));
        for (const back of [() => { throw { f } }, async () => [cyclic, f, p],
        () => ({ get x() { throw new Own('x') } }), () => Symbol('s')]) await say(() => callback(back));
        export default [echo, { start, m, cyclic }]",
    ),
];

/// The message with the promise fails, and the next one is sent after it has settled.
const PROMISE_OF_A_FAILED_MESSAGE: Program = form(
    "a promise of a message that failed",
    "const p = Promise.resolve(5); try { echo([p, Symbol()]) } catch {}
    for (let i = 0; i < 9; i++) await null;
    export default await settled(p)",
);

const FUNCTION_OF_A_FAILED_MESSAGE: Program = form(
    "a function of a message that failed",
    "const f = () => 1; for (const bad of [Symbol(), /x/]) try { start([f, bad]) } catch {}
    await new Promise(() => {})",
);

const fn form(name: &'static str, source: &'static str) -> Program {
    Program { name, source, modules: &[] }
}

/// An embedder that records every message that it receives.
struct Ear {
    stage: Stage,
    /// Whether it refuses every RegExp and Map.
    choosy: bool,
    heard: Mutex<Vec<(Purpose, Value)>>,
}

impl Ear {
    fn hear(&self, purpose: Purpose, message: &Value) {
        self.heard.lock().push((purpose, message.clone()));
    }

    fn hear_completion(&self, completion: &Completion) {
        let (Ok(message) | Err(message)) = completion;
        self.hear(Purpose::Live, message);
    }
}

impl Embedder for Ear {
    fn call(&self, function: u32, args: Value) -> Option<Completion> {
        self.hear(Purpose::Arguments, &args);
        // Function 0 echoes its arguments, which may contain values that must not return.
        match self.stage.call(function, args) {
            Ok(answer) if function == 0 => Some(Ok(answer).map(|_| Value::undefined())),
            answer => Some(answer),
        }
    }

    fn start(&self, function: u32, args: Value, promise: u32) -> Started {
        self.hear(Purpose::Arguments, &args);
        self.stage.start(function, args, promise);
        Started::GoesOn
    }

    fn report(&self, value: Value) -> Option<Completion> {
        self.hear(Purpose::Final, &value);
        Some(Ok(Value::undefined()))
    }

    fn refusal(&self, message: &Value) -> Option<Refusal> {
        let mut refused = false;
        let see = |event: &Event<'_>| refused |= matches!(event, Event::RegExp | Event::Map(_));
        walk(message, see).expect("a message");
        (self.choosy && refused).then(|| Refusal { path: Vec::new(), what: "this".to_owned() })
    }

    fn log(&self, _level: LogLevel, args: Value) {
        self.hear(Purpose::Log, &args);
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        self.hear_completion(&completion);
        self.stage.function_settled(call, completion);
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        self.hear_completion(&completion);
        self.stage.promise_settled(promise, completion);
    }

    fn poll(&self, _now: Instant) {}
}

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    Success,
    Failure,
    /// The run waits, for something that its host works on or for nothing.
    Waiting {
        for_host: bool,
    },
}

/// The messages of a run of that program to its host, and its result.
fn messages_of(
    pool: &Pool<Realm>,
    program: &Program,
    choosy: bool,
) -> (Vec<(Purpose, Value)>, Came) {
    let request = request(program);
    let ear = Arc::new(Ear { stage: Stage::default(), choosy, heard: Mutex::new(Vec::new()) });
    let task = Task {
        export: "default".to_owned(),
        globals: request.globals.clone(),
        inputs: request.inputs.clone(),
        report: true,
        ..Task::default()
    };
    let Ok(linker) = program::link(&Arc::new(Cache::new(0)), request) else {
        return (Vec::new(), Came::Failure);
    };
    let lease = pool.take(LIMIT, false).expect("a home");
    let embedder: Arc<dyn Embedder> = Arc::<Ear>::clone(&ear);
    let termination = Arc::<Termination>::default();
    let mut isolate = Isolate::new(lease, embedder, linker, task, LIMIT, termination);
    let mut turn = isolate.start();
    let came = loop {
        match turn {
            Turn::Ended(End::Success(value)) => {
                ear.hear(Purpose::Final, &value);
                break Came::Success;
            }
            Turn::Ended(_) => break Came::Failure,
            Turn::Idle { waits_for_host } => {
                let inbox = ear.stage.outbox();
                if inbox.is_empty() {
                    break Came::Waiting { for_host: waits_for_host };
                }
                turn = isolate.turn(inbox);
            }
        }
    };
    pool.give_back(isolate.finish());
    let heard = std::mem::take(&mut *ear.heard.lock());
    (heard, came)
}

fn pool() -> Pool<Realm> {
    let options =
        PoolOptions { ready: 1, spare: 0, max_slots: 1, kept_slots: 0, runs_per_slot: u32::MAX };
    Pool::new(Realm::build, options)
}

/// All messages of all programs.
fn messages() -> Vec<(Purpose, Value)> {
    let pool = pool();
    let mut all = Vec::new();
    for choosy in [false, true] {
        for program in CORPUS.iter().chain(FORMS) {
            let (heard, came) = messages_of(&pool, program, choosy);
            let is_form = FORMS.iter().any(|form| form.name == program.name);
            assert!(came == Came::Success || choosy || !is_form, "{}: {came:?}", program.name);
            all.extend(heard);
        }
    }
    all
}

/// Runs `body` on a thread with the stack size of computing threads.
fn on_a_thread(body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(2 * STACK_LIMIT_BYTES * crate::os::sanitized::FRAMES);
    thread.spawn(body).expect("a thread").join().expect("no panic");
}

#[test]
fn every_message_is_accepted_with_its_weight() {
    on_a_thread(|| {
        let mut tags = [false; 0x20];
        for (purpose, message) in messages() {
            let (nodes, blobs) = message.clone().into_parts();
            let shown = inspect(&message, 1_000);
            let checked = check(nodes, blobs, purpose, LIMIT);
            let checked = checked.unwrap_or_else(|_| panic!("{purpose:?}: {shown}"));
            assert_eq!(checked.weight(), message.weight(), "{shown}");
            assert_eq!(checked.kinds(), message.kinds(), "{shown}");
            walk(&message, |event| tags[usize::from(tag_of(event))] = true).expect("a message");
        }
        let missing: Vec<usize> = (0..0x1F).filter(|&tag| !tags[tag]).collect();
        // Three meaningless numbers, and the promises of the host, which return as the sandbox's.
        let none = usize::from(tag::HOST_PROMISE);
        assert_eq!(missing, [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, none], "not in any message");
    });
}

#[test]
fn a_promise_is_told_of_once_its_host_knows_it() {
    on_a_thread(|| {
        let (_, came) = messages_of(&pool(), &PROMISE_OF_A_FAILED_MESSAGE, false);
        assert_eq!(came, Came::Success);
    });
}

#[test]
fn a_function_that_never_reached_its_host_is_not_held_there() {
    on_a_thread(|| {
        let (_, came) = messages_of(&pool(), &FUNCTION_OF_A_FAILED_MESSAGE, true);
        assert_eq!(came, Came::Waiting { for_host: false });
    });
}

#[test]
fn whatever_is_accepted_can_be_read() {
    on_a_thread(|| {
        let mut random = Random::new(Random::seed());
        let messages: Vec<(Purpose, Value)> = messages()
            .into_iter()
            .filter(|(_, message)| message.nodes().len() <= LARGE_BYTES)
            .collect();
        let mut accepted = 0;
        for (purpose, message) in &messages {
            for _ in 0..BROKEN {
                let (mut nodes, mut blobs) = message.clone().into_parts();
                let other = &messages[random.below(messages.len())].1;
                for _ in 0..=random.below(2) {
                    break_nodes(&mut random, &mut nodes, other.nodes());
                }
                break_blobs(&mut random, &mut blobs);
                if let Ok(checked) = check(nodes, blobs, *purpose, LIMIT) {
                    accepted += 1;
                    read_by_all(&checked);
                }
            }
        }
        // About a tenth of them is accepted.
        assert!(accepted > messages.len(), "{accepted} of {} messages", messages.len());
    });
}

/// Changes a few bytes, or moves some.
fn break_nodes(random: &mut Random, nodes: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(nodes.len().max(1));
    let end = (at + random.below(12)).min(nodes.len());
    match random.below(6) {
        0 => nodes[at] ^= 1 << random.below(8),
        1 => nodes[at] = u8::try_from(random.below(0x20)).unwrap_or(0),
        2 => nodes[at] = u8::try_from(random.below(0x100)).unwrap_or(0),
        3 => drop(nodes.drain(at..end)),
        4 => {
            let piece = nodes[at..end].to_vec();
            let place = random.below(nodes.len() + 1);
            nodes.splice(place..place, piece);
        }
        _ => {
            let from = random.below(other.len().max(1));
            let piece = other.get(from..(from + end - at).min(other.len())).unwrap_or_default();
            nodes.splice(at..end, piece.iter().copied());
        }
    }
    if nodes.is_empty() {
        nodes.push(tag::NULL);
    }
}

fn break_blobs(random: &mut Random, blobs: &mut Vec<Vec<u8>>) {
    match random.below(12) {
        0 => blobs.push(vec![1; random.below(20)]),
        1 => drop(blobs.pop()),
        2 => blobs.iter_mut().for_each(|blob| blob.truncate(random.below(40))),
        _ => {}
    }
}

/// Reads an accepted message with every reader of the core.
fn read_by_all(message: &Value) {
    let shown = inspect(message, 1_000);
    walk(message, |_| ()).unwrap_or_else(|fault| panic!("{fault}: {shown}"));

    let mut writer = Writer::new();
    let rewrite = &mut |writer: &mut Writer, event: Event<'_>, _: &str| {
        match event {
            Event::HostFunction(number) => writer.host_function(number),
            Event::SandboxFunction(number) => writer.sandbox_function(number),
            Event::SandboxPromise(number) => writer.sandbox_promise(number),
            _ => panic!("{event:?}: {shown}"),
        }
        if matches!(event, Event::HostFunction(_) | Event::SandboxFunction(_)) {
            writer.string("");
        }
        Ok(())
    };
    copy_message(message, &mut writer, "", rewrite)
        .unwrap_or_else(|fault| panic!("{fault}: {shown}"));
    let (nodes, blobs) = writer.finish().into_parts();
    assert!(check(nodes, blobs, Purpose::Live, LIMIT).is_ok(), "the copy of {shown}");

    let outcomes = [
        message.deserialize::<serde_json::Value>().map(drop),
        message.deserialize::<serde::de::IgnoredAny>().map(drop),
        message.deserialize::<Vec<Value>>().map(drop),
        message.deserialize::<std::collections::HashMap<String, Value>>().map(drop),
        message.deserialize::<Vec<Option<f64>>>().map(drop),
        message.deserialize::<String>().map(drop),
    ];
    let texts = outcomes.into_iter().filter_map(Result::err).map(|error| error.to_string());
    let texts = texts.chain(serde_json::to_string(message).err().map(|error| error.to_string()));
    for text in texts {
        assert!(!text.contains(&crate::value::Malformed.to_string()), "{text}: {shown}");
    }
}

fn tag_of(event: &Event<'_>) -> u8 {
    match event {
        Event::Undefined => tag::UNDEFINED,
        Event::Null => tag::NULL,
        Event::Bool(true) => tag::TRUE,
        Event::Bool(false) => tag::FALSE,
        Event::Int(_) => tag::INT,
        Event::Double(_) => tag::DOUBLE,
        Event::BigInt { .. } => tag::BIGINT,
        Event::String(crate::value::Str::Utf8(_)) => tag::STRING,
        Event::String(_) => tag::STRING16,
        Event::Hole => tag::HOLE,
        Event::Ref(_) => tag::REF,
        Event::Object => tag::OBJECT,
        Event::Array(_) => tag::ARRAY,
        Event::SparseArray(_) => tag::SPARSE_ARRAY,
        Event::Map(_) => tag::MAP,
        Event::Set(_) => tag::SET,
        Event::Date(_) => tag::DATE,
        Event::RegExp => tag::REGEXP,
        Event::Error(_) => tag::ERROR,
        Event::Buffer(_) => tag::BUFFER,
        Event::View { .. } => tag::VIEW,
        Event::HostFunction(_) => tag::HOST_FUNCTION,
        Event::SandboxFunction(_) => tag::SANDBOX_FUNCTION,
        Event::HostPromise(_) => tag::HOST_PROMISE,
        Event::SandboxPromise(_) => tag::SANDBOX_PROMISE,
    }
}
