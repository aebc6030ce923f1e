//! The abilities of a machine.

use super::support::{Test, error, open_folder, program, python, run, shell, this_program};
use futures::executor::block_on;
use isolane::Confinement;
use isolane_executors::{ExecutorErrorKind, MemoryLimit};
use std::{process::Command, thread};

pub(crate) const ALL: &[Test] = &[
    ("the_confinement_is_told", the_confinement_is_told),
    ("a_machine_without_namespaces_is_unsupported", a_machine_without_namespaces_is_unsupported),
    ("what_is_missing_is_told", what_is_missing_is_told),
];

fn the_confinement_is_told() {
    let told = block_on(python().confinement()).expect("it is told");
    assert_eq!(told.items, Confinement::ALL);
    // As the machine has it.
    let group = isolane_confine::interpreter::ControlGroup::new(1 << 26);
    let expected = if group.is_some() { MemoryLimit::Group } else { MemoryLimit::Process };
    assert_eq!(told.memory, expected);
}

fn a_machine_without_namespaces_is_unsupported() {
    // As root of a namespace, without any right in it, on a machine that lets nobody make a namespace.
    let refusing = "echo 0 > /proc/sys/user/max_user_namespaces";
    let drop = "setpriv --bounding-set=-all --inh-caps=-all";
    let trial = Command::new("unshare")
        .args(["-Ur", "sh", "-c", &format!("{refusing} && {drop} true")])
        .output()
        .expect("unshare");
    if !trial.status.success() {
        println!("this machine cannot play a poorer one");
        return;
    }
    let folder = open_folder();
    let launcher = folder.path().join("launcher");
    let text = format!(
        "#!/bin/sh\nPATH=/usr/bin:/bin\nexec unshare -Ur sh -c '{refusing}; exec {drop} \"$0\" \"$@\"' {} \"$@\"\n",
        this_program().display()
    );
    program(&launcher, &text);
    let executor = shell().with_worker(&launcher);
    let message = "this machine cannot keep a program from the file system; see 'isolane doctor'";
    // Also where the launcher has ended before its answer is read.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let expected = (ExecutorErrorKind::Unsupported, message.to_owned());
                    assert_eq!(error(&executor), expected);
                }
            });
        }
    });
    // Nothing runs without it, whatever is required.
    let executor = executor.with_required(["network"]);
    assert_eq!(error(&executor), (ExecutorErrorKind::Unsupported, message.to_owned()));
    let told = block_on(executor.confinement()).expect("it is told").items;
    assert!(!told.file_system && !told.network && told.system_calls && told.privileges, "{told:?}");
}

fn what_is_missing_is_told() {
    let (kind, message) = error(&shell().with_interpreter("no-such-interpreter"));
    assert_eq!(kind, ExecutorErrorKind::Spawn);
    assert!(message.starts_with("cannot start \"no-such-interpreter\""), "{message}");
    let (kind, message) = error(&shell().with_worker("/nowhere"));
    assert_eq!(kind, ExecutorErrorKind::Spawn);
    assert!(message.contains("isolane-worker"), "{message}");
    // Another program, which knows nothing of the launcher's words.
    let (kind, message) = error(&shell().with_worker("/bin/true"));
    assert_eq!(kind, ExecutorErrorKind::Spawn, "{message}");
    // A program that the system cannot start.
    let folder = open_folder();
    let broken = folder.path().join("broken");
    program(&broken, "#!/nowhere/at/all\n");
    let (kind, message) = error(&shell().with_interpreter(broken.to_str().expect("UTF-8")));
    assert_eq!(kind, ExecutorErrorKind::Spawn, "{message}");
    assert_eq!(run(&shell(), "echo on").stdout, "on\n");
}
