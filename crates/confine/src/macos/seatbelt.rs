//! Seatbelt, with no right granted: no file, no socket, no service, no other process, no program.
#![expect(unsafe_code, reason = "calls the system")]

use std::{ffi::CStr, ptr};

/// What a worker may ask of the system beyond its memory and the socket that it has.
const NOTHING: &CStr = c"(version 1)(deny default)";

unsafe extern "C" {
    // In the system's own library, though no longer in its manual.
    fn sandbox_init(
        profile: *const libc::c_char,
        flags: u64,
        error: *mut *mut libc::c_char,
    ) -> libc::c_int;
    fn sandbox_free_error(error: *mut libc::c_char);
}

/// Enters it for good; false if it is not there, as in a process that is in another one.
pub(super) fn enter() -> bool {
    let mut error = ptr::null_mut();
    // SAFETY: a text that ends in zero, and a place for another one, which is freed by what is for that.
    unsafe {
        let entered = sandbox_init(NOTHING.as_ptr(), 0, &raw mut error) == 0;
        if !error.is_null() {
            sandbox_free_error(error);
        }
        entered
    }
}

/// Whether it has no effect, in a process that may have a descriptor more. The system may note down that
/// somebody tried.
pub(super) fn is_open() -> bool {
    // SAFETY: a text that ends in zero; a descriptor that nobody else has.
    unsafe {
        let root = libc::open(c"/".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        root >= 0 && libc::close(root) == 0
    }
}
