//! The limits of a confined kernel: processes, folders, memory.

use isolane_notebook::{Language, MemoryLimit, PyOptions};
use serde_json::json;

use crate::{
    stage::value,
    support::{has_python, open, python, run},
};

#[test]
fn without_processes_there_are_threads_alone() {
    if !has_python() {
        return;
    }
    let notebook = open(PyOptions { processes: false, ..python() });
    let code = r"
import os, subprocess, threading
def error(act):
    try:
        act()
    except OSError as error:
        return type(error).__name__
numbers = []
thread = threading.Thread(target=numbers.append, args=(1,))
thread.start()
thread.join()
[error(os.fork), error(lambda: subprocess.run(['true'])), error(lambda: os.posix_spawn('/bin/true', ['true'], {})), numbers]";
    let refused = "PermissionError";
    assert_eq!(value(&notebook, code), json!([refused, refused, refused, [1]]));
}

#[test]
fn processes_and_threads_are_counted() {
    if !has_python() {
        return;
    }
    let notebook = open(PyOptions { max_processes: 16, ..python() });
    let code = r"
import os, subprocess
children = []
try:
    while len(children) < 100:
        children.append(subprocess.Popen(['sleep', '1000']))
except OSError as error:
    print(type(error).__name__)
for child in children:
    child.kill()
    child.wait()
print(4 < len(children) < 17)";
    assert_eq!(run(&notebook, &[(Language::Py, code)]).text, "BlockingIOError\nTrue");
    // The kernel lives on.
    assert_eq!(run(&notebook, &[(Language::Py, "len(children) > 0")]).text, "True");
}

#[test]
fn its_folders_are_bounded_together() {
    if !has_python() {
        return;
    }
    let notebook = open(PyOptions { scratch_bytes: 4 << 20, ..python() });
    let code = r"
import errno
def write(path, size):
    try:
        with open(path, 'wb') as file:
            file.write(b'x' * size)
        return 'written'
    except OSError as error:
        return errno.errorcode[error.errno]
[write('a', 3 << 20), write('/tmp/a', 3 << 20), write('/dev/shm/b', 3 << 20), write('/tmp/a', 1 << 19)]";
    let full = "ENOSPC";
    assert_eq!(value(&notebook, code), json!(["written", full, full, "written"]));
}

#[test]
fn a_kernel_that_fills_the_memory_of_its_group_is_killed() {
    if !has_python() {
        return;
    }
    let notebook = open(PyOptions { memory_limit_bytes: 192 << 20, ..python() });
    run(&notebook, &[(Language::Py, "1")]);
    let had = notebook.stats().confinement.expect("it is confined");
    if had.memory != MemoryLimit::Group {
        eprintln!("this machine delegates no control group");
        return;
    }
    // Each process is within the limit on its data; files in memory have no other.
    let code = "with open('/tmp/a', 'wb') as file:\n    while True: file.write(b'x' * (1 << 20))";
    let result = run(&notebook, &[(Language::Py, code)]);
    let text = "Python exceeded its memory limit of 192 MiB; its state was lost.";
    assert!(result.text.contains(text), "{}", result.text);
    let error = result.cells[0].error.as_ref().expect("an error");
    assert_eq!(error.name, "MemoryLimit");
    assert_eq!(run(&notebook, &[(Language::Py, "1 + 1")]).text, "2");
}
