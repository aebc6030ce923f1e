//! `isolane doctor` of programs in confinement: its word is that of a program that runs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use isolane_executors::{
    CodeExecutionInput, CodeExecutor, ConfinedCodeExecutor, InvocationContext,
};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::program::{command, isolane};

/// The executable beside the program under test.
fn worker() -> PathBuf {
    Path::new(command(&[]).get_program()).with_file_name("isolane-worker")
}

#[test]
fn doctor_says_of_programs_whether_they_run_confined() {
    let folder = TempDir::new().expect("a folder");
    let doctor = |arguments: &[&str]| isolane(folder.path(), &[&["doctor"], arguments].concat());
    let found: Json = serde_json::from_str(&doctor(&["--json"]).1).expect("JSON");
    let executor = ConfinedCodeExecutor::new().with_interpreter("/bin/sh").with_args(["-s"]);
    let executor = executor.with_worker(worker());
    let input = CodeExecutionInput::new("echo 42");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let ran = runtime.block_on(executor.execute_code(&InvocationContext::default(), input));
    assert_eq!(found["programs"]["ok"], json!(ran.is_ok()), "{found} {ran:?}");
    let expected = i32::from(ran.is_err());
    assert_eq!(doctor(&["--require", "programs"]).0, Some(expected));
}

#[test]
fn doctor_says_that_no_program_runs_confined_where_proc_is_not_mounted() {
    let unshared = |shell: &str, arguments: &[&str]| {
        let mut outside = Command::new("unshare");
        // Without /proc a program does not know its own folder.
        outside.env("ISOLANE_WORKER", worker());
        outside.args(["--user", "--map-root-user", "--mount", "sh", "-c", shell, "sh"]);
        outside.args([command(&[]).get_program()]).args(arguments).output()
    };
    let hidden = "mount -t tmpfs none /proc";
    if !unshared(hidden, &[]).is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this system refuses the namespaces or the mount");
        return;
    }
    let shell = format!("{hidden} && exec \"$@\"");
    let output = unshared(&shell, &["doctor", "--require", "programs"]).expect("it starts");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    let line = "confined programs: no, this machine cannot keep a program from the file system\n";
    assert!(stdout.contains(line), "{stdout}");
    assert_eq!(stderr, "this machine does not offer: programs\n");
}
