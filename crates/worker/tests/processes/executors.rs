//! The executor of isolates when its workers die.

use std::{sync::mpsc, thread};

use futures::executor::block_on;
use isolane_executors::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, InvocationContext, IsolateCodeExecutor,
};

use crate::{
    KILLED,
    family::{self, alone, eventually},
    sessions::runtime,
};

fn input(code: &str) -> CodeExecutionInput {
    CodeExecutionInput { execution_id: Some("a".to_owned()), ..CodeExecutionInput::new(code) }
}

fn run(
    executor: &IsolateCodeExecutor,
    context: &InvocationContext,
    code: &str,
) -> CodeExecutionResult {
    block_on(executor.execute_code(context, input(code))).expect("the code starts")
}

#[test]
fn a_call_whose_worker_is_killed_ends_as_aborted_programs_do() {
    let _alone = alone();
    let runtime = runtime();
    let executor = IsolateCodeExecutor::new().with_runtime(runtime.clone()).with_stateful(true);
    let context = InvocationContext::default();
    assert_eq!(run(&executor, &context, "let kept = 1; kept").stdout, "1\n");
    // In the middle of a call.
    let (sender, computes) = mpsc::channel();
    let announced = context.with_stdout(move |_| {
        // The call may have ended by the time of later output.
        let _ = sender.send(());
    });
    let killer = thread::spawn(move || {
        computes.recv().expect("the code prints");
        family::kill_workers();
    });
    let lost = run(&executor, &announced, "console.log('begun'); for (;;);");
    killer.join().expect("no panic");
    let expected = ("begun\n", &*format!("WorkerLost: {KILLED}\n"), Some(134));
    assert_eq!((&*lost.stdout, &*lost.stderr, lost.exit_code), expected);
    let context = InvocationContext::default();
    let next = run(&executor, &context, "typeof kept");
    assert_eq!((&*next.stdout, next.exit_code), ("undefined\n", Some(0)));
    assert_eq!(
        next.stderr,
        "isolane: the session \"a\" was gone; this call began a new one
"
    );
    // Between two calls.
    run(&executor, &context, "let kept = 2");
    family::kill_workers();
    eventually("the worker to go", || family::workers().is_empty());
    eventually("the host to notice", || runtime.stats().workers == 0);
    let lost = run(&executor, &context, "kept");
    assert_eq!((&*lost.stdout, lost.exit_code), ("", Some(134)));
    assert_eq!(run(&executor, &context, "typeof kept").stdout, "undefined\n");
}
