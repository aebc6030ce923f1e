//! `isolane repl` over pipes: plain lines, no prompts, no colours.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::program::command;

fn repl(folder: &TempDir, flags: &[&str], lines: &str) -> (Option<i32>, String, String) {
    let mut command = command(&["repl"]);
    command.args(flags).current_dir(folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("it reads");
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn cells_go_on_with_what_earlier_ones_declared() {
    let folder = TempDir::new().expect("a folder");
    let lines = "const rows = [1, 2]\nconsole.log('%d rows', rows.length)\nrows.map((row) => row * tax)\nundefined\n";
    let (code, stdout, stderr) = repl(&folder, &["--global", "tax=2"], lines);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "2 rows\n[ 2, 4 ]\n", ""));
}

#[test]
fn a_cell_may_have_several_lines() {
    let folder = TempDir::new().expect("a folder");
    let lines = "function f(x: number) {\n  return `\n${x}`;\n}\n\nf(\n  7\n)\n\n[1,\n";
    let (code, stdout, stderr) = repl(&folder, &[], lines);
    assert_eq!((code, stdout.as_str()), (Some(0), "\n7\n"));
    // The input ends within the last one.
    assert!(stderr.starts_with("link_error  SyntaxError: Expected `]`"), "{stderr}");
}

#[test]
fn an_error_has_the_line_of_its_cell() {
    let folder = TempDir::new().expect("a folder");
    let lines = "function f() { null.x }\n1 1\nf()\n'on'\n";
    let (code, stdout, stderr) = repl(&folder, &[], lines);
    assert_eq!((code, stdout.as_str()), (Some(0), "on\n"));
    let places: Vec<&str> = stderr
        .lines()
        .filter_map(|line| line.split_once("  <cell ").map(|(_, place)| place))
        .collect();
    assert_eq!(places, ["2>:1:2", "1>:1:21"], "{stderr}");
    assert!(stderr.contains("  1 | function f() { null.x }\n"), "{stderr}");
}

#[test]
fn commands_begin_with_a_dot() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("lib.ts"), "const half = (n: number) => n / 2;\n")
        .expect("a file");
    let lines = ".load lib.ts\nlet n = half(5)\nnull.x\n.names\n.save all.ts\n.reset\n.names\ntypeof n\n.5 * 2\n.nothing\n\
                 .load no.ts\n.exit\n'not reached'\n";
    let (code, stdout, stderr) = repl(&folder, &[], lines);
    let names = "const half: function\nlet n: number\n";
    assert_eq!((code, stdout), (Some(0), format!("{names}undefined\n1\n")), "{stderr}");
    let saved = fs::read_to_string(folder.path().join("all.ts")).expect("a file");
    assert_eq!(saved, "const half = (n: number) => n / 2;\n\nlet n = half(5)\n");
    assert!(stderr.contains("there is no command .nothing; .help lists them\n"), "{stderr}");
    assert!(stderr.contains("cannot read no.ts: "), "{stderr}");
}

#[test]
fn ctrl_c_ends_the_cell_and_not_the_session() {
    let mut command = command(&["repl"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    let stdout = child.stdout.take().expect("piped");
    let mut lines = BufReader::new(stdout).lines().map(|line| line.expect("UTF-8"));
    stdin.write_all(b"let n = 1\nn = 2; console.log('begun'); for (;;);\n").expect("it reads");
    assert_eq!(lines.next().as_deref(), Some("begun"));
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    stdin.write_all(b"n\nconsole.log('again'); for (;;);\n").expect("it reads");
    assert_eq!(lines.next().as_deref(), Some("1"));
    assert_eq!(lines.next().as_deref(), Some("again"));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let ended = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(143), "{stderr}");
    assert!(stderr.contains("SIGINT ended the cell"), "{stderr}");
    assert!(stderr.contains("the session is as it was before this cell"), "{stderr}");
}
