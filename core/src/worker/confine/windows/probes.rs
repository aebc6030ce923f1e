//! What a worker must not be able to do, tried.
//!
//! In: a process that is confined. Out: for each, whether it can do it nevertheless.
#![expect(unsafe_code, reason = "calls the system")]

use std::{
    fs::File,
    net::{Ipv4Addr, UdpSocket},
    process::{Command, Stdio},
    ptr,
};

use windows_sys::Win32::{
    Foundation::CloseHandle,
    System::Threading::{CreateEventW, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION},
};

pub(super) fn opens_a_file() -> bool {
    std::env::current_exe().is_ok_and(|program| File::open(program).is_ok())
}

pub(super) fn opens_a_socket() -> bool {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_ok()
}

/// This one, which told of nobody to speak to would end at once.
pub(super) fn starts_a_program() -> bool {
    let Ok(program) = std::env::current_exe() else { return false };
    let nobody = [Stdio::null(), Stdio::null(), Stdio::null()];
    let [stdin, stdout, stderr] = nobody;
    let started = Command::new(program).stdin(stdin).stdout(stdout).stderr(stderr).spawn();
    started.is_ok_and(|mut child| {
        // It was started, that is what counts.
        let _ = child.kill();
        let _ = child.wait();
        true
    })
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
