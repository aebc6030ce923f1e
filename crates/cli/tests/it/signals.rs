//! Signals, and output that nobody reads: the run ends, with the exit code of its reason.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::command;

/// A run that has printed a line and computes for ever.
fn computing() -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = command(&["run", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let source = b"console.log('begun'); for (;;) console.log('more');";
    child.stdin.take().expect("piped").write_all(source).expect("it reads");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    assert_eq!(line, "begun\n");
    (child, stdout)
}

#[test]
fn a_signal_ends_the_run_with_its_own_code() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (mut child, stdout) = computing();
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(code));
        drop(stdout);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_value_that_cannot_be_written_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let mut command = command(&["run", "-"]);
    command.stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("piped").write_all(b"export default 1").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(70), "{message}");
    assert!(message.contains("stdout: "), "{message}");
}

#[test]
fn a_signal_ends_a_run_that_waits_for_its_code() {
    let mut command = command(&["run", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    let stdin = child.stdin.take();
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let status = child.wait().expect("it ends");
    // Before it handles signals, the system ends it, as shells tell by the same code.
    let by_system = std::os::unix::process::ExitStatusExt::signal(&status);
    assert!(status.code() == Some(143) || by_system == Some(15), "{status:?}");
    drop(stdin);
}

#[test]
fn a_value_that_nobody_reads_ends_quietly() {
    let mut command = command(&["run", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    drop(child.stdout.take());
    child.stdin.take().expect("piped").write_all(b"export default 1").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(141), 0));
}

#[test]
fn output_that_nobody_reads_ends_the_run() {
    let (mut child, stdout) = computing();
    drop(stdout);
    assert_eq!(child.wait().expect("it ends").code(), Some(141));
}

/// A run whose output nobody reads, though its reader is there. It says on stderr when its code begins.
fn unread(flags: &[&str], source: &[u8]) -> Child {
    let mut command = command(&["run", "-"]);
    command.args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("piped").write_all(source).expect("it reads");
    child
}

#[test]
fn a_reader_that_reads_nothing_holds_up_no_end() {
    const FLOOD: &[u8] = b"console.error('begun'); for (;;) console.log('a'.repeat(1000));";
    for isolation in ["thread", "process"] {
        let place = ["--isolation", isolation];
        let mut child = unread(&[&place[..], &["--timeout", "500ms"]].concat(), FLOOD);
        // Its output stays open, and is not read; the reason stands on stderr all the same.
        let mut stderr = String::new();
        let reader = child.stderr.as_mut().expect("piped");
        reader.read_to_string(&mut stderr).expect("UTF-8");
        assert_eq!(child.wait().expect("it ends").code(), Some(124), "{isolation}");
        assert!(stderr.contains("\nterminated  Timeout: "), "{isolation}: {stderr}");

        let mut child = unread(&place, FLOOD);
        let mut line = String::new();
        let stderr = child.stderr.as_mut().expect("piped");
        BufReader::new(stderr).read_line(&mut line).expect("a line");
        assert_eq!(line, "begun\n");
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(143), "{isolation}");
    }
}

#[test]
fn a_signal_ends_a_program_whose_value_nobody_reads() {
    let source = b"console.error('begun'); export default 'a'.repeat(900_000)";
    for flags in [&[][..], &["--json"]] {
        let mut child = unread(flags, source);
        // The first bytes are there, so the rest of them waits.
        let mut first = [0];
        let stdout = child.stdout.as_mut().expect("piped");
        stdout.read_exact(&mut first).expect("a byte");
        kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
    }
}
