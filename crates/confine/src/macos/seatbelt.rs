//! Seatbelt, with no right granted: no file, no socket, no service, no other process, no program.
#![expect(unsafe_code, reason = "calls the system")]

use std::{ffi::CStr, ptr};

/// The profile of a worker: it may use only its memory and the socket that it has.
const NOTHING: &CStr = c"(version 1)(deny default)";

unsafe extern "C" {
    // It is in the system's own library, though no longer in its manual.
    fn sandbox_init(
        profile: *const libc::c_char,
        flags: u64,
        error: *mut *mut libc::c_char,
    ) -> libc::c_int;
    fn sandbox_free_error(error: *mut libc::c_char);
}

/// Enters Seatbelt for good. False if the system refuses, as in a process that is in another sandbox.
pub(super) fn enter() -> bool {
    let mut error = ptr::null_mut();
    // SAFETY: a text that ends in zero, and a place for another one, which is freed by its own function.
    unsafe {
        let entered = sandbox_init(NOTHING.as_ptr(), 0, &raw mut error) == 0;
        if !error.is_null() {
            sandbox_free_error(error);
        }
        entered
    }
}

/// Whether Seatbelt has no effect. The process may then have one more descriptor, and the system may log the attempt.
pub(super) fn is_open() -> bool {
    // SAFETY: a text that ends in zero; a descriptor that nobody else has.
    unsafe {
        let root = libc::open(c"/".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        root >= 0 && libc::close(root) == 0
    }
}
