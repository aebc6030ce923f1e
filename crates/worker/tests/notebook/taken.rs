//! The rights that a confined kernel has lost, act by act, and those that it needs.
//!
//! Each row of [`TAKEN`] names something that is taken, and the acts that would succeed if it were not. Acts that anybody may
//! do on any machine are done by a kernel with the rights of this process as well, or a row would show nothing.

use std::{collections::BTreeMap, os::unix::fs::PermissionsExt as _};

use isolane_notebook::{Isolation, Notebook, NotebookOptions, PyOptions};
use serde_json::json;

use crate::{
    stage::{Stage, open_folder, value},
    support::{has_python, open, python},
};

/// Something that is taken, the error of each act that tries it, and the acts.
type Row = (&'static str, &'static str, &'static [&'static str]);

const TAKEN: &[Row] = &[
    (
        "files of the host",
        "ENOENT",
        &["read_secret", "list_folder_of_secret", "read_shadow", "list_var"],
    ),
    (
        "the machine's devices and settings",
        "ENOENT",
        &["read_settings_of_machine", "open_terminal", "open_memory_of_machine"],
    ),
    (
        "the host's variables and descriptors",
        "ENOENT",
        &["read_secret_variable", "find_descriptors"],
    ),
    (
        "other processes, by name",
        "ENOENT",
        &[
            "find_host",
            "find_other_processes",
            "read_variables_of_host",
            "read_memory_of_host",
            "list_descriptors_of_host",
        ],
    ),
    (
        "the launcher's memory, variables and descriptors",
        "EACCES",
        &["read_variables_of_parent", "list_descriptors_of_parent", "read_memory_of_parent"],
    ),
    ("other processes, by signal", "ESRCH", &["signal_host", "open_host"]),
    ("tracing", "EPERM", &["trace_host", "trace_parent", "take_descriptor"]),
    (
        "the network, and sockets of others",
        "EPERM",
        &[
            "connect_to_host",
            "send_to_host",
            "connect_by_path",
            "connect_by_name",
            "make_socket_of_6",
            "make_netlink_socket",
            "make_raw_socket",
            "make_packet_socket",
            "make_vsock",
        ],
    ),
    ("files beside those that it is shown", "ENOENT", &["write_beside"]),
    (
        "writing outside of its own folders",
        "EROFS",
        &[
            "write_shown",
            "write_beside_shown",
            "write_root",
            "write_system",
            "write_interpreter",
            "write_settings",
            "write_kernel_settings",
        ],
    ),
    ("devices of its own", "EACCES", &["make_device"]),
    (
        "files that give their owner's rights to others",
        "EPERM",
        &[
            "set_uid",
            "set_gid",
            "set_uid_of_open",
            "set_uid_without_link",
            "make_set_uid",
            "make_set_uid_node",
        ],
    ),
    ("the call that opens by a mode in memory", "ENOSYS", &["make_set_uid_by_openat2"]),
    (
        "mounts and namespaces",
        "EPERM",
        &[
            "mount",
            "unmount",
            "open_tree",
            "open_file_system",
            "change_root",
            "new_user",
            "new_mounts",
            "new_network",
            "enter_namespace",
        ],
    ),
    ("privileges", "EPERM", &["become_root", "join_groups"]),
    (
        "other ways into the kernel of the system",
        "EPERM",
        &["uring", "keys", "programs_in_kernel", "faults", "counters", "restart"],
    ),
    ("higher limits", "EPERM", &["raise_processes", "raise_descriptors", "dump_core"]),
];

/// Acts that anybody may do on any machine. They change nothing but files of the stage.
const ANYBODY: &[&str] = &[
    "read_secret",
    "list_folder_of_secret",
    "list_var",
    "find_descriptors",
    "find_host",
    "find_other_processes",
    "signal_host",
    "open_host",
    "read_variables_of_parent",
    "connect_to_host",
    "send_to_host",
    "connect_by_path",
    "write_beside",
    "write_shown",
    "write_beside_shown",
    "set_uid",
    "set_gid",
    "set_uid_of_open",
    "make_set_uid",
    "make_set_uid_node",
    "make_set_uid_by_openat2",
];

/// Acts of the network that a kernel with `network` may do.
const NETWORK: &[&str] =
    &["connect_to_host", "send_to_host", "make_socket_of_6", "make_netlink_socket"];

/// Compares the outcomes of the acts with the table, but for those that are expected to be done.
fn compare(told: &BTreeMap<String, String>, done: &[&str]) {
    let wrong: Vec<String> = TAKEN
        .iter()
        .flat_map(|(what, error, acts)| acts.iter().map(move |act| (*what, *act, *error)))
        .filter_map(|(what, act, error)| {
            let expected = if done.contains(&act) { "done" } else { error };
            let found = told.get(act).map(String::as_str);
            (found != Some(expected)).then(|| format!("{act}: {found:?}, not {expected}: {what}"))
        })
        .collect();
    assert_eq!(wrong, [""; 0]);
}

fn acts() -> Vec<&'static str> {
    TAKEN.iter().flat_map(|(_, _, acts)| acts.iter().copied()).collect()
}

#[test]
fn everything_is_taken() {
    if !has_python() {
        return;
    }
    let stage = Stage::new();
    compare(&stage.outcomes(stage.python(), &acts()), &[]);
    // Rights that anybody has need no confinement.
    let open = PyOptions { isolation: Isolation::None, ..python() };
    let outside = stage.outcomes(open, ANYBODY);
    let taken_before: Vec<_> = ANYBODY.iter().filter(|act| outside[**act] != "done").collect();
    assert_eq!(taken_before, [&""; 0], "{outside:?}");
}

#[test]
fn the_network_is_all_that_comes_with_it() {
    if !has_python() {
        return;
    }
    let stage = Stage::new();
    let told = stage.outcomes(PyOptions { network: true, ..stage.python() }, &acts());
    compare(&told, NETWORK);
    stage.listener.accept().expect("a connection of the kernel");
}

#[test]
fn what_a_kernel_needs_is_there() {
    if !has_python() {
        return;
    }
    let stage = Stage::new();
    let notebook = open(stage.python());
    let code = format!(
        r"
import asyncio, ctypes, json, multiprocessing, os, pwd, sqlite3, ssl, subprocess, tempfile, threading, time, zoneinfo
from multiprocessing import shared_memory
SHOWN = {}
def work(queue):
    queue.put(os.getpid())
async def output():
    process = await asyncio.create_subprocess_exec('echo', 'text', stdout=subprocess.PIPE)
    return (await process.communicate())[0].decode()
fork = multiprocessing.get_context('fork')
queue = fork.Queue()
child = fork.Process(target=work, args=(queue,))
child.start()
numbers = []
thread = threading.Thread(target=numbers.append, args=(1,))
thread.start()
thread.join()
with open('file', 'w') as file:
    file.write('text')
with tempfile.TemporaryFile() as file:
    file.write(b'x')
with open('/tmp/file', 'w') as file:
    file.write('text')
memory = shared_memory.SharedMemory(create=True, size=4096)
memory.buf[0] = 7
memory.close()
memory.unlink()
with open('/dev/null', 'w') as null:
    null.write('x')
with fork.Pool(2) as pool:
    squares = pool.map(abs, [-1, -2])
{{
    'shown': open(SHOWN).read(),
    'home': [os.path.expanduser('~'), tempfile.gettempdir(), os.getcwd()],
    'user': pwd.getpwuid(os.getuid()).pw_dir,
    'child': queue.get() == child.pid,
    'pool': squares,
    'threads': numbers,
    'shell': subprocess.run('echo $((6 * 7))', shell=True, capture_output=True, text=True).stdout,
    'awaited': await output(),
    'zone': str(zoneinfo.ZoneInfo('UTC')),
    'random': len(os.urandom(4)),
    'database': sqlite3.connect('data.db').execute('select 1').fetchone(),
    'files': sorted(os.listdir('.')),
}}",
        json!(stage.shown)
    );
    let expected = json!({
        "shown": "text",
        "home": ["/isolane", "/isolane", "/isolane"],
        "user": "/isolane",
        "child": true,
        "pool": [1, 2],
        "threads": [1],
        "shell": "42\n",
        "awaited": "text\n",
        "zone": "UTC",
        "random": 4,
        "database": [1],
        "files": ["data.db", "file"],
    });
    assert_eq!(value(&notebook, &code), expected);
}

#[test]
fn its_variables_are_ours_and_those_that_it_was_given() {
    if !has_python() {
        return;
    }
    let env = [("A", "1"), ("LANG", "C")].map(|(name, text)| (name.into(), text.into())).into();
    let options = NotebookOptions { py: Some(python()), env, ..NotebookOptions::default() };
    let notebook = Notebook::new(options).expect("valid options");
    let code = "import os\nnames = {'HOME', 'TMPDIR', 'PATH', 'LANG', 'TZ', 'MPLBACKEND', 'LC_CTYPE', 'A'}\n\
                [sorted(set(os.environ) - names), os.environ['A'], os.environ['LANG'], os.environ['MPLBACKEND']]";
    assert_eq!(value(&notebook, code), json!([[], "1", "C", "agg"]));
}

#[test]
fn folders_can_be_shown_written_to_and_begun_in() {
    if !has_python() {
        return;
    }
    let folder = open_folder();
    let [project, out, packages] =
        ["project", "project/out", "packages"].map(|name| folder.path().join(name));
    for path in [&project, &out, &packages] {
        std::fs::create_dir(path).expect("a folder");
    }
    // If this is root, a kernel is nobody.
    std::fs::set_permissions(&out, std::fs::Permissions::from_mode(0o777)).expect("its mode");
    std::fs::write(project.join("helper.py"), "word = 'helper'").expect("a file");
    std::fs::write(packages.join("package.py"), "word = 'package'").expect("a file");
    let notebook = open(PyOptions {
        working_folder: Some(project.clone()),
        writable: vec![out.clone()],
        path: vec![packages, folder.path().join("nowhere")],
        ..python()
    });
    let code = "import os, helper, package\n\
                open('out/made', 'w').write('made')\n\
                try:\n    open('made', 'w')\n    refused = None\nexcept OSError as error:\n    refused = error.errno\n\
                [helper.word, package.word, os.getcwd(), os.path.expanduser('~'), refused]";
    let expected = json!(["helper", "package", project, "/isolane", 30]);
    let told = value(&notebook, code);
    // Landlock and the mount both refuse it.
    assert!([13, 30].contains(&told[4].as_i64().expect("a number")), "{told}");
    assert_eq!(told.as_array().expect("a list")[..4], expected.as_array().expect("a list")[..4]);
    assert_eq!(std::fs::read_to_string(out.join("made")).expect("a file"), "made");
}
