//! The interpreter of Python: which one it is, and whether it can run a kernel.
//!
//! In: the option, and the environment of this process. Out: a path, or a version, or the reason why there is none.

use std::{
    env, future, io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use isolane_child::{Bounds, Ending, run_fed};
use tokio::process::Command;

use crate::PyOptions;

/// The bytes of an interpreter's answer.
const ANSWER_BYTES: usize = 4096;

/// Prints the version and the path.
const QUESTION: &str =
    "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable)";

/// An interpreter that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interpreter {
    pub(crate) version: String,
    pub(crate) path: String,
}

/// The program to start: that of the option, else that of `VIRTUAL_ENV`, else `python3`.
pub(crate) fn program(options: &PyOptions) -> PathBuf {
    match &options.interpreter {
        // A relative path begins at the folder of this process, and not at that of the kernel.
        Some(path) if path.components().count() > 1 => {
            std::path::absolute(path).unwrap_or_else(|_| path.clone())
        }
        Some(name) => name.clone(),
        None => env::var_os("VIRTUAL_ENV")
            .filter(|folder| !folder.is_empty())
            .map(|folder| Path::new(&folder).join("bin/python"))
            .filter(|path| path.exists())
            .unwrap_or_else(|| PathBuf::from("python3")),
    }
}

/// Asks an interpreter for its version.
///
/// # Errors
/// The reason why it cannot run a kernel.
pub(super) async fn ask(options: &PyOptions) -> Result<Interpreter, String> {
    let program = program(options);
    let shown = program.display();
    let mut command = Command::new(&program);
    command.args(["-c", QUESTION]).stdin(Stdio::null());
    let timeout = Some(Duration::from_millis(options.start_timeout_ms));
    let bounds = Bounds { timeout, output_limit_bytes: ANSWER_BYTES };
    let ended = run_fed(command, |_| future::ready(()), bounds, &(), future::pending());
    let ended = ended.await.map_err(|error| not_started(&program, &error))?;
    if ended.ending == Ending::TimedOut {
        return Err(not_ready(&program, options.start_timeout_ms));
    }
    let answer = ended.stdout.into_text();
    let mut lines = answer.lines();
    let (Some(version), Some(path)) = (lines.next(), lines.next()) else {
        return Err(format!("{shown} does not say its version"));
    };
    if is_old(version) {
        return Err(too_old(&program, version));
    }
    Ok(Interpreter { version: version.to_owned(), path: path.to_owned() })
}

fn is_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or_default());
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    (major, minor) < (3, 10)
}

/// The reason of a program that does not start.
pub(super) fn not_started(program: &Path, error: &io::Error) -> String {
    let shown = program.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("{shown} was not found"),
        _ => format!("{shown} cannot be started: {error}"),
    }
}

/// The reason of one that takes too long.
pub(super) fn not_ready(program: &Path, timeout_ms: u64) -> String {
    format!("{} was not ready after {timeout_ms} ms", program.display())
}

/// The reason of one that is too old.
pub(super) fn too_old(program: &Path, version: &str) -> String {
    format!("{} is Python {version}; 3.10 or newer is needed", program.display())
}

#[cfg(test)]
mod tests {
    use super::is_old;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(["2.7.18", "3.8.1", "3.9.20", "x"].into_iter().all(is_old));
        assert!(!["3.10.0", "3.11.7", "4.0.0"].into_iter().any(is_old));
    }
}
