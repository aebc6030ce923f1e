//! Snapshots and handles.
#![expect(unsafe_code, reason = "asks the system")]

use std::mem;

use windows_sys::Win32::{
    Foundation::CloseHandle,
    System::{
        Diagnostics::ToolHelp::{
            CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW,
            TH32CS_SNAPPROCESS,
        },
        Threading::{
            GetCurrentProcess, GetProcessHandleCount, OpenProcess, PROCESS_TERMINATE,
            TerminateProcess,
        },
    },
};

/// Another exit code than that of a kill by the host.
const SOME_CODE: u32 = 9;

pub(crate) fn kill(process: u32) {
    // SAFETY: numbers, and a handle that nobody else has. It may have ended by itself.
    unsafe {
        let handle = OpenProcess(PROCESS_TERMINATE, 0, process);
        if !handle.is_null() {
            TerminateProcess(handle, SOME_CODE);
            CloseHandle(handle);
        }
    }
}

/// The handles that this process has.
pub(crate) fn descriptors() -> usize {
    let mut count = 0;
    // SAFETY: a place for a number.
    let told = unsafe { GetProcessHandleCount(GetCurrentProcess(), &raw mut count) };
    assert_ne!(told, 0, "a number of handles");
    count as usize
}

/// Every process, its state and its parent. None is left when it has ended.
pub(super) fn listed() -> Vec<(u32, char, u32)> {
    let mut all = Vec::new();
    // SAFETY: a structure with its size, and a handle that nobody else has.
    unsafe {
        let snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
        let mut entry: PROCESSENTRY32W = mem::zeroed();
        entry.dwSize = u32::try_from(size_of::<PROCESSENTRY32W>()).expect("small");
        let mut found = Process32FirstW(snapshot, &raw mut entry);
        while found != 0 {
            all.push((entry.th32ProcessID, 'R', entry.th32ParentProcessID));
            found = Process32NextW(snapshot, &raw mut entry);
        }
        CloseHandle(snapshot);
    }
    all
}
