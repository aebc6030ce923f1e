//! The environment of the process, and what must be read before it and the files are gone.
//!
//! In: an environment with at most a time zone in it. Out: none, and the zone known to the C library.
#![expect(unsafe_code, reason = "wipes what the system put on the stack")]

use std::{env, ptr};

/// Has the C library read the time zone, which it keeps.
pub(super) fn read_time_zone() {
    let now: libc::time_t = 0;
    // SAFETY: all zero is a value of this structure of numbers and a pointer, which is written.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: reads one number and writes one structure.
    unsafe { libc::localtime_r(&raw const now, &raw mut local) };
}

/// Removes every variable, and wipes where the system had put them. The path of the program stands
/// there as well.
pub(super) fn clear() -> bool {
    let zone = kept_zone();
    // SAFETY: one thread, and what is overwritten are texts that end in zero, within themselves, on
    // the stack: nobody else has them, since they are forgotten below.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            wipe(*entry);
            entry = entry.add(1);
        }
        wipe(ptr::with_exposed_provenance_mut(path_of_program()));
        libc::clearenv();
        if let Some(zone) = zone {
            env::set_var("TZ", zone);
        }
    }
    env::vars_os().all(|(name, _)| name == "TZ")
}

/// The C library of GNU has the time zone for good once it read it. Others look at its name again.
fn kept_zone() -> Option<std::ffi::OsString> {
    if cfg!(target_env = "gnu") { None } else { env::var_os("TZ") }
}

fn path_of_program() -> usize {
    // SAFETY: asks for a number that the system left.
    usize::try_from(unsafe { libc::getauxval(libc::AT_EXECFN) }).unwrap_or(0)
}

unsafe extern "C" {
    static mut environ: *mut *mut libc::c_char;
}

/// # Safety
/// Null, or a text that ends in zero and may be written.
unsafe fn wipe(text: *mut libc::c_char) {
    if !text.is_null() {
        // SAFETY: as the caller vouches.
        unsafe { ptr::write_bytes(text, 0, libc::strlen(text)) };
    }
}
