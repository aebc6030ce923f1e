//! The executor of subprocesses, with real interpreters.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures::executor::block_on;
use isolane_executors::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, ExecFile, ExecutorError,
    ExecutorErrorKind, InvocationContext, LocalCodeExecutor,
};

/// How long anything may take that is not meant to wait.
const CEILING: Duration = Duration::from_mins(2);

fn shell() -> LocalCodeExecutor {
    LocalCodeExecutor::new().with_interpreter("sh").with_args(["-s"])
}

fn execute(
    executor: &LocalCodeExecutor,
    input: CodeExecutionInput,
) -> Result<CodeExecutionResult, ExecutorError> {
    block_on(executor.execute_code(&InvocationContext::default(), input))
}

fn run(executor: &LocalCodeExecutor, code: &str) -> CodeExecutionResult {
    execute(executor, CodeExecutionInput::new(code)).expect("it starts")
}

/// The result of code that never ends, with its time limit. Its last act before that prints something: with a limit in
/// which it does not come so far, it gets a longer one.
fn late(mut limit: Duration, code: &str) -> (CodeExecutionResult, Duration) {
    loop {
        let result = run(&shell().with_timeout(limit), code);
        if result.stdout.contains("begun") || limit > CEILING {
            return (result, limit);
        }
        limit *= 3;
    }
}

fn kind(executor: &LocalCodeExecutor, input: CodeExecutionInput) -> ExecutorErrorKind {
    execute(executor, input).expect_err("it does not start").kind()
}

fn file(name: &str, content: &[u8]) -> ExecFile {
    ExecFile { name: name.to_owned(), content: content.to_vec(), mime_type: None }
}

/// Whether a process with that text in its command line is there.
fn is_there(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc").map_while(Result::ok);
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(mark))
}

/// Waits until a process with that text is there.
fn expect_running(mark: &str) {
    let started = Instant::now();
    while !is_there(mark) {
        assert!(started.elapsed() < CEILING, "{mark} does not run");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until no process with that text is there.
fn expect_gone(mark: &str) {
    let started = Instant::now();
    while is_there(mark) {
        assert!(started.elapsed() < CEILING, "{mark} lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn python_is_the_default() {
    let result = run(&LocalCodeExecutor::new(), "import sys\nprint(6 * 7)\nsys.stderr.write('e')");
    let expected = CodeExecutionResult {
        stdout: "42\n".into(),
        stderr: "e".into(),
        exit_code: Some(0),
        ..Default::default()
    };
    assert_eq!(result, expected);
}

#[test]
fn node_reads_its_code_too() {
    let node = LocalCodeExecutor::new().with_interpreter("node");
    assert_eq!(run(&node, "console.log(6 * 7)").stdout, "42\n");
}

#[test]
fn exit_codes_are_the_programs_own() {
    assert_eq!(run(&shell(), "exit 7").exit_code, Some(7));
    assert_eq!(run(&shell(), "kill -TERM $$").exit_code, Some(143));
    assert_eq!(run(&shell(), "kill -KILL $$").exit_code, Some(137));
    let failed = run(&LocalCodeExecutor::new(), "raise ValueError('no')");
    assert_eq!(failed.exit_code, Some(1));
    assert!(failed.stderr.ends_with("ValueError: no\n"), "{}", failed.stderr);
}

#[test]
fn a_program_that_takes_too_long_is_killed_with_its_output_kept() {
    let code = "trap '' TERM INT HUP; sleep 4321 & echo begun; sleep 4321; echo never";
    let (result, limit) = late(Duration::from_millis(1500), code);
    assert_eq!(result.exit_code, None);
    assert_eq!(result.stdout, "begun\n");
    let told = format!("sh execution timed out after {}ms\n", limit.as_millis());
    assert_eq!(result.stderr, told);
    expect_gone("sleep\u{0}4321");
}

#[test]
fn whole_seconds_are_told_as_such() {
    let (result, limit) = late(Duration::from_secs(2), "printf begun >&2; echo begun; sleep 4322");
    let told = format!("begun\nsh execution timed out after {}s\n", limit.as_secs());
    assert_eq!(result.stderr, told);
}

#[test]
fn what_a_program_left_running_is_killed_and_not_waited_for() {
    let started = Instant::now();
    let result = run(&shell(), "sleep 4323 & (sleep 4323 &) ; echo done");
    assert!(started.elapsed() < CEILING);
    assert_eq!((result.stdout.as_str(), result.exit_code), ("done\n", Some(0)));
    expect_gone("sleep\u{0}4323");
}

#[test]
fn a_process_outside_of_the_group_that_holds_the_pipes_is_not_waited_for() {
    let started = Instant::now();
    // The new session is outside of the group.
    let mark = format!("sleep 3000.{}", std::process::id());
    let code = format!(
        "setsid sh -c 'echo away; touch ready; exec {mark}' &\n\
         while [ ! -e ready ]; do sleep 0.01; done; echo done"
    );
    let result = run(&shell(), &code);
    assert!(started.elapsed() < CEILING);
    assert_eq!(result.stdout, "away\ndone\n");
    expect_running(&mark.replace(' ', "\0"));
    let _ = std::process::Command::new("pkill").args(["-fx", &mark]).status();
}

#[test]
fn a_program_that_closes_its_pipes_lives_on() {
    let code = "exec >&- 2>&- <&-; sleep 0.2; exit 5";
    assert_eq!(run(&shell(), code).exit_code, Some(5));
}

#[test]
fn a_program_need_not_read_its_code() {
    let away = LocalCodeExecutor::new().with_interpreter("true").with_args(Vec::<String>::new());
    let code = "x".repeat(1 << 20);
    assert_eq!(run(&away, &code).exit_code, Some(0));
}

#[test]
fn output_is_read_while_the_code_is_written() {
    let cat = LocalCodeExecutor::new().with_interpreter("cat").with_args(Vec::<String>::new());
    let code = "0123456789abcdef".repeat(1 << 15);
    assert_eq!(run(&cat, &code).stdout, code);
}

#[test]
fn a_flood_is_cut_in_the_middle() {
    let flood = run(
        &shell().with_output_limit(40),
        "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done",
    );
    let left_out = (0..3000).map(|number: u32| number.to_string().len() + 1).sum::<usize>() - 40;
    let expected = format!(
        "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n1\n... {left_out} bytes left out ...\n2998\n2999\n"
    );
    assert_eq!(flood.stdout, expected);
    let endless = shell().with_timeout(Duration::from_millis(500));
    let result = run(&endless, "yes 0123456789");
    assert!(result.stdout.len() < (1 << 20) + 100, "{}", result.stdout.len());
    assert_eq!(result.exit_code, None);
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    assert_eq!(run(&shell(), r"printf 'a\377b'").stdout, "a\u{fffd}b");
}

#[test]
fn the_environment_is_short() {
    let python = "import os\nprint(sorted(k for k in os.environ if k.startswith('ISOLANE_TEST') or k in ('PATH', 'CARGO_MANIFEST_DIR')))";
    assert_eq!(run(&LocalCodeExecutor::new(), python).stdout, "['PATH']\n");
    let given = LocalCodeExecutor::new().with_env("ISOLANE_TEST_A", "1");
    assert_eq!(run(&given, python).stdout, "['ISOLANE_TEST_A', 'PATH']\n");
    let all = LocalCodeExecutor::new().with_inherited_env();
    assert_eq!(run(&all, python).stdout, "['CARGO_MANIFEST_DIR', 'PATH']\n");
}

#[test]
fn files_go_in_and_out() {
    let input = CodeExecutionInput {
        code: "cat in.txt; cp in.txt copy.txt; echo more >> changed.txt; mkdir folder; touch folder/x .hidden; \
               ln -s /etc/passwd link; mkfifo pipe; printf '{}' > out.json; pwd"
            .into(),
        input_files: vec![file("in.txt", b"data"), file("changed.txt", b"a"), file("same.txt", b"s")],
        ..Default::default()
    };
    let result = execute(&shell(), input).expect("it starts");
    let outputs: Vec<_> = result
        .output_files
        .iter()
        .map(|file| (file.name.as_str(), file.content.as_slice(), file.mime_type.as_deref()))
        .collect();
    let expected: Vec<(_, &[u8], _)> = vec![
        ("changed.txt", b"amore\n", Some("text/plain")),
        ("copy.txt", b"data", Some("text/plain")),
        ("out.json", b"{}", Some("application/json")),
    ];
    assert_eq!(outputs, expected);
    let folder = result.stdout.strip_prefix("data").expect("its input").trim_end();
    assert!(!std::path::Path::new(folder).exists(), "{folder} is left");
}

#[test]
fn files_beyond_the_limits_are_left_out_with_a_line() {
    let code = "head -c 8388609 /dev/zero > a.bin; i=10; while [ $i -lt 75 ]; do : > f$i; i=$((i+1)); done";
    let result = run(&shell(), code);
    assert_eq!(result.output_files.len(), 64);
    let expected = "isolane: output file 'a.bin' left out (8388609 bytes)\n\
                    isolane: output file 'f74' left out (0 bytes)\n";
    assert_eq!(result.stderr, expected);
    let code =
        "for f in a b c d e f; do head -c 7000000 /dev/zero > $f; done; head -c 100 /dev/zero > g";
    let names: Vec<_> =
        run(&shell(), code).output_files.into_iter().map(|file| file.name).collect();
    assert_eq!(names, ["a", "b", "c", "d", "g"]);
}

#[test]
fn a_name_with_a_line_break_forges_no_line() {
    let result = run(&shell(), "head -c 9000000 /dev/zero > 'a\nisolane: fine'");
    let expected = r"isolane: output file 'a\nisolane: fine' left out (9000000 bytes)";
    assert_eq!(result.stderr, format!("{expected}\n"));
}

#[test]
fn bad_input_and_options_are_refused() {
    let long = "x".repeat(256);
    for name in ["", ".", "..", "a/b", "a\\b", "a\0b", &long] {
        let input = CodeExecutionInput { input_files: vec![file(name, b"")], ..Default::default() };
        assert_eq!(kind(&shell(), input), ExecutorErrorKind::BadInput, "{name:?}");
    }
    let twice = CodeExecutionInput {
        input_files: vec![file("a", b""), file("a", b"")],
        ..Default::default()
    };
    assert_eq!(kind(&shell(), twice), ExecutorErrorKind::BadInput);
    let large = CodeExecutionInput::new("x".repeat((16 << 20) + 1));
    assert_eq!(kind(&shell(), large), ExecutorErrorKind::BadInput);
    let none = CodeExecutionInput::default;
    assert_eq!(kind(&shell().with_interpreter(""), none()), ExecutorErrorKind::BadInput);
    assert_eq!(kind(&shell().with_timeout(Duration::ZERO), none()), ExecutorErrorKind::BadInput);
    assert_eq!(kind(&shell().with_output_limit(0), none()), ExecutorErrorKind::BadInput);
    assert_eq!(kind(&shell().with_env("A=B", ""), none()), ExecutorErrorKind::BadInput);
    let missing = shell().with_interpreter("no-such-interpreter");
    assert_eq!(kind(&missing, none()), ExecutorErrorKind::Spawn);
}

#[test]
fn cancelling_kills_the_program() {
    let context = InvocationContext::default();
    let token = context.cancellation.clone();
    let context = context.with_stdout(move |_| token.cancel());
    let started = Instant::now();
    let input = CodeExecutionInput::new("echo begun; sleep 4325");
    let error = block_on(shell().execute_code(&context, input)).expect_err("cancelled");
    assert_eq!(error.kind(), ExecutorErrorKind::Cancelled);
    assert!(started.elapsed() < CEILING);
    expect_gone("sleep\u{0}4325");
    let again = block_on(shell().execute_code(&context, CodeExecutionInput::new("echo x")));
    assert_eq!(again.expect_err("cancelled before").kind(), ExecutorErrorKind::Cancelled);
}

#[test]
fn dropping_the_future_kills_the_program() {
    let (sender, begun) = std::sync::mpsc::channel();
    let context =
        InvocationContext::default().with_stdout(move |_| sender.send(()).unwrap_or_default());
    let executor = shell();
    let call = executor.execute_code(&context, CodeExecutionInput::new("echo begun; sleep 4326"));
    let mut call = Box::pin(call);
    let waker = std::task::Waker::noop();
    let mut task = std::task::Context::from_waker(waker);
    assert!(call.as_mut().poll(&mut task).is_pending());
    begun.recv_timeout(CEILING).expect("it has begun");
    drop(call);
    expect_gone("sleep\u{0}4326");
}

#[test]
fn live_output_comes_as_it_is_written() {
    let steps = tempfile::tempdir().expect("a folder");
    let seen = Arc::new(Mutex::new(Vec::new()));
    // The program goes on when its last line has been seen.
    let sink = |stream: &'static str| {
        let (seen, folder) = (Arc::clone(&seen), steps.path().to_owned());
        move |bytes: &[u8]| {
            let mut seen = seen.lock().expect("no panic");
            seen.push((stream, bytes.to_vec()));
            std::fs::write(folder.join(seen.len().to_string()), "").expect("a file");
        }
    };
    let context = InvocationContext::default().with_stdout(sink("out")).with_stderr(sink("err"));
    let code = "seen() { while [ ! -e \"$STEPS/$1\" ]; do sleep 0.01; done; }\n\
                echo a; seen 1; echo b >&2; seen 2; echo c";
    let executor = shell().with_env("STEPS", steps.path().display().to_string());
    block_on(executor.execute_code(&context, CodeExecutionInput::new(code))).expect("it starts");
    let expected: Vec<(&str, Vec<u8>)> =
        vec![("out", b"a\n".to_vec()), ("err", b"b\n".to_vec()), ("out", b"c\n".to_vec())];
    assert_eq!(*seen.lock().expect("no panic"), expected);
}

#[test]
fn calls_overlap_in_any_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let executor = Arc::new(shell().with_timeout(CEILING));
    // Each program waits for all others.
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display().to_string();
    let calls = (0..20).map(|number| {
        let executor: Arc<dyn CodeExecutor> = executor.clone();
        let place = &place;
        async move {
            let code = format!(
                ": > {place}/{number}; while [ $(ls {place} | wc -l) -lt 20 ]; do sleep 0.1; done; echo {number}"
            );
            let input = CodeExecutionInput::new(code);
            executor.execute_code(&InvocationContext::default(), input).await.expect("it starts")
        }
    });
    let results = runtime.block_on(futures::future::join_all(calls));
    for (number, result) in results.iter().enumerate() {
        assert_eq!(result.stdout, format!("{number}\n"));
    }
}

#[test]
fn two_hundred_calls_at_once_are_apart() {
    let executor = shell().with_timeout(CEILING);
    let calls = (0..200).map(|number| {
        let input = CodeExecutionInput::new(format!("echo {number}; ls; : > f{number}"));
        let executor = &executor;
        async move { executor.execute_code(&InvocationContext::default(), input).await }
    });
    let results = block_on(futures::future::join_all(calls));
    for (number, result) in results.into_iter().enumerate() {
        let result = result.expect("it starts");
        assert_eq!(result.stdout, format!("{number}\n"), "an empty folder of its own");
        let names: Vec<_> = result.output_files.iter().map(|file| &*file.name).collect();
        assert_eq!(names, [format!("f{number}")]);
    }
}

#[test]
fn bombs_end_with_their_call() {
    let limited = shell().with_timeout(Duration::from_secs(4));
    let fork_bomb = "ulimit -u 2000 2>/dev/null; f() { f | f & }; n=0; while [ $n -lt 200 ]; do sleep 4327 & n=$((n+1)); done; wait";
    assert_eq!(run(&limited, fork_bomb).exit_code, None);
    expect_gone("sleep\u{0}4327");
    let memory_bomb = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))\nx = []\nwhile True: x.append(bytearray(1 << 20))";
    let result = run(&LocalCodeExecutor::new(), memory_bomb);
    assert_eq!(result.exit_code, Some(1));
    assert!(result.stderr.ends_with("MemoryError\n"), "{}", result.stderr);
}

#[test]
fn a_deep_nest_of_folders_is_removed() {
    let code = "import os\nprint(os.getcwd(), flush=True)\nfor _ in range(6000):\n os.mkdir('d')\n os.chdir('d')";
    let result = run(&LocalCodeExecutor::new(), code);
    assert_eq!(result.exit_code, Some(0), "{}", result.stderr);
    let folder = std::path::Path::new(result.stdout.trim_end());
    let started = Instant::now();
    // The removal may go on behind the call.
    while folder.exists() {
        assert!(started.elapsed() < CEILING, "{} stays", folder.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}
