//! The file of a database, as a service opens it.
//!
//! In: a path. Out: a connection that has the file for itself until it is closed, or the misuse, which names the file.
//! SQLite keeps the lock in the file: the system takes it from a process that ends, however it ends.

use std::{
    fs::{self, OpenOptions},
    io::ErrorKind as IoError,
    path::Path,
    time::Duration,
};

use isolane::{Error, ErrorKind};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema::{self, APPLICATION, VERSION};

/// A service that is about to end may have the file for so long.
const BUSY_TIME: Duration = Duration::from_millis(500);

/// Opens the file, which is made if there is none.
///
/// # Errors
/// Misuse: a folder that does not exist, a file that is no database of ours or of a newer version. Another service has
/// the file. The system refuses it.
pub(super) fn open(path: &Path) -> Result<Connection, Error> {
    // For stores that come later: they need their allocator. Where the program itself has used SQLite before, this does
    // without.
    drop(isolane_sqlite::initialize());
    make_file(path)?;
    connect(path).map_err(|fault| fault.told(path))
}

/// Why a file is refused.
enum Fault {
    Foreign,
    Newer(i32),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Fault {
    fn told(self, path: &Path) -> Error {
        let file = path.display();
        let misuse = |message| Error::new(ErrorKind::Type, message);
        match self {
            Self::Foreign => {
                misuse(format!("database '{file}' belongs to another program: name another file"))
            }
            Self::Newer(version) => misuse(format!(
                "database '{file}' has version {version}, and this Isolane knows up to {VERSION}: use a newer Isolane, or another file"
            )),
            Self::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::NotADatabase) => {
                    misuse(format!("database '{file}' is no SQLite database: name another file"))
                }
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::new(
                    ErrorKind::Unavailable,
                    format!(
                        "database '{file}' is in use by another service: stop that one, or name another file"
                    ),
                ),
                _ => Error::new(
                    ErrorKind::Internal,
                    format!("database '{file}' cannot be opened: {error}"),
                ),
            },
        }
    }
}

/// The file, which only its owner may read. SQLite gives its logs the same mode.
fn make_file(path: &Path) -> Result<(), Error> {
    let misuse = |message: String| Error::new(ErrorKind::Type, message);
    if path.as_os_str().is_empty() {
        return Err(misuse("database must be a path, got an empty string".to_owned()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let folder = folder.display();
        let file = path.display();
        return Err(misuse(format!(
            "database '{file}': the folder '{folder}' does not exist: make it, or name another file"
        )));
    }
    if path.is_dir() {
        let file = path.display();
        return Err(misuse(format!("database '{file}' is a folder: name a file in it")));
    }
    if fs::metadata(path).is_ok_and(|known| !known.is_file()) {
        let file = path.display();
        return Err(misuse(format!("database '{file}' is no regular file: name another file")));
    }
    match private(OpenOptions::new().write(true).create_new(true)).open(path).map(drop) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == IoError::AlreadyExists => {
            // SQLite would open a file that it cannot write, and fail later.
            let opened = OpenOptions::new().write(true).open(path).map(drop);
            opened.map_err(|error| {
                misuse(format!("database '{}' cannot be written: {error}", path.display()))
            })
        }
        Err(error) => Err(misuse(format!("database '{}' cannot be made: {error}", path.display()))),
    }
}

fn connect(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIME)?;
    // Before the log is first read: then the index of the log is in memory, and the lock lasts.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = tables == 0 && application == 0;
    if !is_new && application != APPLICATION {
        return Err(Fault::Foreign);
    }
    if version > VERSION {
        return Err(Fault::Newer(version));
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Committed rows are in the system's hands, and outlive the process; a loss of power may take the last second.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")?;
    if is_new {
        schema::create(&connection)?;
    }
    connection.set_prepared_statement_cache_capacity(64);
    tighten(path)?;
    Ok(connection)
}

/// Takes from others the right to read files that somebody else has made: the database and its log.
fn tighten(path: &Path) -> rusqlite::Result<()> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    for file in [path, Path::new(&log)] {
        let tightened = fs::metadata(file)
            .and_then(|metadata| fs::set_permissions(file, owners_only(metadata.permissions())));
        // There may be no log, and a file system may have no modes.
        if let Err(error) = tightened
            && error.kind() == IoError::PermissionDenied
        {
            return Err(rusqlite::Error::ToSqlConversionFailure(error.into()));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn owners_only(mut permissions: fs::Permissions) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    permissions.set_mode(0o600);
    permissions
}

#[cfg(not(unix))]
fn owners_only(permissions: fs::Permissions) -> fs::Permissions {
    permissions
}
