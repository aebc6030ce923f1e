//! The place of code that is stopped, by a cap of CPU time and by the limit of memory.
//!
//! A caller's `terminate` may come while the code is anywhere; a cap comes where the code computes.

use std::{
    thread,
    time::{Duration, Instant},
};

use isolane::{
    ExecutionError, ExecutionOptions, HostFunction, Inputs, Runtime, RuntimeOptions, Status,
};

/// No test waits longer.
const CEILING: Duration = Duration::from_mins(1);

/// The error of a run that computes for ever.
fn capped(source: &str) -> ExecutionError {
    let options = RuntimeOptions { safety_cap_ms: Some(20), ..RuntimeOptions::default() };
    let runtime = Runtime::new(&options).expect("valid options");
    // The watchdog settles a run whose thread is late, and then there is no place.
    let mut errors = (0..50).map(|_| {
        let run = runtime.run_code(source, ExecutionOptions::default());
        let result = run.wait().expect("no misuse");
        assert_eq!(result.status, Status::Terminated, "{source}");
        result.error.expect("terminated")
    });
    errors.find(|error| error.line.is_some()).expect("a place")
}

#[test]
fn an_endless_loop_has_a_line() {
    let cases = [
        ("const a = 1;\nconst b = String(a);\nfor (;;);", "<anonymous>", (3, 1)),
        ("function spin() {\n  let n = 0;\n  while (true) n += 1;\n}\nspin();", "spin", (3, 3)),
        (
            "const wait = () => {\n  do {\n    for (;;) {}\n  } while (true);\n};\nwait();",
            "wait",
            (2, 3),
        ),
        ("await null;\nfor (let i = 0; i >= 0; i = 1 - i) Math.max(i);", "<anonymous>", (2, 1)),
    ];
    for (source, function, (line, column)) in cases {
        let error = capped(source);
        let place = format!("(<runCode>:{line}:{column})");
        let head = format!("SafetyCap: {}\n    at {function} {place}", error.message);
        assert_eq!(
            (error.line, error.filename.as_deref()),
            (Some(line), Some("<runCode>")),
            "{source}"
        );
        assert!(error.stack.as_deref().is_some_and(|stack| stack.starts_with(&head)), "{error:?}");
    }
}

#[test]
fn a_builtin_that_is_stopped_has_the_line_of_its_call() {
    let error = capped(
        "const rows = [1];\nrows.map(() => {\n  Array.from({ length: 2 ** 32 - 1 }, () => 1);\n});",
    );
    assert_eq!(error.line, Some(3), "{error:?}");
}

#[test]
fn a_run_that_waits_for_its_host_has_the_place_of_its_await() {
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid options");
    let load = HostFunction::future(std::future::pending::<()>);
    let source = "const wait = async () => {\n  await load();\n};\nawait wait();";
    let run = runtime.run_code(
        source,
        ExecutionOptions {
            globals: Inputs::new().with("load", load),
            ..ExecutionOptions::default()
        },
    );
    let began = Instant::now();
    while runtime.stats().parked == 0 && began.elapsed() < CEILING {
        thread::yield_now();
    }
    run.terminate(Some("too long"));
    let error = run.wait().expect("no misuse").error.expect("terminated");
    // The columns are those of the last names, for no text is read on the thread that ends the run.
    let stack =
        "Terminated: too long\n    at wait (<runCode>:2:9)\n    at <anonymous> (<runCode>:4:7)";
    assert_eq!((error.line, error.column), (Some(2), Some(9)));
    assert_eq!(error.stack.as_deref(), Some(stack));
}
