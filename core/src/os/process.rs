//! Values that exist once per process, also after a fork.
//!
//! A forked child has the memory of its parent and none of its threads: their work stays half done there, and a lock
//! that one of them held stays locked. So nothing from before the fork is used after it. In: a [`Process`] noted when
//! something is made. Out: whether it belongs to this process. [`PerProcess`] is a static that is made anew in a child.
#![expect(
    unsafe_code,
    reason = "follows a pointer that is published once per process; asks the system"
)]

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicPtr, AtomicU32, Ordering},
    },
};

#[cfg(target_os = "linux")]
use super::process_number::process_number;
/// Elsewhere the C library or the system keeps the number at hand.
#[cfg(not(target_os = "linux"))]
use std::process::id as process_number;

/// The process in which something was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

/// The process whose children count as the same process, or zero.
static CARRIED: AtomicU32 = AtomicU32::new(0);

/// From here on this process and all its forks count as one: everything that it has made stays valid in them. For a
/// process of one thread, whose forks find nothing half done and no lock held.
#[cfg(unix)]
pub(crate) fn carry_on() {
    CARRIED.store(std::process::id(), Ordering::Relaxed);
}

/// An unpredictable number, different on each call, also in processes after [`carry_on`].
pub(crate) fn random() -> u64 {
    // The standard library draws its keys once, so all forks would have the same ones.
    if CARRIED.load(Ordering::Relaxed) != 0
        && let Some(drawn) = drawn()
    {
        return drawn;
    }
    RandomState::new().build_hasher().finish()
}

/// A number drawn from the system, if it has a source.
#[cfg(target_os = "linux")]
fn drawn() -> Option<u64> {
    let mut bytes = [0; 8];
    let drawn = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    (drawn == Ok(bytes.len())).then(|| u64::from_le_bytes(bytes))
}

#[cfg(target_os = "macos")]
fn drawn() -> Option<u64> {
    let mut bytes = [0_u8; 8];
    // SAFETY: writes those eight bytes.
    let drawn = unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), bytes.len()) };
    (drawn == 0).then(|| u64::from_le_bytes(bytes))
}

/// On these systems no process is forked.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn drawn() -> Option<u64> {
    None
}

/// The number of the calling process, as `std::process::id` has it. On Linux it costs no system call.
#[must_use]
pub fn process_id() -> u32 {
    process_number()
}

impl Process {
    /// The calling process. On Linux it costs no system call.
    pub(crate) fn current() -> Self {
        match CARRIED.load(Ordering::Relaxed) {
            0 => Self(process_number()),
            carried => Self(carried),
        }
    }

    /// Whether it is the calling process, and not one that it was forked from.
    pub(crate) fn is_current(self) -> bool {
        self == Self::current()
    }
}

/// A value that each process makes when it first needs it. It is never dropped.
///
/// A process shares one pointer with its children, so that no fork sees a half-made state: a child sees its parent's
/// value, complete, and does not use it.
pub(crate) struct PerProcess<T: 'static> {
    newest: AtomicPtr<Made<T>>,
}

struct Made<T> {
    process: Process,
    value: OnceLock<T>,
}

impl<T: Send + Sync> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { newest: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The value of this process.
    pub(crate) fn get_or_init(&'static self, make: impl FnOnce() -> T) -> &'static T {
        self.made().value.get_or_init(make)
    }

    fn made(&self) -> &'static Made<T> {
        let process = Process::current();
        let mut known = self.newest.load(Ordering::Acquire);
        loop {
            // SAFETY: null, or a box that was leaked below, complete before it was published.
            let found = unsafe { known.as_ref() }.filter(|made: &&Made<T>| made.process == process);
            if let Some(made) = found {
                return made;
            }
            let new = Box::into_raw(Box::new(Made { process, value: OnceLock::new() }));
            match self.newest.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: leaked for good, and shared from here on.
                Ok(_) => return unsafe { &*new },
                Err(other) => {
                    // SAFETY: made above, and no other thread has seen it.
                    drop(unsafe { Box::from_raw(new) });
                    known = other;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_makes_it_once() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        let seen: Vec<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|number| scope.spawn(move || *VALUE.get_or_init(|| number))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(seen.iter().all(|value| *value == seen[0]), "{seen:?}");
    }

    #[test]
    fn what_another_process_made_is_left_alone() {
        static VALUE: PerProcess<&str> = PerProcess::new();
        let value = OnceLock::from("its parent's");
        let parents = Box::new(Made { process: Process(0), value });
        VALUE.newest.store(Box::into_raw(parents), Ordering::Release);
        assert_eq!(*VALUE.get_or_init(|| "its own"), "its own");
        assert_eq!(*VALUE.get_or_init(|| "another"), "its own");
    }
}
