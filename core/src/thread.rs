//! Threads as the system knows them.
//!
//! In: the thread that asks. Out: a name for it, by which another can have it give way to all others.
#![expect(unsafe_code, reason = "asks the system")]

/// A thread of this process. It must not be used once the thread has ended: the system gives its
/// number to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread(#[cfg(target_os = "linux")] libc::pid_t);

impl Thread {
    /// The one that asks. Costs a system call.
    #[cfg(target_os = "linux")]
    pub(crate) fn current() -> Self {
        // SAFETY: takes nothing and cannot fail.
        Self(unsafe { libc::gettid() })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn current() -> Self {
        Self()
    }

    /// Leaves the thread only the time that nobody else wants. It cannot be taken back: the system
    /// lets no thread raise itself again. Where threads have no priority of their own, or the system
    /// refuses, the thread goes on as one among many.
    #[cfg(target_os = "linux")]
    pub(crate) fn give_way(self) {
        const LOWEST: libc::c_int = 19;
        // SAFETY: touches nothing of ours; a thread is a process to this call.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, self.0.unsigned_abs(), LOWEST) };
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "there is nothing to ask the system for")]
    pub(crate) fn give_way(self) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    /// How far a thread gives way: 0 as usual, 19 to all others.
    fn nice(thread: Thread) -> i32 {
        // SAFETY: touches nothing of ours.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, thread.0.unsigned_abs()) }
    }

    #[test]
    fn one_thread_gives_way_and_the_others_do_not() {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let other = thread::spawn(move || {
            tell.send(Thread::current()).expect("the test listens");
            ended.recv().expect_err("the test hangs up");
        });
        let thread = told.recv().expect("the thread tells");
        let before = nice(thread);
        thread.give_way();
        assert_eq!(nice(thread), 19);
        assert_eq!(nice(Thread::current()), before);
        drop(end);
        other.join().expect("the thread ends");
    }
}
