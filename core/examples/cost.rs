//! The cost of a run from Rust: `cargo run --release --example cost`; `--quick` takes few samples.
//!
//! Prints the rows of `tests/bench/node.mjs`, each beside a reference of the same process. One reference is starting
//! and joining a thread: the lowest cost of isolation without a pool.

use std::{
    collections::VecDeque,
    env, fs,
    hint::black_box,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use isolane::{
    Execute, Execution, ExecutionOptions, HostFunction, Input, Inputs, NativeAnswer, NativeCall,
    NativeFunction, Runtime, Status, Value, run_code,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value as Json, json};
use tokio::sync::Semaphore;

const ONE: &str = "export default 1 + 1";
const FRESH: &str = "a fresh run of `1 + 1`";
const ECHO: &str = "export default (value) => value";
const THREAD: &str = "a thread, started and joined";
const SERDE: &str = "`serde_json` there and back";
const FIFTY_LINES: &str = include_str!("../../tests/bench/fifty.ts");
const AGENT: &str = include_str!("../../tests/bench/agent.ts");

fn main() {
    let bench = Bench::new(env::args().any(|arg| arg == "--quick"));
    // This comes first: memory that the others leave behind would hide the memory of runs.
    let memory = bench.parked();
    println!("### A run from Rust\n\n| what | figure | reference | figure | ratio |");
    println!("|---|--:|---|--:|--:|");
    bench.fresh();
    bench.calls();
    bench.values();
    bench.agent();
    bench.endless();
    println!("{memory}\n");
}

/// The sum of two numbers.
struct Add;

impl NativeFunction for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let sum = call.arguments().map(|(a, b): (f64, f64)| Value::serialize(&(a + b)));
        sum.map(|sum| sum.expect("a number")).into()
    }
}

struct Bench {
    /// The time for one measurement.
    budget: Duration,
    calls: u32,
    parked: u32,
    ended: usize,
}

impl Bench {
    fn new(quick: bool) -> Self {
        if quick {
            Self { budget: Duration::from_millis(60), calls: 1_000, parked: 100, ended: 5 }
        } else {
            Self { budget: Duration::from_millis(800), calls: 10_000, parked: 1_000, ended: 50 }
        }
    }

    /// The median of `act` in microseconds. A tenth of the time is warm-up.
    fn time(&self, mut act: impl FnMut(usize)) -> f64 {
        let (mut samples, began) = (Vec::new(), Instant::now());
        for count in 0.. {
            let took = timed(|| act(count));
            if began.elapsed() > self.budget / 10 {
                samples.push(took);
            }
            if began.elapsed() > self.budget && samples.len() >= 3 {
                break;
            }
        }
        median(samples)
    }

    /// Runs per second with so many at once.
    fn rate(&self, lanes: usize) -> f64 {
        let (mut done, began) = (0_u32, Instant::now());
        let mut running: VecDeque<Execution> = (1..lanes).map(|_| start(ONE)).collect();
        while began.elapsed() < self.budget {
            running.push_back(start(ONE));
            running.pop_front().into_iter().for_each(settled);
            done += 1;
        }
        let seconds = began.elapsed().as_secs_f64();
        running.into_iter().for_each(settled);
        f64::from(done) / seconds
    }

    fn fresh(&self) {
        let cost = self.time(|_| settled(start(ONE)));
        show(FRESH, cost, THREAD, self.thread(), micros);
        let single = self.rate(1);
        for lanes in [2, 16] {
            let rate = self.rate(lanes);
            show(&format!("{lanes} at once"), rate, "one after another", single, per_second);
        }
        let seen = self.time(|_| settled(start(FIFTY_LINES)));
        show("50 lines of TypeScript, seen before", seen, FRESH, cost, micros);
        let unseen = self.time(|edition| {
            let edition = format!("edition: number = {}", edition + 1);
            settled(start(&FIFTY_LINES.replace("edition: number = 0", &edition)));
        });
        show("50 lines, never seen", unseen, FRESH, cost, micros);
    }

    fn thread(&self) -> f64 {
        self.time(|_| thread::spawn(|| ()).join().expect("an idle thread"))
    }

    fn calls(&self) {
        let looped = |call: &str| {
            format!("export default async (n) => {{ for (let i = 0; i < n; i++) {call}; }}")
        };
        let all = "const calls = (n) => Array.from({ length: n }, (_, i) => add(i, 1));
            export default async (n) => (await Promise.all(calls(n))).length";
        let now = HostFunction::new(|a: f64, b: f64| a + b);
        let later = HostFunction::future(|a: f64, b: f64| async move { a + b });
        let native = HostFunction::native(Arc::new(Add));
        let thread = self.thread();
        for (what, source, add) in [
            ("a synchronous host call", looped("add(i, 1)"), now),
            ("a synchronous native call", looped("add(i, 1)"), native),
            ("an asynchronous one, one after another", looped("await add(i, 1)"), later.clone()),
            ("an asynchronous one, all at once", all.to_owned(), later),
        ] {
            let whole = self.time(|_| {
                let globals = Inputs::new().with("add", add.clone());
                settled(start_with(&source, globals, Execute::default().arg(self.calls)));
            });
            show(what, whole / f64::from(self.calls), THREAD, thread, micros);
        }
    }

    fn values(&self) {
        for (what, bytes) in [("1 KB", 1_000), ("100 KB", 100_000), ("5 MB", 5_000_000)] {
            let value = records(bytes);
            let there = self.time(|_| drop(black_box(echo::<Json>(&value))));
            let what = format!("{what} of records, in and out");
            show(&what, there, SERDE, self.there_and_back(&value), micros);
        }
        let bytes = vec![7; 10_000_000];
        let there = self.time(|_| {
            let run = start_with(
                ECHO,
                Inputs::new(),
                Execute::default().arg(Input::bytes(bytes.clone())),
            );
            let value = run.wait().expect("valid options").result.expect("the bytes");
            assert_eq!(value.blobs()[0].len(), bytes.len());
        });
        let twice = self.time(|_| drop(black_box(black_box(bytes.clone()).clone())));
        show("10 MB of bytes, in and out", there, "copied twice", twice, micros);
    }

    fn there_and_back(&self, value: &Json) -> f64 {
        self.time(|_| {
            let back: Json = serde_json::from_str(&value.to_string()).expect("what was printed");
            drop(black_box(back));
        })
    }

    fn agent(&self) {
        let regions = ["north", "east", "south", "west"];
        let row = |id: usize| {
            json!({
                "id": id,
                "region": regions[id % 4],
                "product": format!("product {}", id % 37),
                "units": id % 100,
                "price": id / 7,
                "note": if id.is_multiple_of(9) { "urgent" } else { "as agreed" },
            })
        };
        let table = Json::Array((0..2_000).map(row).collect());
        let whole = self.time(|_| {
            let tax_of = HostFunction::future(|_region: String| async { 0.25 });
            let globals = Inputs::new().with("taxOf", tax_of);
            settled(start_with(AGENT, globals, Execute::default().arg(&table)));
        });
        let what = "8 host calls and 200 KB in, TypeScript";
        let reference = format!("{SERDE}, of the 200 KB");
        show(what, whole, &reference, self.there_and_back(&table), micros);
    }

    /// From `terminate` to settlement.
    fn endless(&self) {
        let samples = (0..self.ended).map(|_| {
            let (started, loops) = mpsc::channel();
            let started = HostFunction::new(move || started.send(()).is_ok());
            let globals = Inputs::new().with("started", started);
            let run = start_with("started(); for (;;);", globals, Execute::default());
            loops.recv().expect("a run that starts");
            timed(|| {
                run.terminate(None);
                assert_eq!(run.wait().expect("valid options").status, Status::Terminated);
            })
        });
        let cost = median(samples.collect());
        show("ending an endless loop", cost, THREAD, self.thread(), micros);
    }

    /// The memory of a run that waits for its host.
    fn parked(&self) -> String {
        let thread = held_by_a_thread();
        settled(start(ONE));
        let gate = Arc::new(Semaphore::new(0));
        let wait = {
            let gate = Arc::clone(&gate);
            HostFunction::future(move || {
                let gate = Arc::clone(&gate);
                async move { gate.acquire().await.is_err() }
            })
        };
        let before = resident_bytes();
        let runs: Vec<Execution> = (0..self.parked)
            .map(|_| {
                let globals = Inputs::new().with("gate", wait.clone());
                start_with("export default await gate()", globals, Execute::default())
            })
            .collect();
        while Runtime::shared().stats().parked < runs.len() {
            thread::yield_now();
        }
        let each = (resident_bytes() - before) / f64::from(self.parked);
        gate.close();
        runs.into_iter().for_each(settled);
        let what = format!("held by a run that waits, of {}", self.parked);
        row(&what, each, "by a thread that sleeps", thread, kib)
    }
}

fn start(source: &str) -> Execution {
    run_code(source, ExecutionOptions::default())
}

fn start_with(source: &str, globals: Inputs, execute: Execute) -> Execution {
    run_code(source, ExecutionOptions { globals, execute, ..ExecutionOptions::default() })
}

fn settled(run: Execution) {
    let outcome = run.wait().expect("valid options");
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
}

fn echo<T: DeserializeOwned>(value: impl Serialize) -> T {
    let run = start_with(ECHO, Inputs::new(), Execute::default().arg(value));
    let result = run.wait().expect("valid options").result.expect("the value");
    result.deserialize().expect("what went in")
}

/// Records with so many bytes as JSON.
fn records(bytes: usize) -> Json {
    let record = |id| {
        let name = format!("record {id}");
        json!({ "id": id, "name": name, "tags": ["a", "b"], "score": f64::from(id) * 1.5 })
    };
    let each = record(1_000).to_string().len();
    let count = u32::try_from(bytes.div_ceil(each)).expect("few");
    Json::Array((0..count).map(record).collect())
}

fn held_by_a_thread() -> f64 {
    let gate = Arc::new(std::sync::Barrier::new(101));
    let before = resident_bytes();
    let sleeper = |_| {
        let gate = Arc::clone(&gate);
        thread::spawn(move || {
            gate.wait();
            gate.wait();
        })
    };
    let threads: Vec<_> = (0..100).map(sleeper).collect();
    gate.wait();
    let each = (resident_bytes() - before) / 100.0;
    gate.wait();
    for thread in threads {
        thread.join().expect("a sleeper");
    }
    each
}

fn resident_bytes() -> f64 {
    let status = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.expect("pages") * 4096.0
}

fn timed(act: impl FnOnce()) -> f64 {
    let began = Instant::now();
    act();
    began.elapsed().as_secs_f64() * 1e6
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn micros(value: f64) -> String {
    format!("{} µs", digits(value))
}

fn per_second(value: f64) -> String {
    format!("{} runs/s", digits(value))
}

fn kib(bytes: f64) -> String {
    format!("{} KiB", digits(bytes / 1024.0))
}

fn digits(value: f64) -> String {
    format!("{value:.*}", if value < 10.0 { 2 } else { usize::from(value < 100.0) })
}

fn row(what: &str, cost: f64, reference: &str, cost0: f64, unit: fn(f64) -> String) -> String {
    let (figure, figure0) = (unit(cost), unit(cost0));
    format!("| {what} | {figure} | {reference} | {figure0} | {:.2} |", cost / cost0)
}

fn show(what: &str, cost: f64, reference: &str, cost0: f64, unit: fn(f64) -> String) {
    println!("{}", row(what, cost, reference, cost0, unit));
}
