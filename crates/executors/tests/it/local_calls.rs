//! Calls of subprocesses whose host is unusual, or whose programs leave others no time.

use std::{
    collections::HashSet,
    os::unix::fs::symlink,
    process::Command,
    time::{Duration, Instant},
};

use futures::{
    executor::block_on,
    future::{Either, join_all, select},
};
use isolane_executors::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, ExecutorErrorKind, InvocationContext,
    LocalCodeExecutor,
};

/// How long anything may take that is not meant to wait.
const CEILING: Duration = Duration::from_mins(2);

fn shell() -> LocalCodeExecutor {
    LocalCodeExecutor::new().with_interpreter("sh").with_args(["-s"])
}

async fn run(executor: &LocalCodeExecutor, code: &str) -> CodeExecutionResult {
    let context = InvocationContext::default();
    executor.execute_code(&context, CodeExecutionInput::new(code)).await.expect("it starts")
}

#[test]
fn nobody_else_reaches_the_working_folder() {
    assert_eq!(block_on(run(&shell(), "stat -c %a .")).stdout, "700\n");
}

#[test]
fn floods_leave_others_their_time() {
    let flood = shell().with_timeout(CEILING);
    let context = InvocationContext::default();
    let code = "dd if=/dev/zero bs=65536 2>/dev/null";
    let floods =
        join_all((0..6).map(|_| flood.execute_code(&context, CodeExecutionInput::new(code))));
    let quick = shell().with_timeout(CEILING);
    let others = async {
        for _ in 0..5 {
            assert_eq!(run(&quick, "echo here").await.stdout, "here\n");
        }
    };
    let Either::Right(((), floods)) = block_on(select(Box::pin(floods), Box::pin(others))) else {
        panic!("the floods were over before the others");
    };
    context.cancellation.cancel();
    for flood in block_on(floods) {
        assert_eq!(flood.expect_err("cancelled").kind(), ExecutorErrorKind::Cancelled);
    }
}

/// The variable that a test finds in a host of its own.
const HOST: &str = "ISOLANE_EXECUTORS_TEST_HOST";

/// Runs a test of this module in a host of its own, which a shell prepares. Elsewhere that test does nothing.
fn in_host(preparation: &str, test: &str) {
    let output = Command::new("sh")
        .args(["-c", &format!("{preparation} && exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().expect("its own path"))
        .args(["--exact", &format!("local_calls::{test}")])
        .env(HOST, "1")
        .output()
        .expect("it starts");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && shown.contains("1 passed"), "{shown}");
}

#[test]
fn a_host_that_waits_for_every_process_gets_results() {
    in_host("true", "results_of_processes_that_others_waited_for");
}

#[test]
fn results_of_processes_that_others_waited_for() {
    if std::env::var_os(HOST).is_none() {
        return;
    }
    std::thread::spawn(|| {
        loop {
            // There is none, or it was one of this library.
            let _ = rustix::process::wait(rustix::process::WaitOptions::empty());
        }
    });
    let mut codes = HashSet::new();
    let started = Instant::now();
    // The first caller knows how the process ended, and the other does not.
    while !codes.contains(&None) {
        assert!(started.elapsed() < CEILING, "{codes:?}");
        let result = block_on(run(&shell(), "echo done; exit 3"));
        assert_eq!((result.stdout.as_str(), result.stderr.as_str()), ("done\n", ""));
        codes.insert(result.exit_code);
    }
    assert!(codes.is_subset(&HashSet::from([None, Some(3)])), "{codes:?}");
    let late = shell().with_timeout(Duration::from_millis(1500));
    let result = block_on(run(&late, "echo begun; sleep 60"));
    assert_eq!(result.stderr, "sh execution timed out after 1500ms\n");
}

#[test]
fn a_relative_path_of_an_interpreter_is_the_callers() {
    let folder = tempfile::tempdir().expect("a folder");
    symlink("/bin/sh", folder.path().join("own-shell")).expect("a link");
    in_host(&format!("cd '{}'", folder.path().display()), "interpreter_of_a_relative_path");
}

#[test]
fn interpreter_of_a_relative_path() {
    if std::env::var_os(HOST).is_none() {
        return;
    }
    let executor = shell().with_interpreter("./own-shell");
    assert_eq!(block_on(run(&executor, "echo $((6 * 7))")).stdout, "42\n");
}

#[test]
fn a_link_in_place_of_the_working_folder_is_removed() {
    let code = "folder=$(pwd); cd /; rmdir \"$folder\"; ln -s /etc \"$folder\"; echo \"$folder\"";
    let result = block_on(run(&shell(), code));
    assert_eq!((result.stderr.as_str(), result.output_files.len()), ("", 0));
    let folder = result.stdout.trim_end();
    assert!(folder.contains("isolane-exec-"), "{folder}");
    assert!(std::fs::symlink_metadata(folder).is_err(), "{folder} is left");
}

#[test]
fn no_option_has_a_nul() {
    for executor in [
        shell().with_interpreter("s\0h"),
        shell().with_args(["-\0s"]),
        shell().with_env("A", "b\0"),
    ] {
        let context = InvocationContext::default();
        let call = executor.execute_code(&context, CodeExecutionInput::default());
        let error = block_on(call).expect_err("misuse");
        assert_eq!(error.kind(), ExecutorErrorKind::BadInput, "{executor:?}");
    }
}
