//! Costs of each step of a run, in time and as a share of the whole.
//!
//! Not a test: prints tables in Markdown, to the file in `ISOLANE_BENCH_REPORT` if it is set.
//! `cargo test --release --lib costs -- --ignored --nocapture`. `ISOLANE_BENCH_QUICK` takes few samples.
//!
//! This thread executes one run step by step with the functions that `runtime/threads/run/mod.rs` calls, in their order.
//! The same program goes through `run_code`, alternately, some runs each. The difference between the whole and its
//! steps is the way to a thread of the runtime and back, and the accounting. A run settles before its isolate is
//! restored, so the restoring is no part of the whole.

use std::{
    env,
    fs::OpenOptions,
    hint::black_box,
    io::Write,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::step_timer::{Laps, Step, lap, watch};
use crate::{
    ExecutionOptions, Request, Value,
    data::source::Language,
    isolate::{
        End, Isolate, NullEmbedder, Pool, PoolOptions, Realm, STACK_LIMIT_BYTES, Task, Termination,
        Turn, cost::engine_alone,
    },
    modules::{
        cache::Cache,
        program,
        request::{DEFAULT_FILENAME, DEFAULT_MEMORY_LIMIT_BYTES},
    },
    run_code,
    value::Writer,
};

const STEPS: [(Step, &str); Step::Restored as usize + 1] = [
    (Step::Compiled, "compile: source to a checked module"),
    (Step::Linked, "link: the graph, every import checked"),
    (Step::Taken, "take a pristine isolate"),
    (Step::Armed, "arm it: limit, interrupts, tables"),
    (Step::ClonedIn, "marshal the inputs in"),
    (Step::Bound, "declare the globals"),
    (Step::Assembled, "bytecode, made by the engine"),
    (Step::Loaded, "bytecode, loaded"),
    (Step::Evaluated, "evaluate"),
    (Step::Awaited, "select the export, await, settle"),
    (Step::ClonedOut, "marshal the result out"),
    // The run has settled before the following steps.
    (Step::Released, "after: memory that the run kept, dropped"),
    (Step::Copied, "after: the image copied back (`memcpy`)"),
    (Step::Restored, "after: the rest of the restoration"),
];

/// Runs of a turn, one after another, as an agent makes them. The first run of a turn finds the threads of the runtime
/// asleep, so it costs more than the others.
const TURN: usize = 10;

/// Long enough for the threads of a runtime to fall asleep.
const PAUSE: Duration = Duration::from_millis(10);

/// The number of steps before the handle settles.
const TO_SETTLED: usize = Step::ClonedOut as usize + 1;

const FIFTY_LINES: &str = include_str!("../../../tests/bench/fifty.ts");

/// The parts of a runtime, without its threads.
struct Bench {
    pool: Pool<Realm>,
    cache: Arc<Cache>,
}

impl Bench {
    fn new() -> Self {
        let pool = Pool::new(Realm::build, PoolOptions::default());
        pool.fill(|| false);
        Self { pool, cache: Arc::new(Cache::new(64 << 20)) }
    }

    /// One run, step by step. `inputs` is an array whose only element is the array of arguments.
    fn run(&self, source: &str, inputs: Value) -> Laps {
        let mut request = Request { inputs, ..Request::new(source.to_owned().into()) };
        let limit = usize::try_from(DEFAULT_MEMORY_LIMIT_BYTES).expect("a size");
        watch(|| {
            let compiled = self.cache.module(
                DEFAULT_FILENAME,
                &request.source.text,
                Language::TypeScript,
                &[],
                limit,
            );
            drop(compiled.expect("a module"));
            lap(Step::Compiled);
            let task = Task {
                export: "default".to_owned(),
                globals: Vec::new(),
                inputs: std::mem::take(&mut request.inputs),
                report: false,
                ..Task::default()
            };
            let linker = program::link(&self.cache, request).expect("a program");
            lap(Step::Linked);
            let home = self.pool.take(limit, false).expect("a home");
            lap(Step::Taken);
            let termination = Arc::<Termination>::default();
            let mut isolate =
                Isolate::new(home, Arc::new(NullEmbedder), linker, task, limit, termination);
            lap(Step::Armed);
            let turn = isolate.start();
            lap(Step::Awaited);
            let home = isolate.finish();
            lap(Step::Released);
            self.pool.give_back(home);
            lap(Step::Restored);
            assert!(matches!(turn, Turn::Ended(End::Success(_))), "{turn:?}");
        })
    }
}

/// A column of the table: a program and the times of its runs.
struct Column {
    name: &'static str,
    source: fn(usize) -> String,
    cold: bool,
    laps: Vec<Laps>,
    whole: Vec<Duration>,
    /// The time of the whole when the threads of the runtime sleep.
    rested: Vec<Duration>,
}

impl Column {
    fn all() -> [Self; 4] {
        let small: fn(usize) -> String = |edition| format!("export default 1 + {edition}");
        let large: fn(usize) -> String = |edition| {
            let text = FIFTY_LINES.replace("edition: number = 0", &format!("edition = {edition}"));
            assert_ne!(text, FIFTY_LINES);
            text
        };
        [
            ("`1 + 1`, never seen", small, true),
            ("`1 + 1`, seen", small, false),
            ("50 lines, never seen", large, true),
            ("50 lines, seen", large, false),
        ]
        .map(|(name, source, cold)| Self {
            name,
            source,
            cold,
            laps: vec![],
            whole: vec![],
            rested: vec![],
        })
    }

    fn sample(&mut self, bench: &Bench, edition: usize) {
        let (named, cold) = (self.source, self.cold);
        let source = |part| named(if cold { 2 * (edition * TURN + part) } else { 0 });
        self.laps.extend((0..TURN).map(|part| bench.run(&source(part), inputs(&[]))));
        let turn = (0..TURN).map(source);
        self.whole.extend(turn.map(|source| timed(|| succeed(&source))).skip(1));
        if edition.is_multiple_of(TURN) {
            thread::sleep(PAUSE);
            let source = named(if cold { 2 * edition + 1 } else { 0 });
            self.rested.push(timed(|| succeed(&source)));
        }
    }

    /// Microseconds of each step, and of the whole.
    fn medians(&self) -> (Vec<f64>, f64) {
        let step = |(step, _): &(Step, &str)| {
            median(self.laps.iter().map(|laps| laps[*step as usize]).collect())
        };
        (STEPS.iter().map(step).collect(), median(self.whole.clone()))
    }
}

#[test]
#[ignore = "measures"]
fn costs() {
    let thread = thread::Builder::new().stack_size(2 * STACK_LIMIT_BYTES).spawn(|| {
        let rounds = if env::var_os("ISOLANE_BENCH_QUICK").is_some() { 20 } else { 400 };
        let bench = Bench::new();
        steps(&bench, rounds);
        values(&bench, rounds);
    });
    thread.expect("a thread").join().expect("measured");
}

fn steps(bench: &Bench, rounds: usize) {
    let mut columns = Column::all();
    let (mut alone, mut made) = (Vec::new(), Vec::new());
    let unready = Pool::new(Realm::build, PoolOptions { ready: 0, ..PoolOptions::default() });
    for round in 0..rounds + rounds / 10 {
        for column in &mut columns {
            column.sample(bench, round);
        }
        alone.extend((0..TURN).map(|_| timed(engine_alone)));
        let mut home = None;
        made.push(timed(|| home = unready.take(1 << 20, false)));
        drop(home.expect("a home"));
        if round + 1 == rounds / 10 {
            // The samples before this point were the warm-up.
            columns = Column::all();
            alone.clear();
        }
    }
    let medians = columns.each_ref().map(Column::medians);
    let without_lap = medians[0].0.iter().position(|cost| *cost <= 0.0).map(|at| STEPS[at].1);
    assert_eq!(without_lap, None, "no lap ends this step any more");
    let mut lines = vec![
        "### The steps of one run\n".to_owned(),
        format!("| µs and share | {} |", columns.each_ref().map(|column| column.name).join(" | ")),
        "|---|--:|--:|--:|--:|".to_owned(),
    ];
    let step = |number: usize| {
        let cells = medians.each_ref().map(|(steps, whole)| (steps[number], *whole));
        row(STEPS[number].1, &cells)
    };
    lines.extend((0..TO_SETTLED).map(step));
    let rest = |(steps, whole): &(Vec<f64>, f64)| {
        (whole - steps[..TO_SETTLED].iter().sum::<f64>(), *whole)
    };
    let name = "to a thread and back, the books (difference)";
    lines.push(row(name, &medians.each_ref().map(rest)));
    let whole = medians.each_ref().map(|(_, whole)| (*whole, *whole));
    lines.push(row("**the whole, source to settled handle**", &whole));
    lines.extend((TO_SETTLED..STEPS.len()).map(step));
    let made = median(made);
    let name = "an isolate made anew, where none is ready";
    lines.push(row(name, &whole.map(|(whole, _)| (made, whole))));
    let rested = columns.each_ref().map(|column| median(column.rested.clone()));
    let rested: [_; 4] = std::array::from_fn(|n| (rested[n], whole[n].0));
    lines.push(row("the whole, where threads have to be woken", &rested));
    let alone = median(alone);
    let ratios = medians.map(|(_, whole)| format!("{:.2}", whole / alone)).join(" | ");
    lines.push(format!("| the whole, times the engine alone ({alone:.0} µs) | {ratios} |\n"));
    lines.push(
        "The engine alone: a runtime and a context made, `1+1` evaluated, both freed.\n".into(),
    );
    tell(&lines);
}

fn row(name: &str, cells: &[(f64, f64); 4]) -> String {
    let cells =
        cells.map(|(cost, whole)| format!("{} ({:.0} %)", digits(cost), 100.0 * cost / whole));
    format!("| {name} | {} |", cells.join(" | "))
}

fn digits(cost: f64) -> String {
    format!("{cost:.*}", if cost < 10.0 { 2 } else { usize::from(cost < 100.0) })
}

fn values(bench: &Bench, rounds: usize) {
    let mut lines = vec![
        "### Marshalling a value\n".to_owned(),
        "| records | what | µs | reference | µs | ratio |".to_owned(),
        "|---|---|--:|---|--:|--:|".to_owned(),
    ];
    for (size, count) in [("1 KB", 12), ("100 KB", 1_200)] {
        let record = |id| {
            let name = format!("record {id}");
            json!({ "id": id, "name": name, "tags": ["a", "b"], "score": 1.5 })
        };
        let records = serde_json::Value::Array((0..count).map(record).collect());
        let text = records.to_string();
        let message = Value::serialize(&records).expect("plain data");
        let [mut way_in, mut way_out, mut write, mut read, mut print, mut parse] =
            [const { Vec::new() }; 6];
        for _ in 0..(rounds * 100 / count).max(20) {
            let laps = bench.run("export default (value) => value", inputs(&[&message]));
            way_in.push(laps[Step::ClonedIn as usize]);
            way_out.push(laps[Step::ClonedOut as usize]);
            write.push(timed(|| drop(black_box(Value::serialize(&records)))));
            read.push(timed(|| drop(black_box(message.deserialize::<serde_json::Value>()))));
            print.push(timed(|| drop(black_box(records.to_string()))));
            let parsed = || serde_json::from_str::<serde_json::Value>(&text);
            parse.push(timed(|| drop(black_box(parsed()))));
        }
        let (print, parse) = (median(print), median(parse));
        for (what, samples, reference, cost) in [
            ("message to sandbox", way_in, "`serde_json` parses it", parse),
            ("sandbox to message", way_out, "`serde_json` prints it", print),
            ("`Value::serialize`", write, "`serde_json` prints it", print),
            ("`Value::deserialize`", read, "`serde_json` parses it", parse),
        ] {
            let took = median(samples);
            let ratio = took / cost;
            lines.push(format!(
                "| {size} | {what} | {took:.1} | {reference} | {cost:.1} | {ratio:.2} |"
            ));
        }
    }
    lines.push(String::new());
    tell(&lines);
}

/// The message with these arguments for a run.
fn inputs(args: &[&Value]) -> Value {
    let mut writer = Writer::new();
    writer.array(1);
    writer.array(u32::try_from(args.len()).expect("few"));
    for arg in args {
        let plain = &mut |_: &mut Writer, _: crate::value::Event<'_>, _: &str| Ok(());
        crate::value::copy_message(arg, &mut writer, "", plain).expect("plain data");
    }
    writer.finish()
}

fn succeed(source: &str) {
    let outcome = run_code(source, ExecutionOptions::default()).wait().expect("valid options");
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
}

fn timed(act: impl FnOnce()) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}

/// The median in microseconds.
fn median(mut samples: Vec<Duration>) -> f64 {
    samples.sort_unstable();
    samples[samples.len() / 2].as_secs_f64() * 1e6
}

fn tell(lines: &[String]) {
    let text = lines.join("\n") + "\n";
    match env::var_os("ISOLANE_BENCH_REPORT") {
        Some(path) => {
            let file = OpenOptions::new().append(true).create(true).open(path);
            file.expect("a file").write_all(text.as_bytes()).expect("a report");
        }
        None => print!("{text}"),
    }
}
