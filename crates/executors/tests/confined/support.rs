//! Calls of the executor under test.

use futures::executor::block_on;
use isolane_executors::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, ConfinedCodeExecutor, ExecFile,
    ExecutorError, ExecutorErrorKind, InvocationContext,
};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// How long anything may take that is not meant to wait.
pub(crate) const CEILING: Duration = Duration::from_mins(2);

pub(crate) type Test = (&'static str, fn());

/// An executor whose launcher is this program.
pub(crate) fn python() -> ConfinedCodeExecutor {
    let executor = ConfinedCodeExecutor::new().with_worker(this_program());
    // A user may not have the interpreter that `PATH` names.
    if is_root() { executor } else { executor.with_interpreter("/usr/bin/python3") }
}

pub(crate) fn shell() -> ConfinedCodeExecutor {
    python().with_interpreter("sh").with_args(["-s"])
}

pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().expect("this program")
}

pub(crate) fn execute(
    executor: &ConfinedCodeExecutor,
    input: CodeExecutionInput,
) -> Result<CodeExecutionResult, ExecutorError> {
    block_on(executor.execute_code(&InvocationContext::default(), input))
}

pub(crate) fn run(executor: &ConfinedCodeExecutor, code: &str) -> CodeExecutionResult {
    execute(executor, CodeExecutionInput::new(code)).expect("it starts")
}

/// The result of code that never ends, and what is told of its time. Its last act before that prints something: with a
/// time limit in which it does not come so far, it gets a longer one.
pub(crate) fn late(executor: &ConfinedCodeExecutor, code: &str) -> (CodeExecutionResult, String) {
    let mut milliseconds = 1_500;
    loop {
        let limited = executor.clone().with_timeout(Duration::from_millis(milliseconds));
        let result = run(&limited, code);
        if !result.stdout.is_empty() || milliseconds > 100_000 {
            return (result, format!("execution timed out after {milliseconds}ms\n"));
        }
        milliseconds *= 3;
    }
}

pub(crate) fn error(executor: &ConfinedCodeExecutor) -> (ExecutorErrorKind, String) {
    let error = execute(executor, CodeExecutionInput::new("")).expect_err("it does not start");
    (error.kind(), error.message().to_owned())
}

pub(crate) fn file(name: &str, content: &[u8]) -> ExecFile {
    ExecFile { name: name.to_owned(), content: content.to_vec(), mime_type: None }
}

/// A folder that anybody may enter.
pub(crate) fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("its mode");
    folder
}

pub(crate) fn program(path: &Path, text: &str) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode");
}

/// Waits until no process with that text in its command line is there.
pub(crate) fn expect_gone(mark: &str) {
    let started = Instant::now();
    while is_there(mark) {
        assert!(started.elapsed() < CEILING, "{mark} lives on");
        std::thread::yield_now();
    }
}

/// Whether a process with that text in its command line is there.
pub(crate) fn is_there(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").map_while(Result::ok);
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(mark))
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs these tests as nobody, if this is root that may become so.
pub(crate) fn as_nobody_too(filter: Option<&str>) {
    let nobody = |program: &Path| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        command
    };
    let becomes = || nobody(Path::new("true")).status().is_ok_and(|status| status.success());
    if !is_root() || !becomes() {
        return;
    }
    let folder = open_folder();
    let copy = folder.path().join("tests");
    fs::copy(this_program(), &copy).expect("a copy");
    println!("as nobody:");
    let mut command = nobody(&copy);
    command.args(filter).current_dir("/").env("HOME", "/nonexistent").env("PATH", "/usr/bin:/bin");
    assert!(command.status().expect("it runs").success());
}
