//! The place of isolates: threads, or processes if the variable `ISOLANE_ISOLATION` is `process`.
//!
//! Out: options of a runtime. Processes need the executable of the package `isolane-worker`, which
//! `cargo build --workspace` puts two folders above this program.

use std::{env, path::PathBuf};

use isolane::{Isolation, RuntimeOptions};

pub(crate) fn is_process() -> bool {
    env::var_os("ISOLANE_ISOLATION").is_some_and(|isolation| isolation == "process")
}

/// The executable of workers.
///
/// # Panics
///
/// If the executable was not built.
fn worker() -> PathBuf {
    let own = env::current_exe().expect("the path of these tests");
    let name = format!("isolane-worker{}", env::consts::EXE_SUFFIX);
    let path = own.ancestors().nth(2).expect("a folder of builds").join(name);
    assert!(path.is_file(), "build {} with cargo build --package isolane-worker", path.display());
    path
}

/// The options of a runtime in that place.
pub(crate) fn options() -> RuntimeOptions {
    let mut options = RuntimeOptions::default();
    if is_process() {
        options.isolation = Isolation::Process;
        options.worker = Some(worker());
    }
    options
}
