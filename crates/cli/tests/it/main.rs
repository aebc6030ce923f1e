//! The tests of the command line: the built program, its streams and its exit codes.

mod page;
mod program;
mod run;
#[cfg(unix)]
mod signals;
