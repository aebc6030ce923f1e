//! Programs in confinement, from inside: each act of a program that somebody else has taken over, and its end.
//!
//! This executable is the tests and, started by them, the launcher. The tests run as this user and, if that is root, once
//! more as nobody, which has to enter a user namespace before it may do anything else.
//!
//! Each row of [`TAKEN`] names what is taken from a program and the acts that would succeed if it were not. `double.c` has
//! the acts. Where the machine lets anybody do an act, the double does it outside as well, or it would show nothing.

mod ends;
mod resources;
mod stage;

use isolane_confine::Confinement;
use stage::{Double, Stage};
use std::{collections::HashMap, process::Command};

/// Something that is taken, the error of each act that tries it, and the acts.
type Row = (&'static str, i32, &'static [&'static str]);

const TAKEN: &[Row] = &[
    // What, the error, the acts.
    ("files of the caller", libc::ENOENT, &["open_secret", "open_shadow", "open_root_home"]),
    (
        "the machine's devices and settings",
        libc::ENOENT,
        &["open_disk", "open_sys", "parent_of_root"],
    ),
    ("the terminal", libc::ENOENT, &["terminal"]),
    ("input of a terminal", libc::ENOTTY, &["push_input"]),
    ("inherited descriptors", libc::ENOENT, &["other_descriptors"]),
    (
        "the launcher's memory, environment, files and descriptors",
        libc::EACCES,
        &["open_init_memory", "open_init_environment", "open_init_root", "open_init_descriptors"],
    ),
    ("other processes, by name", libc::ENOENT, &["find_outside"]),
    ("other processes, by signal", libc::ESRCH, &["signal_outside"]),
    ("the end of init", libc::ECHILD, &["signal_init"]),
    (
        "tracing",
        libc::EPERM,
        &[
            "trace_me",
            "trace_outside",
            "trace_init",
            "read_memory_of_init",
            "compare",
            "take_descriptor",
        ],
    ),
    (
        "writing outside of its two folders",
        libc::EACCES,
        &[
            "write_root",
            "write_system",
            "write_device_folder",
            "write_shown",
            "write_own_memory",
            "write_kernel",
        ],
    ),
    ("devices of its own", libc::EACCES, &["make_device"]),
    (
        "sockets",
        libc::EPERM,
        &[
            "inet",
            "inet6",
            "local",
            "netlink",
            "vsock",
            "packet",
            "bluetooth",
            "crypto",
            "pair_of_datagrams",
            "rename_pair",
        ],
    ),
    (
        "namespaces",
        libc::EPERM,
        &["new_user", "new_mounts", "new_network", "clone_user", "enter_namespace"],
    ),
    ("namespaces, by flags in memory", libc::ENOSYS, &["clone_by_memory"]),
    (
        "mounts",
        libc::EPERM,
        &[
            "mount_it",
            "unmount_it",
            "pivot",
            "change_root",
            "open_tree_it",
            "open_file_system",
            "mount_attributes",
            "open_by_handle",
        ],
    ),
    ("keys", libc::EPERM, &["keys", "add_key", "request_key"]),
    (
        "other ways into the kernel",
        libc::EPERM,
        &[
            "bpf",
            "uring",
            "perf",
            "faults",
            "splice_memory",
            "load_module",
            "own_filter",
            "watch_all",
            "quota",
        ],
    ),
    ("calls that nobody has checked", libc::ENOSYS, &["unknown_call"]),
    ("objects of System V", libc::EPERM, &["shared_memory", "messages", "semaphores"]),
    ("the machine", libc::EPERM, &["restart", "read_log", "set_clock", "swap", "domain_name"]),
    (
        "privileges",
        libc::EPERM,
        &[
            "become_root",
            "join_groups",
            "may_gain",
            "set_user_bits",
            "no_random_addresses",
            "move_own_program",
        ],
    ),
    ("a higher limit on memory", libc::EPERM, &["raise_memory"]),
    ("higher limits", libc::EPERM, &["raise_processes", "raise_core"]),
    (
        "memory beyond its limit",
        libc::ENOMEM,
        &[
            "private_memory",
            "later_private_memory",
            "grown_memory",
            "unnamed_shared_memory",
            "stack_memory",
        ],
    ),
    ("memory that is no file's", libc::EPERM, &["memory_file"]),
    (
        "memory of sockets and pipes",
        libc::EPERM,
        &["grow_sending", "grow_receiving", "force_sending", "force_receiving", "grow_pipe"],
    ),
    ("memory of a device", libc::EACCES, &["zero_memory"]),
    (
        "nothing that it needs",
        0,
        &[
            "pair",
            "write_work",
            "write_null",
            "read_shown",
            "some_memory",
            "commands_of_files",
            "options_of_sockets",
        ],
    ),
];

/// Acts that anybody may do on any machine. They change nothing.
const ANYBODY: &[&str] = &[
    "open_secret",
    "find_outside",
    "signal_outside",
    "push_input",
    "other_descriptors",
    "trace_me",
    "inet",
    "local",
    "pair_of_datagrams",
    "take_descriptor",
    "shared_memory",
    "memory_file",
    "unnamed_shared_memory",
    "private_memory",
    "later_private_memory",
    "grown_memory",
    "stack_memory",
    "zero_memory",
    "grow_sending",
    "grow_receiving",
    "grow_pipe",
    "write_own_memory",
    "own_filter",
    "splice_memory",
    "enter_namespace",
    "mount_attributes",
    "may_gain",
    "parent_of_root",
    "open_sys",
];

fn main() {
    if isolane_confine::interpreter::is_asked() {
        isolane_confine::interpreter::main();
    }
    if std::env::args().nth(1).is_some_and(|word| word == ends::HOST) {
        return ends::host();
    }
    let filter = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let mut count = 0;
    for (name, test) in all() {
        if filter.as_ref().is_none_or(|filter| name.contains(filter.as_str())) {
            test();
            count += 1;
            println!("test {name} ... ok");
        }
    }
    assert!(filter.is_some() || count > 0, "tests");
    stage::as_nobody_too(filter.as_deref());
}

fn all() -> Vec<(&'static str, fn())> {
    let own: [(&str, fn()); 7] = [
        ("its_namespaces_are_its_own", its_namespaces_are_its_own),
        ("everything_is_taken", everything_is_taken),
        ("everything_is_taken_in_a_group", everything_is_taken_in_a_group),
        ("its_environment_is_what_it_was_given", its_environment_is_what_it_was_given),
        ("it_knows_its_user", it_knows_its_user),
        ("a_set_user_bit_gives_nothing", a_set_user_bit_gives_nothing),
        ("calls_of_other_forms_end_it", calls_of_other_forms_end_it),
    ];
    own.into_iter().chain(resources::all()).chain(ends::all()).collect()
}

fn everything_is_taken() {
    // A child inherits this one. Whether there are others depends on how the tests were started.
    let _inherited = rustix::io::dup(std::io::stderr()).expect("a descriptor");
    let double = Double::new();
    let ended = Stage::of(&double).run(&double.path, &double.words(), "");
    assert_eq!(ended.prepared.confinement, Confinement::ALL, "{ended:?}");
    compare(&ended.stdout, |_| true);
    // Rights that anybody has need no confinement.
    let outside = Command::new(&double.path)
        .args(double.words())
        .args(ANYBODY)
        .env("SHOWN", &double.shown)
        .output()
        .expect("it runs outside, too");
    let outside = outcomes(&String::from_utf8_lossy(&outside.stdout));
    for (what, error, acts) in TAKEN {
        for act in acts.iter().filter(|act| ANYBODY.contains(act)) {
            // A container may have taken some before.
            let is_taken_before = stage::in_container() && outside[*act] == libc::EPERM.to_string();
            assert!(is_taken_before || outside[*act] != error.to_string(), "{act} outside: {what}");
        }
    }
}

fn everything_is_taken_in_a_group() {
    let Some(mut stage) = Stage::in_group(64 << 20) else { return };
    let double = Double::new();
    stage.show(&double);
    let ended = stage.run(&double.path, &double.words(), "");
    assert!(ended.prepared.in_group);
    // All memory is counted there, so any may be asked for.
    compare(&ended.stdout, |what| !what.contains("memory"));
}

fn compare(told: &str, is_compared: fn(&str) -> bool) {
    let told = outcomes(told);
    let wrong: Vec<_> = TAKEN
        .iter()
        .filter(|(what, ..)| is_compared(what))
        .flat_map(|(what, error, acts)| {
            acts.iter().map(move |act| (*what, *act, error.to_string()))
        })
        .filter(|(_, act, error)| told.get(*act) != Some(error))
        .map(|(what, act, error)| format!("{act}: {:?}, not {error}: {what}", told.get(act)))
        .collect();
    assert_eq!(wrong, [""; 0]);
    let known: Vec<_> = TAKEN.iter().flat_map(|(_, _, acts)| acts.iter()).collect();
    let others = ["dump_core", "old_call"];
    let unknown: Vec<_> = told
        .keys()
        .filter(|act| !known.contains(&&act.as_str()) && !others.contains(&act.as_str()))
        .collect();
    assert_eq!(unknown, [""; 0], "each act is in the table");
    assert_eq!(told["dump_core"], "signal 11", "it leaves no dump");
}

/// The outcome of each act.
fn outcomes(told: &str) -> HashMap<String, String> {
    told.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(act, outcome)| (act.to_owned(), outcome.to_owned()))
        .collect()
}

/// Other layers hide these as well, so nothing else would show that one is missing.
fn its_namespaces_are_its_own() {
    let code = "cd /proc/self/ns; for name in cgroup ipc mnt net pid user uts; do readlink $name; done; hostname";
    let ended = Stage::new().run("/bin/sh", &["-s"], code);
    let told: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(told.len(), 8, "{ended:?}");
    for name in &told[..7] {
        let (kind, _) = name.split_once(':').expect("a kind and a number");
        let outside = std::fs::read_link(format!("/proc/self/ns/{kind}")).expect("a namespace");
        assert_ne!(outside.to_str(), Some(*name));
    }
    assert_eq!(told[7], "isolane");
    let devices = Stage::new().run("/bin/cat", &["/proc/net/dev"], "").stdout;
    assert_eq!(
        devices.lines().count(),
        3,
        "two lines of a head, and a loopback that is down: {devices}"
    );
}

fn its_environment_is_what_it_was_given() {
    let ended = Stage::new().run("/usr/bin/env", &[], "");
    let mut variables: Vec<_> = ended.stdout.lines().collect();
    variables.sort_unstable();
    assert_eq!(variables, ["HOME=/work", "PATH=/usr/bin:/bin", "SHOWN=", "TMPDIR=/tmp"]);
}

fn it_knows_its_user() {
    let code = "
import getpass, grp, os, pwd
user = pwd.getpwuid(os.getuid())
print(user.pw_name, user.pw_dir, user.pw_shell, grp.getgrgid(os.getgid()).gr_name, getpass.getuser())
";
    let ended = Stage::new().python(code);
    let expected = "nobody /work /bin/sh nogroup nobody\n";
    assert_eq!((&*ended.stdout, &*ended.stderr), (expected, ""));
    // A file of the caller's takes the place.
    let mut stage = Stage::new();
    stage.readable.push("/etc/passwd".into());
    let ended = stage.run("/bin/cat", &["/etc/passwd"], "");
    let own = std::fs::read_to_string("/etc/passwd").expect("it is there");
    assert_eq!(ended.stdout, own);
}

fn a_set_user_bit_gives_nothing() {
    let double = Double::new();
    if !double.give_to_root() {
        return;
    }
    let outside = stage::nobody(&double.path).arg("user").output().expect("it runs outside");
    assert_eq!(String::from_utf8_lossy(&outside.stdout), "0\n", "the bit counts outside");
    let ended = Stage::of(&double).run(&double.path, &["user"], "");
    assert_eq!(ended.stdout, "65534\n");
}

fn calls_of_other_forms_end_it() {
    if cfg!(target_arch = "x86_64") {
        let double = Double::new();
        let mut words = double.words();
        words.push("old_call");
        let ended = Stage::of(&double).run(&double.path, &words, "");
        // On a kernel without that way it is an invalid instruction.
        let ways = ["old_call signal 31\n", "old_call signal 11\n"];
        assert!(ways.contains(&&*ended.stdout), "{}", ended.stdout);
    }
}
