//! Programs that isolane starts.
//!
//! In: a command. Out: a process in a group of its own (on Windows a job), which is killed as a whole. [`run`] feeds a
//! process, reads it, watches it, and waits for its end. `Lasting` and
//! [`Piped`] are processes that outlive calls. [`Output`] bounds a stream. [`at_exit`] ends
//! groups, and removes folders, when this process exits. `interpreter` tells the files that an interpreter needs.

#[cfg(unix)]
pub mod at_exit;
#[cfg(target_os = "linux")]
pub mod interpreter;
#[cfg(unix)]
mod lasting;
mod output;
mod piped;
#[cfg(unix)]
mod removal;
mod run;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use lasting::Lasting;
pub use output::{DEFAULT_LIMIT_BYTES, Output, push_line};
pub use piped::{Piped, Pipes};
#[cfg(unix)]
pub use removal::remove as remove_folder;
pub use run::{Bounds, Ended, Ending, OutputSink, run, run_fed};
