//! SQLite in this process, set up once.
//!
//! In: the first use of a store or of a process service's database. Out: a SQLite that takes its memory from us, writes no temporary files and reads no
//! URIs.

#![expect(unsafe_code, reason = "the configuration of a C library")]

use std::sync::OnceLock;

use isolane::HostError;
use rusqlite::ffi::{
    SQLITE_CONFIG_MALLOC, SQLITE_CONFIG_MEMSTATUS, SQLITE_CONFIG_STMTJRNL_SPILL, SQLITE_CONFIG_URI,
    SQLITE_MISUSE, SQLITE_OK, sqlite3_config, sqlite3_initialize,
};

use super::{files, memory};

/// Sets up SQLite for this process. Opening a store or a process service with a database does it, too; the service does
/// without where it is too late.
///
/// A program that uses SQLite by itself, through `rusqlite` or otherwise from the same library, must call this before
/// its first connection: SQLite takes the allocator, which keeps the limits of stores (`max_statement_bytes`), only before
/// it is used. Other connections of the process then use this allocator, too; it limits only the calls of stores. They
/// read no URIs unless they are opened with the flag for them.
///
/// # Errors
/// SQLite was in use before, or refuses the configuration.
pub fn initialize() -> Result<(), HostError> {
    static DONE: OnceLock<Result<(), HostError>> = OnceLock::new();
    DONE.get_or_init(|| configure().map_err(refused)).clone()
}

fn refused(code: i32) -> HostError {
    if code == SQLITE_MISUSE {
        let text = "SQLite was used before the first store was opened; call `isolane_sqlite::initialize` first";
        return HostError::new("Error", text);
    }
    HostError::new("Error", format!("SQLite cannot be set up (code {code})"))
}

fn configure() -> Result<(), i32> {
    let done = |code| if code == SQLITE_OK { Ok(()) } else { Err(code) };
    // SAFETY: each option is given the arguments that SQLite documents for it; SQLite copies the methods. It refuses
    // these calls, without harm, once it is in use.
    unsafe {
        let methods = memory::METHODS;
        done(sqlite3_config(SQLITE_CONFIG_MALLOC, &raw const methods))?;
        // Its own statistics take a lock for each block.
        done(sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0))?;
        done(sqlite3_config(SQLITE_CONFIG_STMTJRNL_SPILL, -1))?;
        done(sqlite3_config(SQLITE_CONFIG_URI, 0))?;
        done(sqlite3_initialize())?;
    }
    files::register()
}
