//! The loading of a process's libraries.
//!
//! In: a process that does not run yet. Out: the same, whose first thread loads all of them. Otherwise the system has
//! other threads help, and these act under the process's own token, which can open no library.
#![expect(unsafe_code, reason = "writes into another process")]

use std::{ffi::c_void, io, mem, ptr};

use windows_sys::{
    Wdk::System::Threading::{NtQueryInformationProcess, ProcessBasicInformation},
    Win32::System::{
        Diagnostics::Debug::{ReadProcessMemory, WriteProcessMemory},
        Threading::PROCESS_BASIC_INFORMATION,
    },
};

use super::handles::Owned;

/// The offset of the parameters' address in a process, and that of the number of threads in the parameters. Both are
/// the same in every version that has such threads.
const PARAMETERS_AT: usize = if cfg!(target_pointer_width = "64") { 0x20 } else { 0x10 };
const THREADS_AT: usize = if cfg!(target_pointer_width = "64") { 0x40c } else { 0x2a0 };

const ONE: u32 = 1;

pub(super) fn keep_to_first_thread(process: &Owned) -> io::Result<()> {
    let process = process.raw();
    let (mut parameters, mut done) = (ptr::null_mut::<u8>(), 0);
    // SAFETY: only the system reads and writes addresses of another process, and it refuses invalid ones; places here,
    // with their sizes.
    unsafe {
        let mut told: PROCESS_BASIC_INFORMATION = mem::zeroed();
        let bytes = u32::try_from(size_of::<PROCESS_BASIC_INFORMATION>()).unwrap_or(0);
        let what = ProcessBasicInformation;
        let place = (&raw mut told).cast();
        let status = NtQueryInformationProcess(process, what, place, bytes, ptr::null_mut());
        if status < 0 {
            return Err(io::Error::other("the system tells nothing of the process"));
        }
        let at = told.PebBaseAddress.cast::<u8>().wrapping_add(PARAMETERS_AT);
        let place = (&raw mut parameters).cast();
        let read = ReadProcessMemory(process, at.cast(), place, size_of::<usize>(), &raw mut done);
        if read == 0 || parameters.is_null() {
            return Err(io::Error::last_os_error());
        }
        let at = parameters.wrapping_add(THREADS_AT).cast::<c_void>();
        let place = ptr::from_ref(&ONE).cast();
        if WriteProcessMemory(process, at, place, size_of::<u32>(), &raw mut done) == 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
