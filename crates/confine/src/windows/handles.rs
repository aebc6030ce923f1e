//! Handles, each closed by its owner, and those that a process inherits.
#![expect(unsafe_code, reason = "takes handles by their numbers")]

use std::{
    io,
    os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle},
    ptr,
};

use windows_sys::Win32::{
    Foundation::{
        DUPLICATE_SAME_ACCESS, DuplicateHandle, HANDLE, HANDLE_FLAG_INHERIT, INVALID_HANDLE_VALUE,
        SetHandleInformation,
    },
    System::Threading::GetCurrentProcess,
};

/// A handle of this process.
#[derive(Debug)]
pub(super) struct Owned(OwnedHandle);

impl Owned {
    /// The result of a call, if it is a handle.
    ///
    /// # Safety
    /// It is open and nobody else's, or null, or invalid.
    pub(super) unsafe fn from_call(handle: HANDLE) -> io::Result<Self> {
        if handle.is_null() || handle == INVALID_HANDLE_VALUE {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as the caller vouches.
        Ok(Self(unsafe { OwnedHandle::from_raw_handle(handle) }))
    }

    /// A handle that this process inherited or was given, by its number.
    pub(super) fn inherited(number: usize) -> Option<Self> {
        if number == 0 {
            return None;
        }
        let handle = ptr::with_exposed_provenance_mut(number);
        not_inherited_further(handle);
        // SAFETY: the host sent the number of a handle that it opened for this process; if it did not, every use of it
        // fails.
        Some(Self(unsafe { OwnedHandle::from_raw_handle(handle) }))
    }

    pub(super) fn into_inner(self) -> OwnedHandle {
        self.0
    }

    pub(super) fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }

    /// The number by which another process knows the handle, if it inherits it.
    pub(super) fn number(&self) -> usize {
        self.raw().addr()
    }
}

/// A duplicate for a process to inherit.
pub(super) fn inheritable(handle: HANDLE) -> io::Result<Owned> {
    let mut copy = ptr::null_mut();
    // SAFETY: the handles of this process, and a place for another one.
    unsafe {
        let this = GetCurrentProcess();
        let how = DUPLICATE_SAME_ACCESS;
        if DuplicateHandle(this, handle, this, &raw mut copy, 0, 1, how) == 0 {
            return Err(io::Error::last_os_error());
        }
        Owned::from_call(copy)
    }
}

fn not_inherited_further(handle: HANDLE) {
    // SAFETY: a number.
    unsafe { SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0) };
}
