//! The ends of workers, as the system reports them.
//!
//! In: the status that `waitpid` gives, or on Windows the exit code. Out: the cause. A worker may be compromised, so it
//! can end in any of these ways on purpose; only the outcome of its own run may depend on it.

/// The exit code of a worker that got no memory outside of the engine's heap. Inside of the heap the run's limit comes
/// first.
pub(crate) const OUT_OF_MEMORY: i32 = 86;

/// The exit code of a worker that its host killed, on systems that do not report a kill.
#[cfg(windows)]
pub(crate) const KILLED: u32 = 87;

/// The cause of a worker's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Exited(i32),
    /// It requested more memory than it may have.
    Memory,
    /// It used up its CPU time.
    CpuTime,
    /// It made a call that no worker makes.
    ForbiddenCall,
    /// It was killed.
    Killed,
    /// By this signal, or on Windows this exception: it crashed, or aborted.
    Crashed(i32),
}

impl Ended {
    /// The cause in `status`; `None` while the process is there.
    #[must_use]
    #[cfg(unix)]
    pub fn from_status(status: i32) -> Option<Self> {
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

    /// The cause in the exit code of a process.
    #[must_use]
    #[cfg(windows)]
    pub fn from_code(code: u32) -> Self {
        use windows_sys::Win32::Foundation::{
            ERROR_NOT_ENOUGH_QUOTA, STATUS_COMMITMENT_LIMIT, STATUS_NO_MEMORY,
        };
        /// Exit codes from here on are the system's own errors, and no program's.
        const ERROR: u32 = 0xC000_0000;
        match code {
            KILLED => Self::Killed,
            ERROR_NOT_ENOUGH_QUOTA => Self::CpuTime,
            _ if code.cast_signed() == OUT_OF_MEMORY => Self::Memory,
            _ if [STATUS_NO_MEMORY, STATUS_COMMITMENT_LIMIT].contains(&code.cast_signed()) => {
                Self::Memory
            }
            _ if code & ERROR == ERROR => Self::Crashed(code.cast_signed()),
            _ => Self::Exited(code.cast_signed()),
        }
    }
}
