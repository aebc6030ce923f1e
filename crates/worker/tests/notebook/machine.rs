//! The abilities of a machine, and what a notebook tells of them.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use futures::executor::block_on;
use isolane_notebook::{Isolation, Language, PyOptions};

use crate::{
    stage::open_folder,
    support::{has_python, open, python, run},
};

#[test]
fn the_confinement_is_told() {
    if !has_python() {
        return;
    }
    let notebook = open(python());
    assert_eq!(notebook.stats().confinement, None);
    block_on(notebook.available()).expect("an answer");
    let asked = notebook.stats().confinement.expect("it was tried");
    run(&notebook, &[(Language::Py, "1")]);
    let had = notebook.stats().confinement.expect("there is a kernel");
    assert_eq!(had, asked);
    assert!(had.items.file_system && had.items.processes && had.items.network, "{had:?}");
    // A kernel without a process of its own keeps what was told.
    notebook.close().wait().expect("it is closed");
    assert_eq!(notebook.stats().confinement, Some(had));

    let notebook = open(PyOptions { network: true, ..python() });
    run(&notebook, &[(Language::Py, "1")]);
    let had = notebook.stats().confinement.expect("there is a kernel");
    assert!(had.items.file_system && !had.items.network, "{had:?}");

    let notebook = open(PyOptions { isolation: Isolation::None, ..python() });
    run(&notebook, &[(Language::Py, "1")]);
    assert_eq!(notebook.stats().confinement, None);
}

#[test]
fn a_machine_without_namespaces_has_no_kernel() {
    if !has_python() {
        return;
    }
    // As root of a namespace, without any right in it, on a machine that lets nobody make a namespace.
    let refusing = "echo 0 > /proc/sys/user/max_user_namespaces";
    let drop = "setpriv --bounding-set=-all --inh-caps=-all";
    let trial = Command::new("unshare")
        .args(["-Ur", "sh", "-c", &format!("{refusing} && {drop} true")])
        .output();
    if !trial.is_ok_and(|trial| trial.status.success()) {
        eprintln!("this machine cannot play a poorer one");
        return;
    }
    let folder = open_folder();
    let launcher = folder.path().join("launcher");
    let text = format!(
        "#!/bin/sh\nPATH=/usr/bin:/bin\nexec unshare -Ur sh -c '{refusing}; exec {drop} \"$0\" \"$@\"' {} \"$@\"\n",
        env!("CARGO_BIN_EXE_isolane-worker")
    );
    fs::write(&launcher, text).expect("a file");
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).expect("its mode");
    let reason = "this machine cannot keep a program from the file system; see 'isolane doctor'";
    // Nothing runs without it, whatever is required.
    for required in [None, Some(Vec::new())] {
        let notebook = open(PyOptions { worker: Some(launcher.clone()), required, ..python() });
        let py = block_on(notebook.available()).expect("an answer").py;
        assert_eq!((py.ok, py.reason.as_deref()), (false, Some(reason)));
        let result = run(&notebook, &[(Language::Py, "1")]);
        let text = format!("Python backend is unavailable: {reason}");
        assert_eq!(result.cells[0].error.as_ref().map(|error| &*error.message), Some(&*text));
        assert!(result.text.starts_with(&text), "{}", result.text);
        let had = notebook.stats().confinement.expect("it was tried").items;
        assert!(!had.file_system && !had.network && had.system_calls, "{had:?}");
    }
}

#[test]
fn what_is_missing_is_the_reason() {
    if !has_python() {
        return;
    }
    let reason = |options: PyOptions| {
        let notebook = open(options);
        let reason = block_on(notebook.available()).expect("an answer").py.reason;
        let text = run(&notebook, &[(Language::Py, "1")]).text;
        assert!(text.starts_with("Python backend is unavailable: "), "{text}");
        reason.expect("a reason")
    };
    let told = reason(PyOptions { worker: Some("/nowhere".into()), ..python() });
    let expected = "confined cells need the executable isolane-worker, and there is none at /nowhere; install isolane again, \
                    or name it with the environment variable ISOLANE_WORKER";
    assert_eq!(told, expected);
    // Another program, which knows nothing of the launcher's words.
    let told = reason(PyOptions { worker: Some("/bin/true".into()), ..python() });
    assert!(told.starts_with("a confined program cannot be launched: "), "{told}");
    let told = reason(PyOptions { readable: vec!["/nowhere/at/all".into()], ..python() });
    assert!(told.starts_with("/nowhere/at/all cannot be shown to a kernel: "), "{told}");
    let told = reason(PyOptions { interpreter: Some("no-such-python".into()), ..python() });
    assert_eq!(told, "no-such-python was not found");
}
