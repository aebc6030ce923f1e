//! Threads as the system identifies them.
//!
//! In: the calling thread. Out: an identity, with which another thread can lower its priority below all others.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "asks the system"))]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A thread of this process. It must not be used after the thread has ended: the system reuses its number.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    #[cfg(target_os = "linux")]
    number: libc::id_t,
    gave_way: Arc<AtomicBool>,
}

thread_local! {
    static HERE: Thread = Thread {
        #[cfg(target_os = "linux")]
        number: number(),
        gave_way: Arc::default(),
    };
}

/// The system's number of the calling thread. The C library has no function for it before glibc 2.30.
#[cfg(target_os = "linux")]
fn number() -> libc::id_t {
    // SAFETY: takes nothing and cannot fail.
    let number = unsafe { libc::syscall(libc::SYS_gettid) };
    // The kernel's numbers fit.
    libc::id_t::try_from(number).unwrap_or_default()
}

impl Thread {
    /// The calling thread.
    pub(crate) fn current() -> Self {
        HERE.with(Self::clone)
    }

    /// Whether both are the same thread.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.gave_way, &other.gave_way)
    }

    /// Lowers the thread's priority below all others. It cannot be undone: the system lets no thread raise its own
    /// priority again. Where threads have no priority of their own, or the system refuses, the priority stays the same.
    pub(crate) fn give_way(&self) {
        self.gave_way.store(true, Ordering::Relaxed);
        #[cfg(target_os = "linux")]
        {
            const LOWEST: libc::c_int = 19;
            // SAFETY: touches nothing of ours; a thread is a process to this call.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, self.number, LOWEST) };
        }
    }

    /// Whether the calling thread has the lowest priority. Threads that it starts inherit it for good.
    pub(crate) fn has_given_way() -> bool {
        HERE.try_with(|here| here.gave_way.load(Ordering::Relaxed)).unwrap_or(false)
    }
}

/// The processor that the calling thread is on, if the system tells. Costs no system call.
pub(crate) fn processor() -> Option<u32> {
    // SAFETY: takes nothing and touches no memory of ours.
    #[cfg(target_os = "linux")]
    return u32::try_from(unsafe { libc::sched_getcpu() }).ok();
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(all(test, target_os = "linux"))]
pub(crate) mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    /// The priority of a thread: 0 is normal, 19 is below all others.
    pub(crate) fn nice(thread: &Thread) -> i32 {
        // SAFETY: touches nothing of ours.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, thread.number) }
    }

    #[test]
    fn one_thread_gives_way_and_the_others_do_not() {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            tell.send(Thread::current()).expect("the test listens");
            ended.recv().expect_err("the test hangs up");
            assert!(Thread::has_given_way());
        });
        let thread = told.recv().expect("the thread tells");
        let before = nice(&thread);
        thread.give_way();
        assert_eq!(nice(&thread), 19);
        assert_eq!(nice(&Thread::current()), before);
        drop(end);
        other.join().expect("the thread ends");
        assert!(!Thread::has_given_way());
    }
}
