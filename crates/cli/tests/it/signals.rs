//! Signals, and output that nobody reads: the run ends, with the exit code of its reason.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::command;

/// A run that has printed a line and computes for ever.
fn computing() -> (Child, BufReader<std::process::ChildStdout>) {
    computing_by(command(&["run", "-"]))
}

/// The command, started by a shell after these words.
fn behind(words: &str, args: &[&str]) -> Command {
    let program = command(args);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{words}; exec \"$0\" \"$@\"")]).arg(program.get_program());
    shell.args(program.get_args());
    shell
}

fn computing_by(mut command: Command) -> (Child, BufReader<std::process::ChildStdout>) {
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
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let (mut child, stdout) = computing();
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(code));
        drop(stdout);
    }
}

#[test]
fn a_run_outlives_its_terminal_where_it_was_told_to() {
    let (mut child, mut stdout) = computing_by(behind("trap '' HUP", &["run", "-"]));
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::HUP).expect("it runs");
    // More lines than a pipe holds: it goes on.
    assert_eq!(stdout.by_ref().lines().take(100_000).count(), 100_000);
    kill_process(pid, Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
}

#[test]
fn a_file_that_may_not_grow_is_a_failure() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("processes.db").display().to_string();
    let mut command = behind("ulimit -f 0", &["serve", "--port", "0", "--database", &file]);
    let output = command.output().expect("it starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code().is_some(), "no signal ends it: {message}");
    assert!(message.starts_with(&format!("error: database '{file}' cannot be ")), "{message}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_report_that_cannot_be_written_is_a_failure() {
    for arguments in [&["check", "-", "--json"][..], &["doctor", "--json"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let output = command(arguments).stdout(full).output().expect("it starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = "error: stdout: No space left on device (os error 28)\n";
        assert_eq!((output.status.code(), message.as_str()), (Some(70), expected));
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

#[test]
fn a_socket_that_its_reader_leaves_with_lines_in_it_ends_the_run() {
    let (reader, stdout) = UnixStream::pair().expect("a pair of sockets");
    let mut command = command(&["run", "-"]);
    command.stdin(Stdio::piped()).stdout(OwnedFd::from(stdout)).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // It holds the other end, too.
    drop(command);
    let source = b"for (;;) console.log('more');";
    child.stdin.take().expect("piped").write_all(source).expect("it reads");
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    drop(reader);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(141), 0));
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
