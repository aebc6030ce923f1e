//! Thin wrappers over the operating system and the standard library.

#[cfg(unix)]
pub(crate) mod children;
pub(crate) mod clock;
pub(crate) mod process;
pub(crate) mod sanitized;
pub(crate) mod sync;
pub(crate) mod thread;
