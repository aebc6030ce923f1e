//! Probes of acts that a worker must not be able to do.
//!
//! In: a process that is confined. Out: for each act, whether it succeeds nevertheless.
#![expect(unsafe_code, reason = "calls the system")]

use std::{fs::File, mem, os::windows::ffi::OsStrExt, ptr};

use windows_sys::Win32::{
    Foundation::CloseHandle,
    System::Threading::{
        CREATE_SUSPENDED, CreateEventW, CreateProcessW, DETACHED_PROCESS, OpenProcess,
        PROCESS_INFORMATION, PROCESS_QUERY_LIMITED_INFORMATION, STARTUPINFOW, TerminateProcess,
    },
};

pub(super) fn opens_a_file() -> bool {
    std::env::current_exe().is_ok_and(|program| File::open(program).is_ok())
}

/// Starts this program, which would end at once without a host to speak to.
pub(super) fn starts_a_program() -> bool {
    let Ok(program) = std::env::current_exe() else { return false };
    let program: Vec<u16> = program.as_os_str().encode_wide().chain([0]).collect();
    // SAFETY: a text that ends in zero, and structures of numbers and pointers, for which zero is a value; handles that
    // nobody else has.
    unsafe {
        let (mut startup, mut started): (STARTUPINFOW, PROCESS_INFORMATION) =
            (mem::zeroed(), mem::zeroed());
        startup.cb = u32::try_from(size_of::<STARTUPINFOW>()).unwrap_or(0);
        let (none, how) = (ptr::null(), CREATE_SUSPENDED | DETACHED_PROCESS);
        let worked = CreateProcessW(
            program.as_ptr(),
            ptr::null_mut(),
            none,
            none,
            0,
            how,
            ptr::null(),
            ptr::null(),
            &raw const startup,
            &raw mut started,
        );
        worked != 0 && {
            TerminateProcess(started.hProcess, 0);
            CloseHandle(started.hThread) != 0 && CloseHandle(started.hProcess) != 0
        }
    }
}

pub(super) fn opens_a_process(process: u32) -> bool {
    // SAFETY: numbers; a handle that nobody else has.
    unsafe {
        let handle = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, process);
        !handle.is_null() && CloseHandle(handle) != 0
    }
}

pub(super) fn makes_a_named_object() -> bool {
    let name: Vec<u16> = format!("isolane-{}\0", std::process::id()).encode_utf16().collect();
    // SAFETY: a text that ends in zero; a handle that nobody else has.
    unsafe {
        let handle = CreateEventW(ptr::null(), 0, 0, name.as_ptr());
        !handle.is_null() && CloseHandle(handle) != 0
    }
}
