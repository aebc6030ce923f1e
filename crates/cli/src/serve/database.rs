//! The file of the database of `isolane serve`.
//!
//! In: the flag, and the options of a file. Out: a path, or none. Without both it is in the user's state folder, which is
//! made if it is missing.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use super::config::Config;
use crate::{exit::Ended, state_folder::state_folder, streams::harmless};

/// The value of the flag for no file.
const NONE: &str = "none";

const NAME: &str = "processes.db";

/// # Errors
/// There is no state folder.
pub(super) fn file(flag: Option<&Path>, config: &Config) -> Result<Option<PathBuf>, Ended> {
    match flag {
        Some(flag) if flag == Path::new(NONE) => Ok(None),
        Some(flag) => Ok(Some(flag.to_owned())),
        None if config.names_database => Ok(config.service.database.clone()),
        None => match state_folder() {
            Ok(folder) => Ok(Some(folder.join(NAME))),
            Err(error) => Err(Ended::misuse(format!(
                "there is no folder for the database: {error}; name a file with --database, or --database none"
            ))),
        },
    }
}

/// Says where the processes are.
pub(super) fn tell(file: Option<&Path>) {
    let line = match file {
        Some(file) => format!("database: {}", file.display()),
        None => "database: none, processes end with this program".to_owned(),
    };
    // Nobody has to read it.
    let _ = writeln!(std::io::stderr().lock(), "{}", harmless(&line));
}
