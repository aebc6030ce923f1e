//! The source of workers, as the host sees it.
//!
//! In: commands of the host. Out: workers, and events about their end. On Unix this is a process that the host launches
//! (`launched`) and that forks. Windows forks nothing: a thread of the host starts a program for each worker
//! (`starts`).

#[cfg(unix)]
mod launched;
#[cfg(windows)]
mod starts;

#[cfg(unix)]
pub(super) use self::launched::{Killed, Zygote};
#[cfg(windows)]
pub(super) use self::starts::{Killed, Zygote};
