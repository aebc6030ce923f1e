//! The files of SQLite: databases and their journals on disk, everything temporary in memory.
//!
//! In: SQLite's requests to open files. Out: those of the system for a database, its journal and its log; files of
//! SQLite's own kind that lives in memory for all others. So no statement writes a temporary file, the memory counts
//! for the call, and SQLite sorts in pieces, between which a call can stop.

#![expect(unsafe_code, reason = "a file system for C code")]

use std::{
    ffi::{CStr, c_char, c_int},
    ptr,
    sync::OnceLock,
};

use rusqlite::ffi::{
    SQLITE_ERROR, SQLITE_OK, SQLITE_OPEN_MAIN_DB, SQLITE_OPEN_MAIN_JOURNAL, SQLITE_OPEN_WAL,
    sqlite3_file, sqlite3_vfs, sqlite3_vfs_find, sqlite3_vfs_register,
};

/// The name under which connections ask for these files.
pub const NAME: &CStr = c"isolane-kit";

const ON_DISK: c_int = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;

type Open = unsafe extern "C" fn(
    *mut sqlite3_vfs,
    *const c_char,
    *mut sqlite3_file,
    c_int,
    *mut c_int,
) -> c_int;

/// How the two kinds of files are opened.
struct Kinds {
    on_disk: Open,
    in_memory: Open,
}

static KINDS: OnceLock<Kinds> = OnceLock::new();

/// Makes these files known to SQLite. Call it once, before any connection is opened.
///
/// # Errors
/// SQLite's code if it lacks one of the two kinds, or refuses ours.
pub(crate) fn register() -> Result<(), c_int> {
    // SAFETY: SQLite is initialized by this call; the results live for as long as the process, or are null.
    let (system, memory) = unsafe {
        (sqlite3_vfs_find(ptr::null()).as_ref(), sqlite3_vfs_find(c"memdb".as_ptr()).as_ref())
    };
    let (Some(system), Some(memory)) = (system, memory) else { return Err(SQLITE_ERROR) };
    let (Some(on_disk), Some(in_memory)) = (system.xOpen, memory.xOpen) else {
        return Err(SQLITE_ERROR);
    };
    KINDS.get_or_init(|| Kinds { on_disk, in_memory });
    let ours = sqlite3_vfs {
        zName: NAME.as_ptr(),
        pNext: ptr::null_mut(),
        szOsFile: system.szOsFile.max(memory.szOsFile),
        xOpen: Some(open),
        ..*system
    };
    // SQLite keeps it for as long as the process lives.
    let ours = Box::leak(Box::new(ours));
    // SAFETY: the methods are those of the system's files, whose data came along, but for `open`.
    match unsafe { sqlite3_vfs_register(ours, 0) } {
        SQLITE_OK => Ok(()),
        code => Err(code),
    }
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let Some(kinds) = KINDS.get() else { return SQLITE_ERROR };
    let is_on_disk = !name.is_null() && flags & ON_DISK != 0;
    let open = if is_on_disk { kinds.on_disk } else { kinds.in_memory };
    // A file of memory that has a name would be shared by it.
    let name = if is_on_disk { name } else { ptr::null() };
    // SAFETY: the arguments are SQLite's own; the file has room for either kind, as `szOsFile` says.
    unsafe { open(vfs, name, file, flags, out_flags) }
}
