//! The environment of the process, and the time zone, which must be read before the environment and the files are gone.
//!
//! In: an environment with at most a time zone in it. Out: an empty one. The C library knows the zone, if it can keep
//! it.
#![expect(unsafe_code, reason = "wipes what the system put on the stack")]

use std::{env, ptr};

/// Has the C library read the time zone. Some libraries keep it.
pub(super) fn read_time_zone() {
    let now = 0;
    // SAFETY: all zero is a value of this structure of numbers and a pointer, which is written.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: reads one number and writes one structure.
    unsafe { libc::localtime_r(&raw const now, &raw mut local) };
}

/// Removes every variable, and wipes the memory where the system had put them. Wipes the path of the program, which
/// lies there as well, where the system reports its place.
pub(super) fn clear() -> bool {
    let zone = kept_zone();
    // SAFETY: one thread. The overwritten texts end in zero and lie on the stack; nobody else has them, since they are
    // forgotten below.
    unsafe {
        let mut entry = variables();
        while !entry.is_null() && !(*entry).is_null() {
            wipe(*entry);
            entry = entry.add(1);
        }
        wipe(path_of_program());
        forget();
        if let Some(zone) = zone {
            env::set_var("TZ", zone);
        }
    }
    env::vars_os().all(|(name, _)| name == "TZ")
}

/// GNU's C library keeps the time zone for good once it has read it. Others look at its name again.
fn kept_zone() -> Option<std::ffi::OsString> {
    if cfg!(target_env = "gnu") { None } else { env::var_os("TZ") }
}

#[cfg(target_os = "linux")]
fn path_of_program() -> *mut libc::c_char {
    // SAFETY: reads a number that the system left.
    let path = usize::try_from(unsafe { libc::getauxval(libc::AT_EXECFN) }).unwrap_or(0);
    ptr::with_exposed_provenance_mut(path)
}

#[cfg(not(target_os = "linux"))]
fn path_of_program() -> *mut libc::c_char {
    ptr::null_mut()
}

/// The list of variables, which ends in null.
#[cfg(target_os = "linux")]
unsafe fn variables() -> *mut *mut libc::c_char {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
    }
    // SAFETY: one thread, so nobody writes it.
    unsafe { environ }
}

#[cfg(target_os = "macos")]
unsafe fn variables() -> *mut *mut libc::c_char {
    // SAFETY: it returns the place of that list; one thread, so nobody writes there.
    unsafe { *libc::_NSGetEnviron() }
}

/// Empties the list.
#[cfg(target_os = "linux")]
unsafe fn forget() {
    // SAFETY: one thread, so nobody reads it.
    unsafe { libc::clearenv() };
}

#[cfg(target_os = "macos")]
unsafe fn forget() {
    // SAFETY: one thread, so nobody reads the list; it has an end, if it is there.
    unsafe {
        let first = variables();
        if !first.is_null() {
            *first = ptr::null_mut();
        }
    }
}

/// # Safety
/// Null, or a text that ends in zero and may be written.
unsafe fn wipe(text: *mut libc::c_char) {
    if !text.is_null() {
        // SAFETY: as the caller vouches.
        unsafe { ptr::write_bytes(text, 0, libc::strlen(text)) };
    }
}
