//! The tests of the command line: the built program, its streams and its exit codes.

#[cfg(unix)]
mod code_mode;
#[cfg(unix)]
mod code_mode_web;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(unix)]
mod host;
#[cfg(unix)]
mod mcp;
#[cfg(unix)]
mod notebook;
mod page;
#[cfg(unix)]
mod policy;
mod program;
#[cfg(unix)]
mod repl;
mod run;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod terminal;
