//! The executable of Isolane's workers, which also launches programs in confinement.
//!
//! In: the path that the caller has named, if any. Out: an absolute path, or the message for a lack of the executable.

use std::{
    env,
    path::{Path, PathBuf, absolute},
};

/// The name of the executable.
pub const NAME: &str = "isolane-worker";

/// The variable of the environment with the path, if it is elsewhere.
pub const VARIABLE: &str = "ISOLANE_WORKER";

/// There is no such executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoLauncher {
    /// Where it should be.
    pub path: PathBuf,
}

impl NoLauncher {
    /// The message for a program in confinement. `needs` is a subject with its verb, such as `confined cells need`.
    #[must_use]
    pub fn message(&self, needs: &str) -> String {
        let place = format!("at {}", self.path.display());
        let remedy =
            format!("install isolane again, or name it with the environment variable {VARIABLE}");
        no_executable(needs, &place, &remedy)
    }
}

/// The message for a lack of the executable. `needs` is a subject with its verb; `place` tells where the executable should
/// be, with its preposition; `remedy` is a clause.
#[must_use]
pub fn no_executable(needs: &str, place: &str, remedy: &str) -> String {
    format!("{needs} the executable {NAME}, and there is none {place}; {remedy}")
}

/// The executable `isolane-worker`: the named one, that of [`VARIABLE`], or the one beside the running program.
///
/// # Errors
/// There is no such file.
pub fn find_launcher(named: Option<&Path>) -> Result<PathBuf, NoLauncher> {
    let path = named.map(Path::to_owned).or_else(|| env::var_os(VARIABLE).map(PathBuf::from));
    let path = path.or_else(|| Some(env::current_exe().ok()?.parent()?.join(NAME)));
    let path = path.and_then(|path| absolute(path).ok()).unwrap_or_default();
    if path.is_file() { Ok(path) } else { Err(NoLauncher { path }) }
}

/// The executable in the folder of a package, or the one of [`VARIABLE`].
#[must_use]
pub fn launcher_in(folder: &Path) -> PathBuf {
    let given = env::var_os(VARIABLE).filter(|path| !path.is_empty());
    given.map_or_else(|| folder.join(NAME), PathBuf::from)
}
