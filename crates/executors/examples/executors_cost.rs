//! Costs of executors, each beside a reference of the same process.
//!
//! In: `--quick` for few samples; `bindings-node/isolane-worker`. Out: a table. All contenders take turns, so that a busy
//! machine is unfair to all alike; each figure is a median.

use std::{
    collections::HashMap,
    env,
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
}

fn contenders() -> Vec<Contender> {
    let node = LocalCodeExecutor::new().with_interpreter("node");
    let python = LocalCodeExecutor::new();
    let confined = ConfinedCodeExecutor::new().with_worker(WORKER).with_required([""; 0]);
    let (javascript, print) = ("console.log(1 + 1)", "print(1 + 1)");
    let mut contenders = vec![
        contender("`node -` by hand", "`node -` by hand", || by_hand("node", "console.log(1 + 1)")),
        executor("LocalCodeExecutor, `node -`", "`node -` by hand", node, javascript),
        contender("`python3 -` by hand", "`python3 -` by hand", || {
            by_hand("python3", "print(1 + 1)")
        }),
        executor("LocalCodeExecutor, `python3 -`", "`python3 -` by hand", python, print),
        executor("ConfinedCodeExecutor, `python3 -`", "`python3 -` by hand", confined, print),
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
