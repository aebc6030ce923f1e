//! Signals, and output that nobody reads: the run ends, with the exit code of its reason.

use std::{
    io::{BufRead, BufReader, Write},
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
fn output_that_nobody_reads_ends_the_run() {
    let (mut child, stdout) = computing();
    drop(stdout);
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}
