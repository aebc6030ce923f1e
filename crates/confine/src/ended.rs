//! How a worker ended, as the system tells whoever waits for it.
//!
//! In: the status that `waitpid` gives, or on Windows the exit code. Out: why. A worker owns itself, so it can end in any of these
//! ways on purpose; nothing but the outcome of its own run may hang on it.

/// The exit code of a worker that got no memory outside of the engine's heap. Inside of it the run's
/// limit comes first.
pub(crate) const OUT_OF_MEMORY: i32 = 86;

/// The exit code of a worker that its host killed, where the system does not tell.
#[cfg(windows)]
pub(crate) const KILLED: u32 = 87;

/// Why a worker is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
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
    /// By this signal, or on Windows this exception: it crashed, or aborted.
    Crashed(i32),
}

impl Ended {
    /// What `status` says; `None` while the process is there.
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

    /// What the exit code of a process says.
    #[cfg(windows)]
    pub fn from_code(code: u32) -> Self {
        use windows_sys::Win32::Foundation::{
            ERROR_NOT_ENOUGH_QUOTA, STATUS_COMMITMENT_LIMIT, STATUS_NO_MEMORY,
        };
        /// Those of the system's own are errors, and no program's.
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
