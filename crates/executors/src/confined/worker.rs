//! The executable that launches a program in confinement: the one of Isolane's workers.
//!
//! In: the path that the caller has named, if any. Out: an absolute path.

use std::{
    env,
    path::{Path, PathBuf, absolute},
};

use crate::{ExecutorError, ExecutorErrorKind};

const NAME: &str = "isolane-worker";

/// The variable with its path, if it is elsewhere.
const VARIABLE: &str = "ISOLANE_WORKER";

/// # Errors
/// `spawn`: there is no such file.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, ExecutorError> {
    let path = named.map(Path::to_owned).or_else(|| env::var_os(VARIABLE).map(PathBuf::from));
    let path = path.or_else(|| Some(env::current_exe().ok()?.parent()?.join(NAME)));
    let path = path.and_then(|path| absolute(path).ok()).unwrap_or_default();
    if path.is_file() {
        return Ok(path);
    }
    let message = format!(
        "a confined program needs the executable {NAME}, and there is none at {}; build or install it, or name it with \
         with_worker or the environment variable {VARIABLE}",
        path.display()
    );
    Err(ExecutorError::new(ExecutorErrorKind::Spawn, message))
}
