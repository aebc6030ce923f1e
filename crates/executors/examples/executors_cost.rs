//! Costs of executors, each beside a reference of the same process; and what 200 open executors hold.
//!
//! In: `--quick` for few samples; `bindings-node/isolane-worker`. Out: two tables. All contenders of the first one take
//! turns, so that a busy machine is unfair to all alike; each figure is a median. The second one, on Linux, counts what
//! the process has more once 200 executors of a kind are open and each has run a program.

use std::{
    collections::HashMap,
    env, fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use futures::executor::block_on;
use isolane::{Isolation, Runtime, RuntimeOptions};
use isolane_executors::{
    CodeExecutionInput, CodeExecutor, ConfinedCodeExecutor, InvocationContext, IsolateCodeExecutor,
    LocalCodeExecutor,
};

const WORKER: &str = "bindings-node/isolane-worker";

/// Something that runs a program that prints `2`.
struct Contender {
    name: &'static str,
    /// The name of the contender that it is compared with.
    beside: &'static str,
    run: Box<dyn Fn() -> String>,
}

fn main() {
    let rounds = if env::args().any(|argument| argument == "--quick") { 3 } else { 40 };
    let contenders = contenders();
    let mut times: HashMap<&str, Vec<Duration>> = HashMap::new();
    // The first round warms up.
    for round in 0..=rounds {
        for Contender { name, run, .. } in &contenders {
            let started = Instant::now();
            let output = run();
            let took = started.elapsed();
            assert_eq!(output, "2\n", "{name}");
            if round > 0 {
                times.entry(name).or_default().push(took);
            }
        }
    }
    let medians: HashMap<_, _> =
        times.into_iter().map(|(name, times)| (name, median(times))).collect();
    println!("### Executors: a program that prints 1 + 1\n");
    println!("| executor | median | ratio | of |\n|---|--:|--:|---|");
    for Contender { name, beside, .. } in &contenders {
        let (own, other) = (medians[name].as_secs_f64(), medians[beside].as_secs_f64());
        println!("| {name} | {:.2} ms | {:.4} | {beside} |", own * 1e3, own / other);
    }
    if cfg!(target_os = "linux") {
        println!("\n### 200 open executors, each of which has run a program\n");
        println!(
            "| executor | descriptors | threads | processes | resident |\n|---|--:|--:|--:|--:|"
        );
        // The first call starts what all share.
        held(1, &IsolateCodeExecutor::new, "1");
        held(1, &confined, "print(2)");
        let count = if rounds < 40 { 20 } else { 200 };
        row("LocalCodeExecutor", &held(count, &LocalCodeExecutor::new, "print(2)"));
        row("ConfinedCodeExecutor", &held(count, &confined, "print(2)"));
        row("IsolateCodeExecutor", &held(count, &IsolateCodeExecutor::new, "1"));
        let stateful = || IsolateCodeExecutor::new().with_stateful(true);
        row("the same, stateful, with one state", &held(count, &stateful, "1"));
        let shared = runtime(Isolation::Process);
        held(1, &|| stateful().with_runtime(shared.clone()), "1");
        let of_shared = || stateful().with_runtime(shared.clone());
        row("the same, in one runtime of processes", &held(count, &of_shared, "1"));
        let own = || stateful().with_runtime(runtime(Isolation::Process));
        row("the same, each with a runtime of its own", &held(count, &own, "1"));
    }
}

fn confined() -> ConfinedCodeExecutor {
    ConfinedCodeExecutor::new().with_worker(WORKER).with_required([""; 0])
}

/// Descriptors, threads, processes below this one, and bytes of memory.
type Held = [usize; 4];

fn row(name: &str, [descriptors, threads, processes, bytes]: &Held) {
    println!("| {name} | {descriptors} | {threads} | {processes} | {} MB |", bytes / 1_000_000);
}

/// The descriptors, threads and processes that so many executors add, each of which has run the code.
fn held<E: CodeExecutor>(count: usize, make: &dyn Fn() -> E, code: &str) -> Held {
    let before = now();
    let executors: Vec<E> = (0..count).map(|_| make()).collect();
    for executor in &executors {
        let input = CodeExecutionInput {
            execution_id: Some("state".to_owned()),
            ..CodeExecutionInput::new(code)
        };
        let context = InvocationContext::default();
        let result = block_on(executor.execute_code(&context, input)).expect("it starts");
        assert!(result.is_success(), "{}", result.stderr);
    }
    let after = now();
    drop(executors);
    std::array::from_fn(|at| after[at].saturating_sub(before[at]))
}

fn now() -> Held {
    let entries = |folder: &str| fs::read_dir(folder).expect("a folder").count();
    let status = fs::read_to_string("/proc/self/status").expect("a file");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    let kib: usize = resident.trim_end_matches("kB").trim().parse().expect("a number");
    [entries("/proc/self/fd"), entries("/proc/self/task"), descendants(), kib * 1024]
}

/// The processes below this one.
fn descendants() -> usize {
    let parents: HashMap<u32, u32> = fs::read_dir("/proc")
        .expect("a folder")
        .filter_map(|entry| {
            let process = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            Some((process, parent))
        })
        .collect();
    let own = std::process::id();
    let is_below = |process: &&u32| {
        let mut at = **process;
        while let Some(parent) = parents.get(&at) {
            if *parent == own {
                return true;
            }
            at = *parent;
        }
        false
    };
    parents.keys().filter(is_below).count()
}

fn contenders() -> Vec<Contender> {
    let node = LocalCodeExecutor::new().with_interpreter("node");
    let python = LocalCodeExecutor::new();
    let (javascript, print) = ("console.log(1 + 1)", "print(1 + 1)");
    let mut contenders = vec![
        contender("`node -` by hand", "`node -` by hand", || by_hand("node", "console.log(1 + 1)")),
        executor("LocalCodeExecutor, `node -`", "`node -` by hand", node, javascript),
        contender("`python3 -` by hand", "`python3 -` by hand", || {
            by_hand("python3", "print(1 + 1)")
        }),
        executor("LocalCodeExecutor, `python3 -`", "`python3 -` by hand", python, print),
        executor("ConfinedCodeExecutor, `python3 -`", "`python3 -` by hand", confined(), print),
    ];
    for (name, isolation) in [
        ("IsolateCodeExecutor, thread", Isolation::Thread),
        ("IsolateCodeExecutor, process", Isolation::Process),
    ] {
        let isolate = IsolateCodeExecutor::new().with_runtime(runtime(isolation));
        contenders.push(executor(name, "LocalCodeExecutor, `node -`", isolate, javascript));
    }
    contenders
}

fn contender(
    name: &'static str,
    beside: &'static str,
    run: impl Fn() -> String + 'static,
) -> Contender {
    Contender { name, beside, run: Box::new(run) }
}

fn executor(
    name: &'static str,
    beside: &'static str,
    executor: impl CodeExecutor,
    code: &'static str,
) -> Contender {
    let executor: Arc<dyn CodeExecutor> = Arc::new(executor);
    contender(name, beside, move || {
        let context = InvocationContext::default();
        let result = block_on(executor.execute_code(&context, CodeExecutionInput::new(code)));
        let result = result.expect("it starts");
        assert_eq!(result.stderr, "", "{name}");
        result.stdout
    })
}

fn runtime(isolation: Isolation) -> Runtime {
    let worker = Path::new(WORKER).exists().then(|| WORKER.into());
    let options = RuntimeOptions { isolation, worker, ..RuntimeOptions::default() };
    Runtime::new(&options).expect("a runtime")
}

/// The work of a program without an executor.
fn by_hand(interpreter: &str, code: &str) -> String {
    let mut child = Command::new(interpreter)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("a pipe").write_all(code.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("its output");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
