//! A process of these tests that enters the phases and probes from each worker.
//!
//! In: its task, in a variable, and a socket as descriptor 0. Out: lines on that socket. The test starts its own
//! program again to get such a process. With one test in it, that has one thread that waits and one that forks, so each
//! child is as good as a process of one thread.

use super::{inside, probes};
use crate::{Confinement, Ended, launcher, linux::Launched};
use std::{
    fs::File,
    io::{Read, Write},
    os::{
        fd::{FromRawFd, IntoRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Command, Stdio},
};

const TASK: &str = "ISOLANE_STAGE";
const SELF: &str = "tests::stage::inside_of_the_tests";

/// The state of the process before it enters its first phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// An ordinary user, if the tests are root's.
    pub(super) ordinary: bool,
    /// Namespaces are refused.
    pub(super) refused: bool,
}

/// The report of the stage.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) got: Confinement,
    /// The items that this machine has, as found out by other means.
    pub(super) available: Confinement,
    /// Whether the process was root, with root's rights, when it entered.
    pub(super) root: bool,
    /// Whether it could still get new privileges then.
    pub(super) new_privileges: bool,
    pub(super) outcomes: Vec<(String, Outcome)>,
}

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Reached,
    Refused(i32),
    Ended(String),
}

/// Enters the phases and has a worker for each of those probes.
pub(super) fn play(start: Start, wanted: Confinement, names: &[&str]) -> Told {
    let (mine, control) = UnixStream::pair().expect("a pair of sockets");
    let [low, high] = wanted.to_bytes();
    let task = format!(
        "{} {} {low} {high} {}",
        u8::from(start.ordinary),
        u8::from(start.refused),
        names.join(" ")
    );
    let mut stage = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", SELF, "--ignored", "--nocapture", "--test-threads", "1"])
        .env(TASK, task)
        .env("TZ", "AHEAD-1")
        .stdin(OwnedFd::from(control))
        .stdout(Stdio::null())
        .spawn()
        .expect("a process");
    let mut text = String::new();
    (&mine).read_to_string(&mut text).expect("text");
    let status = stage.wait().expect("a child");
    assert!(status.success(), "the stage failed: {status}\n{text}");
    read(&text, names)
}

fn read(text: &str, names: &[&str]) -> Told {
    let mut lines = text.lines();
    let mut numbers = || -> Vec<u8> {
        let line = lines.next().unwrap_or_default();
        line.split(' ').map(|number| number.parse().expect("a number")).collect()
    };
    let confinement =
        |numbers: &[u8]| Confinement::from_bytes([numbers[0], numbers[1]]).expect("known items");
    let (available, got) = (numbers(), numbers());
    let (root, new_privileges) = (available[2] == 1, available[3] == 1);
    let available = confinement(&available);
    let got = confinement(&got);
    let outcomes: Vec<_> = lines
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let name = words.next().expect("a name").to_owned();
            let outcome = match (words.next(), words.next()) {
                (Some("reached"), None) => Outcome::Reached,
                (Some("refused"), Some(error)) => {
                    Outcome::Refused(error.parse().expect("the number of an error"))
                }
                (Some("ended"), Some(how)) => Outcome::Ended(how.to_owned()),
                _ => panic!("{line:?}"),
            };
            (name, outcome)
        })
        .collect();
    let told: Vec<_> = outcomes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(told, names, "every probe is told of:\n{text}");
    Told { got, available, root, new_privileges, outcomes }
}

#[test]
#[ignore = "a process of its own, which the other tests start"]
fn inside_of_the_tests() {
    let task = std::env::var(TASK).expect("started by another test");
    let words: Vec<&str> = task.split_whitespace().collect();
    let number = |place: usize| words[place].parse::<u8>().expect("a number");
    let wanted = Confinement::from_bytes([number(2), number(3)]).expect("known items");
    inside::join_groups();
    if number(1) == 1 {
        inside::refuse_namespaces();
    }
    if number(0) == 1 {
        inside::become_ordinary();
    }
    let probes = probes::prepare(&words[4..]);
    let available = inside::available();
    let [low, high] = available.to_bytes();
    let (root, new) = (inside::is_mighty_root(), inside::has_new_privileges());
    tell(&format!("{low} {high} {} {}\n", u8::from(root), u8::from(new)));
    let code = inside::in_child(|| {
        let launched = launcher(wanted);
        inside::in_child(|| zygote(launched, &probes)).unwrap_or(3)
    });
    assert_eq!(code, Some(0));
}

fn zygote(launched: Launched, probes: &[probes::Probe]) -> i32 {
    let mut zygote = launched.zygote();
    zygote.settle();
    let [low, high] = zygote.confinement().to_bytes();
    tell(&format!("{low} {high}\n"));
    for probe in probes {
        let (mine, workers) = UnixStream::pair().expect("a pair of sockets");
        let status = inside::forked(|| {
            let (worker, socket) = zygote.worker(workers.into()).expect("what was announced");
            let text = match probe.run(&worker) {
                Ok(()) => "reached".to_owned(),
                Err(error) => format!("refused {}", error.raw_os_error().unwrap_or(0)),
            };
            File::from(socket).write_all(text.as_bytes()).expect("a reader");
            0
        });
        let mut text = String::new();
        (&mine).read_to_string(&mut text).expect("text");
        let ended = Ended::from_status(status);
        if ended != Some(Ended::Exited(0)) {
            text = format!("ended {}", format!("{ended:?}").replace(' ', ""));
        }
        tell(&format!("{} {text}\n", probe.name));
    }
    0
}

/// Writes to the socket that is descriptor 0.
fn tell(text: &str) {
    // SAFETY: the descriptor stays open for as long as the process is there.
    let socket = unsafe { File::from_raw_fd(0) };
    (&socket).write_all(text.as_bytes()).expect("the test reads");
    let _ = socket.into_raw_fd();
}
