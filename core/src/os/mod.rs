//! Thin wrappers over the operating system and the standard library.

pub(crate) mod addresses;
#[cfg(unix)]
pub(crate) mod children;
pub(crate) mod clock;
pub(crate) mod process;
#[cfg(target_os = "linux")]
mod process_number;
pub(crate) mod sanitized;
pub(crate) mod sync;
pub(crate) mod thread;
