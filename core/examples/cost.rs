//! What a run costs from Rust: `cargo run --release --example cost`. Prints medians, and ratios to a
//! reference of the same run: starting and joining a thread, which is what isolation costs at least
//! where there is no pool.

use std::time::{Duration, Instant};

use isolane::{ExecutionOptions, HostFunction, Inputs, run_code};

fn main() {
    let thread = median(2_000, || std::thread::spawn(|| ()).join().expect("an idle thread"));
    println!("{:<40} {:>8.2} µs", "a thread, started and joined", micros(thread));
    let show = |what: &str, cost: Duration| {
        let ratio = cost.as_secs_f64() / thread.as_secs_f64();
        println!("{what:<40} {:>8.2} µs  {ratio:>6.2} x", micros(cost));
    };
    show("a fresh run of 1 + 1", median(20_000, || run("export default 1 + 1", Inputs::new())));
    let calls = 10_000;
    let source = format!("for (let i = 0; i < {calls}; i++) add(i, 1); export default 1");
    let add = HostFunction::new(|a: f64, b: f64| a + b);
    let loop_of_calls = median(20, || run(&source, Inputs::new().with("add", add.clone())));
    show("a synchronous host call", loop_of_calls / calls);
}

fn run(source: &str, globals: Inputs) {
    let options = ExecutionOptions { globals, ..ExecutionOptions::default() };
    let outcome = run_code(source, options).wait().expect("valid options");
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
}

fn median(times: usize, mut act: impl FnMut()) -> Duration {
    let mut samples: Vec<Duration> = (0..times)
        .map(|_| {
            let began = Instant::now();
            act();
            began.elapsed()
        })
        .collect();
    samples.sort_unstable();
    samples[times / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
