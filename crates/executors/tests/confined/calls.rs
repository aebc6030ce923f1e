//! A call: its output, its code, its ends.

use super::support::{
    CEILING, Test, error, execute, expect_gone, is_there, late, open_folder, program, python, run,
    shell,
};
use futures::{executor::block_on, future::join_all};
use isolane_executors::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, ExecutorErrorKind, InvocationContext,
};
use std::{
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

pub(crate) const ALL: &[Test] = &[
    ("python_is_the_default", python_is_the_default),
    ("exit_codes_are_the_programs", exit_codes_are_the_programs),
    ("a_late_program_is_killed", a_late_program_is_killed),
    ("a_cancelled_call_is_killed", a_cancelled_call_is_killed),
    ("a_dropped_call_is_killed", a_dropped_call_is_killed),
    ("the_question_to_an_interpreter_is_cancelled", the_question_to_an_interpreter_is_cancelled),
    ("the_least_memory_starts_a_program", the_least_memory_starts_a_program),
    ("code_is_written_while_output_is_read", code_is_written_while_output_is_read),
    ("a_program_need_not_read_its_code", a_program_need_not_read_its_code),
    ("output_is_live", output_is_live),
    ("calls_overlap", calls_overlap),
    ("its_environment_is_short", its_environment_is_short),
    ("its_cpu_time_is_limited", its_cpu_time_is_limited),
    ("misuse_is_bad_input", misuse_is_bad_input),
    ("nothing_is_left_in_the_host", nothing_is_left_in_the_host),
];

fn python_is_the_default() {
    let result = run(&python(), "import sys\nprint(6 * 7)\nsys.stderr.write('e')");
    let expected = CodeExecutionResult {
        stdout: "42\n".to_owned(),
        stderr: "e".to_owned(),
        exit_code: Some(0),
        ..CodeExecutionResult::default()
    };
    assert_eq!(result, expected);
}

fn exit_codes_are_the_programs() {
    for (code, expected) in
        [("exit 0", 0), ("exit 125", 125), ("kill -9 $$", 137), ("kill -15 $$", 143)]
    {
        assert_eq!(run(&shell(), code).exit_code, Some(expected), "{code}");
    }
}

fn a_late_program_is_killed() {
    let code = ": > kept; sleep 98761 & setsid sleep 98761 & echo before; sleep 98761";
    let (result, told) = late(&shell(), code);
    assert_eq!(result.stdout, "before\n");
    assert_eq!(result.stderr, format!("sh {told}"));
    assert_eq!(result.exit_code, None);
    assert_eq!(result.output_files[0].name, "kept");
    expect_gone("98761");
}

fn a_cancelled_call_is_killed() {
    let context = InvocationContext::default();
    let cancellation = context.cancellation.clone();
    let context = context.with_stdout(move |_| cancellation.cancel());
    let executor = shell().without_timeout();
    let input = CodeExecutionInput::new("setsid sleep 98762 & echo started; sleep 98762");
    let error = block_on(executor.execute_code(&context, input)).expect_err("it is cancelled");
    assert_eq!(error.kind(), ExecutorErrorKind::Cancelled);
    expect_gone("98762");
}

fn a_dropped_call_is_killed() {
    let (send, receive) = futures::channel::oneshot::channel();
    let send = Mutex::new(Some(send));
    let context = InvocationContext::default().with_stdout(move |_| {
        let send = send.lock().expect("the lock").take();
        let _ = send.map(|send| send.send(()));
    });
    let executor = shell().without_timeout();
    let input = CodeExecutionInput::new("setsid sleep 98763 & echo started; sleep 98763");
    block_on(async {
        let call = executor.execute_code(&context, input);
        futures::future::select(call, receive).await;
    });
    expect_gone("98763");
}

fn the_question_to_an_interpreter_is_cancelled() {
    let folder = open_folder();
    let slow = folder.path().join("python3");
    program(&slow, "#!/bin/sh\nsleep 98764\nexec /usr/bin/python3 \"$@\"\n");
    let executor = python().with_interpreter(slow.to_str().expect("UTF-8"));
    let context = InvocationContext::default();
    let cancellation = context.cancellation.clone();
    let canceller = thread::spawn(move || {
        let started = Instant::now();
        while !is_there("98764") {
            assert!(started.elapsed() < CEILING, "it is not asked");
            thread::yield_now();
        }
        cancellation.cancel();
    });
    let error = block_on(executor.execute_code(&context, CodeExecutionInput::new("1")))
        .expect_err("it is cancelled");
    // One that does not answer in its time is an error of another kind.
    assert_eq!(error.kind(), ExecutorErrorKind::Cancelled, "{error}");
    canceller.join().expect("no panic");
    expect_gone("98764");
}

fn the_least_memory_starts_a_program() {
    // In any case it is the interpreter that fails.
    let result = run(&shell().with_memory("1m"), "exit 3");
    assert!(result.exit_code.is_some(), "{result:?}");
}

fn code_is_written_while_output_is_read() {
    let line = format!("print('{}')\n", "x".repeat(1000));
    let result = run(&python(), &line.repeat(500));
    assert_eq!(result.stdout.len(), 500 * 1001);
    // The shell reads as it goes.
    let result = run(&shell(), &format!("echo {}\n", "x".repeat(1000)).repeat(500));
    assert_eq!(result.stdout.len(), 500 * 1001);
}

fn a_program_need_not_read_its_code() {
    let code = "exit 3\n".to_owned() + &"#".repeat(1 << 20);
    assert_eq!(run(&shell(), &code).exit_code, Some(3));
}

fn output_is_live() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let context = InvocationContext::default().with_stderr({
        let seen = Arc::clone(&seen);
        move |bytes| seen.lock().expect("the lock").extend_from_slice(bytes)
    });
    let input = CodeExecutionInput::new("echo a >&2; echo b >&2");
    block_on(shell().execute_code(&context, input)).expect("it starts");
    assert_eq!(*seen.lock().expect("the lock"), b"a\nb\n");
}

fn calls_overlap() {
    let executor = shell();
    let context = InvocationContext::default();
    let call = |number: u32| {
        executor.execute_code(
            &context,
            CodeExecutionInput::new(format!("echo {number}; : > f{number}")),
        )
    };
    let results = block_on(join_all((0..200).map(call)));
    for (number, result) in results.into_iter().enumerate() {
        let result = result.expect("it starts");
        assert_eq!(result.stdout, format!("{number}\n"));
        assert_eq!(result.output_files.len(), 1, "a folder of its own");
    }
}

fn its_environment_is_short() {
    let result = run(&shell().with_env("MINE", "1").with_env("LANG", "C"), "/usr/bin/env");
    let mut variables: Vec<_> = result.stdout.lines().collect();
    variables.sort_unstable();
    // The shell adds two of its own.
    variables.retain(|variable| !variable.starts_with("PWD=") && !variable.starts_with("_="));
    assert_eq!(variables.len(), 5, "{variables:?}");
    assert_eq!(variables[..3], ["HOME=/work", "LANG=C", "MINE=1"]);
    assert!(variables[3].starts_with("PATH=") && variables[4] == "TMPDIR=/tmp");
}

fn its_cpu_time_is_limited() {
    // Its wall time would be over first, so the program is asked for its limit.
    let executor = shell().with_timeout(Duration::from_millis(150_500));
    let result = run(&executor, "ulimit -t");
    assert_eq!((&*result.stdout, result.exit_code), ("152\n", Some(0)), "parts of seconds count");
}

fn misuse_is_bad_input() {
    for executor in [
        shell().with_interpreter(""),
        shell().with_timeout(Duration::ZERO),
        shell().with_memory("much"),
        shell().with_memory("0"),
        shell().with_memory("5b"),
        shell().with_memory("64k"),
        shell().with_pids_limit(0),
        shell().with_output_limit(0),
        shell().with_env("A=B", ""),
        shell().with_required(["everything"]),
        shell().with_readable("relative"),
        shell().with_readable("/"),
        shell().with_readable("/work/file"),
        shell().with_readable("/usr/../etc"),
        shell().with_readable("/nowhere/at/all"),
    ] {
        assert_eq!(error(&executor).0, ExecutorErrorKind::BadInput, "{executor:?}");
    }
    let mut input = CodeExecutionInput::new("");
    input.input_files.push(super::support::file("../x", b""));
    assert_eq!(
        execute(&shell(), input).expect_err("it is refused").kind(),
        ExecutorErrorKind::BadInput
    );
}

fn nothing_is_left_in_the_host() {
    let count = || std::fs::read_dir("/proc/self/fd").expect("/proc").count();
    let late = shell().with_timeout(Duration::from_millis(1));
    let unstarted = shell().with_interpreter("/bin/sh").with_worker("/bin/true");
    let some = || {
        for _ in 0..4 {
            run(&shell(), "echo x > file");
            run(&late, "sleep 1000");
            error(&unstarted);
        }
    };
    some();
    let before = count();
    some();
    // A launcher that was killed may be dealt with a moment later, on another thread.
    let started = Instant::now();
    while count() > before {
        assert!(started.elapsed() < CEILING, "{} descriptors, not {before}", count());
        std::thread::yield_now();
    }
}
