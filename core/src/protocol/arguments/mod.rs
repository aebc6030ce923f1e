//! The arguments that a host starts the worker program with.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::Arguments;
#[cfg(windows)]
pub(crate) use self::windows::{Arguments, HELLO_BYTES, Received, hello, hello_from};
