//! Messages between a host and its run count together with the run's memory.

use std::{sync::mpsc, thread, time::Duration};

use isolane::{ExecutionOptions, HostFunction, Inputs, Status, run_code};

/// The time limit of a test that does not hang.
const CEILING: Duration = Duration::from_mins(2);

#[test]
fn answers_that_no_longer_fit_end_a_run_that_does_nothing_but_compute() {
    let large = HostFunction::future(|| async { "x".repeat(3 << 20) });
    let options = ExecutionOptions {
        globals: Inputs::new().with("large", large),
        memory_limit_bytes: Some(8 << 20),
        ..ExecutionOptions::default()
    };
    // Neither the run's memory nor its messages exceed the limit alone.
    let run = run_code("const held = new ArrayBuffer(6 << 20); large(); for (;;);", options);
    let terminator = run.terminator();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(run.wait()).is_ok());
    let result = told.recv_timeout(CEILING);
    terminator.terminate(None);
    let result = result.expect("the run settles by itself").expect("valid options");
    assert_eq!(result.status, Status::Memory);
}
