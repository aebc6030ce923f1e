//! The tests of the command line: the built program, its streams and its exit codes.

#[cfg(unix)]
mod host;
#[cfg(unix)]
mod mcp;
mod page;
mod program;
#[cfg(unix)]
mod repl;
mod run;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod signals;
