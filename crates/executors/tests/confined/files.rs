//! Files: those that a program gets, those that it leaves, and those that it may read.

use super::support::{Test, execute, file, open_folder, program, python, run, shell, this_program};
use isolane_executors::{CodeExecutionInput, ExecutorErrorKind};
use std::{fs, process::Command};

pub(crate) const ALL: &[Test] = &[
    ("input_files_are_its_own", input_files_are_its_own),
    ("only_regular_files_are_output_files", only_regular_files_are_output_files),
    ("names_of_any_kind_are_collected", names_of_any_kind_are_collected),
    ("modes_hide_no_output_file", modes_hide_no_output_file),
    ("it_reads_what_it_is_shown", it_reads_what_it_is_shown),
    ("an_environment_of_python_is_seen_alone", an_environment_of_python_is_seen_alone),
    ("a_shim_is_followed_by_asking", a_shim_is_followed_by_asking),
    ("a_program_in_a_home_folder_is_seen_alone", a_program_in_a_home_folder_is_seen_alone),
    ("more_files_than_fit_are_not_staged", more_files_than_fit_are_not_staged),
];

fn input_files_are_its_own() {
    let mut input = CodeExecutionInput::new("cat a; echo b >> a; cat ./-z; pwd");
    input.input_files = vec![file("a", b"text\n"), file("-z", b"z\n"), file("same", b"same")];
    let result = execute(&shell(), input).expect("it starts");
    assert_eq!((&*result.stdout, &*result.stderr), ("text\nz\n/work\n", ""));
    let names: Vec<_> = result.output_files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["a"], "the changed one");
    assert_eq!(result.output_files[0].content, b"text\nb\n");
}

fn only_regular_files_are_output_files() {
    let folder = open_folder();
    let secret = folder.path().join("secret");
    fs::write(&secret, "secret").expect("a file");
    let code = format!(
        "ln -s {secret} link; ln -s /etc/passwd passwd; ln -s /proc/self/environ environ; ln -s . self
mkfifo fifo; mkdir folder; echo x > folder/inner; echo x > .hidden; echo x > regular; ln regular hard
python3 -c 'import socket' 2>/dev/null; ls -a",
        secret = secret.display()
    );
    let result = run(&shell(), &code);
    let names: Vec<_> = result.output_files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["hard", "regular"], "{result:?}");
    // A link in place of an input file.
    let mut input = CodeExecutionInput::new(format!("ln -sf {} a", secret.display()));
    input.input_files = vec![file("a", b"text")];
    assert_eq!(execute(&shell(), input).expect("it starts").output_files, []);
}

fn names_of_any_kind_are_collected() {
    let long = "n".repeat(255);
    let code = format!(
        "import os
open('{long}', 'w').close()
try:
    open('{long}n', 'w')
except OSError as error:
    print(error.errno)
open(b'\\xff\\xfe', 'w').write('x')
open('line\\nbreak', 'w').close()
open('back\\\\slash', 'w').close()
"
    );
    let result = run(&python(), &code);
    assert_eq!(result.stdout, "36\n", "{result:?}");
    let names: Vec<_> = result.output_files.iter().map(|file| file.name.as_str()).collect();
    assert!(names.contains(&&*long) && names.contains(&"line\nbreak"), "{names:?}");
    assert_eq!(result.stderr.matches("left out (").count(), 2, "{}", result.stderr);
}

fn modes_hide_no_output_file() {
    let result = run(&shell(), "echo x > file; chmod 0 file; chmod 0 .");
    assert_eq!(result.output_files.len(), 1, "{result:?}");
    assert_eq!(result.output_files[0].content, b"x\n");
}

fn it_reads_what_it_is_shown() {
    let folder = open_folder();
    let [shown, hidden] = ["shown", "hidden"].map(|name| folder.path().join(name));
    fs::create_dir(&shown).expect("a folder");
    fs::write(shown.join("file"), "text").expect("a file");
    fs::write(&hidden, "text").expect("a file");
    let code = format!(
        "cat {0}/file; echo x > {0}/file; cat {1}; ls {2}",
        shown.display(),
        hidden.display(),
        folder.path().display()
    );
    let result = run(&shell().with_readable(&shown), &code);
    assert_eq!(result.stdout, "textshown\n");
    assert_eq!(result.stderr.lines().count(), 2, "{}", result.stderr);
    assert_eq!(fs::read(shown.join("file")).expect("it is there"), b"text");
}

fn an_environment_of_python_is_seen_alone() {
    let folder = open_folder();
    let prefix = folder.path().join("environment");
    let made = Command::new("/usr/bin/python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(&prefix)
        .output()
        .expect("python");
    if !made.status.success() {
        println!("this machine has no venv");
        return;
    }
    fs::write(folder.path().join("beside"), "secret").expect("a file");
    let executor = python().with_interpreter(prefix.join("bin/python").to_str().expect("UTF-8"));
    let code = format!(
        "import os, sys, json\nprint(sys.prefix)\nprint(os.listdir('{}'))",
        folder.path().display()
    );
    let result = run(&executor, &code);
    let expected = format!("{}\n['environment']\n", prefix.display());
    assert_eq!((&*result.stdout, &*result.stderr), (&*expected, ""));
}

fn a_shim_is_followed_by_asking() {
    let folder = open_folder();
    let shim = folder.path().join("python3");
    program(&shim, "#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n");
    let executor = python().with_interpreter(shim.to_str().expect("UTF-8"));
    let result = run(&executor, "import sys; print(sys.executable)");
    assert_eq!((&*result.stdout, &*result.stderr), ("/usr/bin/python3\n", ""));
}

/// The word that starts this program as a host whose home is a folder of the test.
pub(crate) const AT_HOME: &str = "--at-home";

fn a_program_in_a_home_folder_is_seen_alone() {
    // Its prefix would be all of the home folder.
    let folder = open_folder();
    let home = folder.path();
    let bin = home.join("bin");
    fs::create_dir(&bin).expect("a folder");
    fs::copy("/bin/sh", bin.join("own")).expect("a copy");
    for beside in [bin.join("beside"), home.join("beside")] {
        fs::write(beside, "secret").expect("a file");
    }
    let host = Command::new(this_program()).arg(AT_HOME).env("HOME", home).output();
    let host = host.expect("it starts");
    let home = home.display();
    let expected = format!("{home}:\nbin\n\n{home}/bin:\nown\n");
    assert_eq!(String::from_utf8_lossy(&host.stdout), expected, "{host:?}");
}

/// Runs a program that lies in the home folder.
pub(crate) fn at_home() {
    let home = std::env::var("HOME").expect("UTF-8");
    let executor = shell().with_interpreter(format!("{home}/bin/own"));
    print!("{}", run(&executor, &format!("ls {home} {home}/bin")).stdout);
}

fn more_files_than_fit_are_not_staged() {
    let mut input = CodeExecutionInput::new("echo on");
    input.input_files = (0..20_000).map(|number| file(&number.to_string(), b"")).collect();
    let error = execute(&shell(), input).expect_err("there is no room for them");
    assert_eq!(error.kind(), ExecutorErrorKind::Staging, "{error}");
    assert!(error.message().starts_with("cannot prepare the working folder: "), "{error}");
    let mut input = CodeExecutionInput::new("echo on");
    input.input_files = vec![file("large", &vec![0; 65 << 20])];
    let error = execute(&shell(), input).expect_err("there is no room for it");
    assert_eq!(error.kind(), ExecutorErrorKind::Staging, "{error}");
}
