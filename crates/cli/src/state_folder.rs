//! The folder of a user for the state of programs.
//!
//! In: the system and its variables. Out: our folder there, which is made if it is missing, for its owner alone; or the
//! reason why there is none, with the path that was tried.

use std::{fs, io, path::PathBuf};

use etcetera::BaseStrategy;

/// `isolane` in `XDG_STATE_HOME`, else in `~/.local/state`; on Windows in the user's local data.
///
/// # Errors
/// The user has no home, or the folder cannot be made.
pub(crate) fn state_folder() -> Result<PathBuf, String> {
    let base = etcetera::choose_base_strategy().map_err(|_| NO_HOME.to_owned())?;
    let state = base.state_dir().unwrap_or_else(|| base.cache_dir());
    let folder = state.join("isolane");
    make(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    Ok(folder)
}

const NO_HOME: &str = if cfg!(windows) {
    "the system names no folder for this user's data"
} else {
    "the environment has no HOME, and the system names no home of this user"
};

#[cfg(unix)]
fn make(folder: &std::path::Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make(folder: &std::path::Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}
