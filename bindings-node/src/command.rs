//! The command line: what `cli.cjs` runs.

use std::{ffi::OsString, path::PathBuf};

use napi_derive::napi;

/// Runs a command to its end, on this thread; gives its exit code. `arguments` are the words of the command line, the
/// name of the program first; `worker_folder` is the folder of the addon.
#[napi(catch_unwind)]
pub fn run_command(arguments: Vec<String>, worker_folder: String) -> u32 {
    let arguments = arguments.into_iter().map(OsString::from);
    isolane_cli::main(arguments, Some(PathBuf::from(worker_folder))).into()
}
