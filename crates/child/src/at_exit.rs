//! The end of this process while calls go on.
//!
//! In: groups of processes and working folders, as they begin and end. Out: when this process exits (its main function
//! returns, or somebody calls `exit`), the groups are killed and the folders removed. A process that a signal ends does not
//! come here. A forked child leaves everything to its parent.

#![expect(unsafe_code, reason = "a function is registered for the exit of the process")]

use std::{
    collections::{HashMap, HashSet},
    ffi::c_int,
    io,
    path::{Path, PathBuf},
    ptr,
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicPtr, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, getpid, kill_process_group};

/// How often something is tried at the exit: the lock is held for a moment only, and a killed program may write to its
/// folder for a moment.
const TRIES: u32 = 40;

/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// Removes a folder and everything in it. Called at the exit of the process, where it must not panic.
pub type Remove = fn(&Path) -> io::Result<()>;

/// All that is left if a process exits now.
struct Left {
    /// The process whose it is.
    process: Pid,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    groups: HashSet<Pid>,
    folders: HashMap<PathBuf, Remove>,
    /// Whether the process exits.
    is_over: bool,
}

/// Null, or leaked. A forked child makes another one: a thread of its parent may hold the lock of this one.
static LEFT: AtomicPtr<Left> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C" {
    fn atexit(act: extern "C" fn()) -> c_int;
}

/// A group of processes has begun.
pub fn group_began(group: Pid) {
    let mut inside = inside();
    if inside.is_over {
        let _ = kill_process_group(group, Signal::KILL);
    } else {
        inside.groups.insert(group);
    }
}

/// A group is about to be killed.
pub fn group_ends(group: Pid) {
    inside().groups.remove(&group);
}

/// A working folder was made, which that function removes.
pub fn folder_began(folder: &Path, remove: Remove) {
    inside().folders.insert(folder.to_owned(), remove);
}

/// A working folder was removed, or is to stay.
pub fn folder_ended(folder: &Path) {
    inside().folders.remove(folder);
}

fn inside() -> MutexGuard<'static, Inside> {
    // A panic under the lock leaves nothing half done.
    left().inside.lock().unwrap_or_else(PoisonError::into_inner)
}

fn left() -> &'static Left {
    let process = getpid();
    loop {
        let known = LEFT.load(Ordering::Acquire);
        // SAFETY: it is null, or was leaked below.
        if let Some(left) = unsafe { known.as_ref() }
            && left.process == process
        {
            return left;
        }
        let fresh = Box::into_raw(Box::new(Left { process, inside: Mutex::default() }));
        let put = LEFT.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire);
        if put.is_err() {
            // SAFETY: nobody else has seen it.
            drop(unsafe { Box::from_raw(fresh) });
        } else if known.is_null() {
            // SAFETY: the function needs nothing that is gone at the exit. If the system refuses it, nothing is ended then.
            let _ = unsafe { atexit(end) };
        }
    }
}

/// Kills the groups and removes the folders. It must not panic.
extern "C" fn end() {
    // SAFETY: it is null, or was leaked.
    let left = unsafe { LEFT.load(Ordering::Acquire).as_ref() };
    let Some(left) = left.filter(|left| left.process == getpid()) else { return };
    let folders = {
        let Some(mut inside) = lock_soon(&left.inside) else { return };
        inside.is_over = true;
        for group in inside.groups.drain() {
            let _ = kill_process_group(group, Signal::KILL);
        }
        std::mem::take(&mut inside.folders)
    };
    for (folder, remove) in folders {
        for _ in 0..TRIES {
            if remove(&folder).is_ok() || !folder.exists() {
                break;
            }
            thread::sleep(PAUSE);
        }
    }
}

/// The lock, unless somebody who was stopped holds it.
fn lock_soon<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..TRIES {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
        }
    }
    None
}
