//! Ends: of a program, of those that it leaves, of its launcher and its host.

use super::stage::{Running, Stage};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};
use std::{
    io::{BufRead, BufReader, Read},
    os::{fd::AsRawFd, unix::process::ExitStatusExt},
    process::{Command, Stdio},
    time::Duration,
};

/// How long anything may take to end.
const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) fn all() -> Vec<(&'static str, fn())> {
    vec![
        ("exit_codes_are_the_programs", exit_codes_are_the_programs),
        ("nothing_outlives_it", nothing_outlives_it),
        ("it_ends_with_its_launcher", it_ends_with_its_launcher),
        ("it_ends_with_its_host", it_ends_with_its_host),
        (
            "it_ends_with_its_host_of_which_a_fork_lives_on",
            it_ends_with_its_host_of_which_a_fork_lives_on,
        ),
        ("its_folder_is_open_to_the_host", its_folder_is_open_to_the_host),
    ]
}

fn exit_codes_are_the_programs() {
    for (code, expected) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -6 $$", 134)]
    {
        let ended = Stage::new().run("/bin/sh", &["-s"], code);
        assert_eq!(ended.code, Some(expected), "{code}");
    }
}

/// It forks twice, leaves its session and its output, and would write for ever.
const OUTLIVING: &str = "
import os, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open('/dev/null', os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        os.write(writer, b'x')
        while True:
            with open('/work/mark', 'a') as file:
                file.write('x')
    os._exit(0)
os.read(reader, 1)
print('left')
";

fn nothing_outlives_it() {
    let ended = Stage::new().python(OUTLIVING);
    assert_eq!((&*ended.stdout, ended.code), ("left\n", Some(0)));
    // The stage has seen that the first process of the namespace is gone, and with it all others.
    let length = || {
        let opened = rustix::fs::statat(&ended.prepared.work, "mark", rustix::fs::AtFlags::empty());
        opened.map_or(0, |status| status.st_size)
    };
    let before = length();
    std::thread::yield_now();
    assert_eq!(length(), before);
}

const ENDLESS: &str = "echo started; while :; do sleep 1000; done";

fn it_ends_with_its_launcher() {
    let mut running = Stage::new().start("/bin/sh", &["-c", ENDLESS]);
    let mut line = [0; 8];
    running.launcher.stdout.as_mut().expect("a pipe").read_exact(&mut line).expect("its start");
    running.launcher.kill().expect("it is killed");
    assert!(running.prepared.wait(PATIENCE), "all end");
    assert_eq!(running.launcher.wait().expect("its end").signal(), Some(libc::SIGKILL));
}

fn it_ends_with_its_host() {
    let mut running = Stage::new().start("/bin/sh", &["-c", ENDLESS]);
    let mut line = [0; 8];
    running.launcher.stdout.as_mut().expect("a pipe").read_exact(&mut line).expect("its start");
    // As the system closes it when the host is gone.
    drop(running.lifeline);
    assert!(running.prepared.wait(PATIENCE), "all end");
    running.launcher.wait().expect("the launcher, too");
}

/// The word that starts this program as a host that is to be killed.
pub(crate) const HOST: &str = "--host";

/// A host that prints the number of its program's first process, and that of a process which holds all that a fork would.
pub(crate) fn host() {
    let Running { launcher: _launcher, prepared, lifeline, .. } =
        Stage::new().start("/bin/sh", &["-c", ENDLESS]);
    rustix::io::fcntl_setfd(&lifeline, rustix::io::FdFlags::empty()).expect("inherited");
    let mut fork = Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let about = format!("/proc/self/fdinfo/{}", prepared.init.as_raw_fd());
    let about = std::fs::read_to_string(about).expect("its number");
    let init = about.lines().find_map(|line| line.strip_prefix("Pid:")).expect("its number");
    println!("{} {}", init.trim(), fork.id());
    fork.wait().expect("its end");
}

fn it_ends_with_its_host_of_which_a_fork_lives_on() {
    let mut host = Command::new(std::env::current_exe().expect("this program"))
        .arg(HOST)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a host");
    let mut line = String::new();
    BufReader::new(host.stdout.take().expect("a pipe")).read_line(&mut line).expect("two numbers");
    let mut numbers = line
        .split_whitespace()
        .map(|number| Pid::from_raw(number.parse().expect("a number")).expect("a process"));
    let (init, fork) = (numbers.next().expect("init"), numbers.next().expect("a fork"));
    let handle = pidfd_open(init, PidfdFlags::empty()).expect("it runs");
    host.kill().expect("it is killed");
    host.wait().expect("its end");
    let most = Timespec::try_from(PATIENCE).expect("a time");
    let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&most));
    kill_process(fork, Signal::KILL).expect("the fork lives on");
    assert_eq!(ended, Ok(1), "all end");
}

fn its_folder_is_open_to_the_host() {
    use rustix::fs::{Mode, OFlags, openat};
    let code = "echo text > file; chmod 0 file; chmod 0 .";
    let ended = Stage::new().run("/bin/sh", &["-s"], code);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW;
    let file = openat(&ended.prepared.work, "file", flags, Mode::empty()).expect("it is readable");
    let mut text = String::new();
    std::fs::File::from(file).read_to_string(&mut text).expect("its text");
    assert_eq!(text, "text\n");
}
