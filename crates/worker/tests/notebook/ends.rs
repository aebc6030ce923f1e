//! The end of a confined kernel: nothing of it outlives the notebook or its host.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio, id},
    thread::yield_now,
    time::{Duration, Instant},
};

use isolane_notebook::{Args, CellInput, ExecuteOptions, Language, PyOptions};

use crate::support::{has_python, open, python, run};

/// How long anything may take that is not meant to wait.
const CEILING: Duration = Duration::from_mins(2);

/// The variable with the mark of a host that is to be killed.
const HOST: &str = "ISOLANE_TESTED_HOST";

/// A cell that leaves processes behind, one of them in a session of its own.
fn leaving(mark: &str) -> String {
    format!(
        "import subprocess\nfor _ in range(2):\n    \
         subprocess.Popen(['sh', '-c', 'sleep 1000; : {mark}'], start_new_session=True)"
    )
}

fn mark(of: &str) -> String {
    format!("isolane-{of}-{}", id())
}

/// Whether a process with that text in its command line is there.
fn is_there(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").map_while(Result::ok);
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(mark))
}

fn expect_gone(mark: &str) {
    let started = Instant::now();
    while is_there(mark) {
        assert!(started.elapsed() < CEILING, "{mark} lives on");
        yield_now();
    }
}

#[test]
fn its_processes_end_with_it() {
    if !has_python() {
        return;
    }
    // By a reset, by its own end, by a kill, with the notebook.
    let notebook = open(PyOptions { interrupt_grace_ms: 0, ..python() });
    let [reset, own, kill, close] = ["reset", "own", "kill", "close"].map(mark);
    let leave = |mark: &str| {
        let result = run(&notebook, &[(Language::Py, &leaving(mark))]);
        assert!(!result.is_error, "{}", result.text);
        assert!(is_there(mark));
    };
    leave(&reset);
    notebook.reset(Language::Py).expect("it is open").wait().expect("it is reset");
    expect_gone(&reset);
    leave(&own);
    let result = run(&notebook, &[(Language::Py, "import os\nos._exit(3)")]);
    assert!(result.text.contains("Python ended unexpectedly (exit code 3)"), "{}", result.text);
    expect_gone(&own);
    leave(&kill);
    let code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass";
    let mut input = CellInput::new(Language::Py, code);
    input.timeout = Some(1);
    let args = Args { cells: vec![input] };
    let result = notebook.execute(args, ExecuteOptions::default()).expect("valid arguments").wait();
    assert!(result.text.contains("did not react and was killed"), "{}", result.text);
    expect_gone(&kill);
    leave(&close);
    notebook.close().wait().expect("it is closed");
    expect_gone(&close);
}

#[test]
fn a_signal_that_ends_it_is_told() {
    if !has_python() {
        return;
    }
    let notebook = open(python());
    let code = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)";
    let result = run(&notebook, &[(Language::Py, code)]);
    let text = "Python ended unexpectedly (signal 11); its state was lost.";
    assert!(result.text.contains(text), "{}", result.text);
}

/// The host of the test below: this program once more.
#[test]
fn host() {
    let Some(mark) = env::var_os(HOST) else { return };
    let notebook = open(python());
    let leaving = leaving(mark.to_str().expect("UTF-8"));
    let result = run(&notebook, &[(Language::Py, &leaving)]);
    assert!(!result.is_error, "{}", result.text);
    println!("\nready");
    run(&notebook, &[(Language::Py, "import time\ntime.sleep(500)")]);
}

#[test]
fn a_host_that_is_killed_leaves_nothing() {
    if !has_python() {
        return;
    }
    let mark = mark("host");
    let mut host = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", "ends::host", "--nocapture"])
        .env(HOST, &mark)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let told = BufReader::new(host.stdout.take().expect("a pipe")).lines();
    assert!(told.map_while(Result::ok).any(|line| line == "ready"), "the host has left processes");
    assert!(is_there(&mark));
    host.kill().expect("it runs");
    host.wait().expect("its end");
    expect_gone(&mark);
}
