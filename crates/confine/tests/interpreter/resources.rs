//! Programs that take more than they may: processes, memory, room, time.

use super::stage::Stage;
use std::{fs, path::Path, time::Duration};

pub(crate) fn all() -> Vec<(&'static str, fn())> {
    vec![
        ("forks_end_at_the_limit", forks_end_at_the_limit),
        ("threads_end_at_the_limit", threads_end_at_the_limit),
        ("memory_of_a_process_is_limited", memory_of_a_process_is_limited),
        ("sockets_hold_less_than_the_memory", sockets_hold_less_than_the_memory),
        ("sockets_count_in_a_group", sockets_count_in_a_group),
        ("memory_of_a_group_is_limited", memory_of_a_group_is_limited),
        ("both_folders_are_limited", both_folders_are_limited),
        ("names_are_limited", names_are_limited),
        ("parts_of_seconds_count_as_whole_ones", parts_of_seconds_count_as_whole_ones),
        ("time_that_is_used_up_ends_it", time_that_is_used_up_ends_it),
        ("interpreters_work", interpreters_work),
    ]
}

const FORKS: &str = "
import os, signal, time
children = []
try:
    while len(children) < 10000:
        child = os.fork()
        if child == 0:
            time.sleep(1000)
        children.append(child)
except OSError as error:
    print(len(children), error.errno)
";

fn forks_end_at_the_limit() {
    let mut stage = Stage::new();
    stage.processes = 20;
    let ended = stage.python(FORKS);
    // The first process counts.
    assert_eq!((&*ended.stdout, &*ended.stderr), ("19 11\n", ""));
}

fn threads_end_at_the_limit() {
    let mut stage = Stage::new();
    stage.processes = 20;
    let ended = stage.python(
        "
import os, threading
event, count = threading.Event(), 0
try:
    for count in range(10000):
        threading.Thread(target=event.wait, daemon=True).start()
except RuntimeError:
    print(count, flush=True)
os._exit(0)
",
    );
    assert_eq!((&*ended.stdout, &*ended.stderr), ("19\n", ""));
}

fn memory_of_a_process_is_limited() {
    let code = "
import os
def take(count):
    try:
        return len(bytearray(count << 20)) >> 20
    except MemoryError:
        return 'none'
print(take(32), take(128), flush=True)
child = os.fork()
if child == 0:
    print(take(32), take(128), flush=True)
    os._exit(0)
os.waitpid(child, 0)
";
    let mut stage = Stage::new();
    stage.memory_bytes = 64 << 20;
    let ended = stage.python(code);
    assert_eq!((&*ended.stdout, &*ended.stderr), ("32 none\n32 none\n", ""));
}

const SOCKETS: &str = "
import socket
block, held, pairs = bytes(1 << 16), 0, []
def fill(end):
    global held
    end.setblocking(False)
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
    except OSError:
        pass
    try:
        while True:
            held += end.send(block)
    except OSError:
        pass
def take():
    while True:
        pairs.append(socket.socketpair())
        for end in pairs[-1]:
            fill(end)
try:
    take()
except OSError:
    pass
print(len(pairs) > 10, held >> 20, flush=True)
";

/// The MiB that sockets held, and whether there were more than a few.
fn held(told: &str) -> Option<u64> {
    told.strip_prefix("True ")?.trim().parse().ok()
}

fn sockets_hold_less_than_the_memory() {
    // Each pair is filled both ways, and as many as are open may be under way in others.
    for (memory_bytes, most) in [(64 << 20, 64), (256 << 20, 128)] {
        let ended = Stage { memory_bytes, ..Stage::new() }.python(SOCKETS);
        assert!(held(&ended.stdout).is_some_and(|held| held < most), "{ended:?}");
    }
}

fn sockets_count_in_a_group() {
    let Some(stage) = Stage::in_group(96 << 20) else { return };
    let ended = stage.python(SOCKETS);
    let is_killed = ended.code == Some(128 + 9);
    assert!(is_killed || held(&ended.stdout).is_some_and(|held| held < 96), "{ended:?}");
}

fn memory_of_a_group_is_limited() {
    let Some(stage) = Stage::in_group(96 << 20) else { return };
    let folder = stage.group.as_ref().expect("a group").members();
    // Each has less than the limit, all have more.
    let code = "
import os, time
children, (reader, writer) = [], os.pipe()
for _ in range(4):
    child = os.fork()
    if child == 0:
        block = bytearray(40 << 20)
        os.write(writer, b'x')
        time.sleep(1000)
    children.append(child)
killed = os.waitpid(-1, 0)[1]
print(killed, flush=True)
";
    let ended = stage.python(code);
    // The system kills any of them; the first one does not live to tell if it is that.
    let is_killed = ended.stdout == "9\n" || ended.code == Some(128 + 9);
    assert!(is_killed, "{ended:?}");
    assert!(ended.prepared.in_group);
    assert!(!Path::new(&folder).exists(), "the group is removed");
}

fn both_folders_are_limited() {
    let code = "
import os
for folder in '/work', '/tmp':
    count = 0
    try:
        with open(folder + '/file', 'wb', buffering=0) as file:
            while True:
                count += file.write(bytes(1 << 20))
    except OSError as error:
        print(count >> 20, error.errno)
";
    let ended = Stage::new().python(code);
    assert_eq!((&*ended.stdout, &*ended.stderr), ("64 28\n64 28\n", ""));
}

fn names_are_limited() {
    let code = "
count = 0
try:
    while True:
        open('/work/%d' % count, 'w').close()
        count += 1
except OSError as error:
    print(count < 20000, error.errno)
";
    let ended = Stage::new().python(code);
    assert_eq!((&*ended.stdout, &*ended.stderr), ("True 28\n", ""));
}

fn parts_of_seconds_count_as_whole_ones() {
    for (milliseconds, expected) in [(1000, "1\n"), (1001, "2\n"), (2500, "3\n")] {
        let cpu = Some(Duration::from_millis(milliseconds));
        let ended = Stage { cpu, ..Stage::new() }.run("/bin/sh", &["-c", "ulimit -t"], "");
        assert_eq!(ended.stdout, expected);
    }
}

fn time_that_is_used_up_ends_it() {
    let mut stage = Stage::new();
    stage.cpu = Some(Duration::from_secs(1));
    let ended = stage.run("/bin/sh", &["-s"], "while :; do :; done");
    assert_eq!(ended.code, Some(128 + libc::SIGXCPU));
}

/// Threads, subprocesses, libraries, files, event loops.
fn interpreters_work() {
    let code = "
import asyncio, ctypes, hashlib, json, mmap, multiprocessing.pool, os, sqlite3, subprocess, tempfile, threading, zoneinfo
print(subprocess.run(['sh', '-c', 'echo $((6 * 7)) | cat'], capture_output=True, text=True).stdout.strip())
thread = threading.Thread(target=print, args=('thread',)); thread.start(); thread.join()
async def main():
    process = await asyncio.create_subprocess_exec('echo', 'loop', stdout=subprocess.PIPE)
    print((await process.communicate())[0].decode().strip())
asyncio.run(main())
base = sqlite3.connect('/work/base'); base.execute('pragma journal_mode=wal')
print(base.execute('select 6 * 7').fetchone()[0])
with tempfile.TemporaryFile() as file:
    file.write(bytes(4096)); file.flush()
    print(len(mmap.mmap(file.fileno(), 0)))
print(multiprocessing.get_context('fork').Pool(2).map(abs, [-1, -2]))
print(len(os.urandom(8)), os.getcwd(), os.path.expanduser('~'))
";
    let ended = Stage::new().python(code);
    let expected = "42\nthread\nloop\n42\n4096\n[1, 2]\n8 /work /work\n";
    assert_eq!((&*ended.stdout, &*ended.stderr), (expected, ""));
    if fs::exists("/usr/bin/node").is_ok_and(|there| there) {
        let code = "
const { execFileSync } = require('child_process');
const { Worker } = require('worker_threads');
console.log(execFileSync('echo', ['child']).toString().trim());
new Worker('require(\"worker_threads\").parentPort.postMessage(42)', { eval: true }).on('message', (m) => {
  require('fs').writeFileSync('file', 'x'.repeat(m));
  console.log(require('fs').readFileSync('file').length);
});
";
        let ended = Stage::new().run("/usr/bin/node", &["-"], code);
        assert_eq!((&*ended.stdout, &*ended.stderr, ended.code), ("child\n42\n", "", Some(0)));
    }
}
