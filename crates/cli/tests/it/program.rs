//! The program under test.
//!
//! In: arguments, stdin. Out: exit code, stdout, stderr.

use std::{
    io::{ErrorKind, Write},
    path::Path,
    process::{Command, Stdio},
};

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    command.args(arguments).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Runs the program in a folder.
pub(crate) fn isolane(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = command(arguments).current_dir(folder).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Runs code from stdin.
pub(crate) fn code(source: &str, flags: &[&str]) -> (Option<i32>, String, String) {
    let mut command = command(&["run", "-"]);
    command.args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // A program that ends at its flags reads nothing.
    match child.stdin.take().expect("piped").write_all(source.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written.expect("it reads"),
    }
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}
