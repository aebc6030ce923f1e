//! How a worker ended, as the system tells whoever waits for it.
//!
//! In: the status that `waitpid` gives. Out: why. A worker owns itself, so it can end in any of these
//! ways on purpose; nothing but the outcome of its own run may hang on it.

/// The exit code of a worker that got no memory outside of the engine's heap. Inside of it the run's
/// limit comes first.
pub(crate) const OUT_OF_MEMORY: i32 = 86;

/// Why a worker is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, with this code.
    Exited(i32),
    /// It asked for more memory than it may have.
    Memory,
    /// It used up its CPU time.
    CpuTime,
    /// It made a call that no worker makes.
    ForbiddenCall,
    /// It was killed.
    Killed,
    /// By this signal: it crashed, or aborted.
    Crashed(i32),
}

impl Ended {
    /// What `status` says; `None` while the process is there.
    pub(crate) fn from_status(status: i32) -> Option<Self> {
        if libc::WIFEXITED(status) {
            let code = libc::WEXITSTATUS(status);
            return Some(if code == OUT_OF_MEMORY { Self::Memory } else { Self::Exited(code) });
        }
        libc::WIFSIGNALED(status).then(|| match libc::WTERMSIG(status) {
            libc::SIGXCPU => Self::CpuTime,
            libc::SIGSYS => Self::ForbiddenCall,
            libc::SIGKILL => Self::Killed,
            signal => Self::Crashed(signal),
        })
    }
}
