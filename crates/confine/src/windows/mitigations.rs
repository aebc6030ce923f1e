//! Mitigations that a process takes on for good.
//!
//! In: a process that has loaded its libraries. Out: the same. Policies that a version of the system does not know are
//! left out: none of them is in the account, each makes an item of the account harder to get around.
#![expect(unsafe_code, reason = "calls the system")]

use std::ptr;

use windows_sys::Win32::System::{
    Diagnostics::Debug::{
        SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX, SEM_NOOPENFILEERRORBOX, SetErrorMode,
    },
    Threading::{
        PROCESS_MITIGATION_POLICY, ProcessChildProcessPolicy, ProcessDynamicCodePolicy,
        ProcessExtensionPointDisablePolicy, ProcessFontDisablePolicy, ProcessImageLoadPolicy,
        ProcessSignaturePolicy, ProcessSystemCallDisablePolicy, SetProcessMitigationPolicy,
    },
};

/// Each policy with its flags, as the system's headers lay them out.
const POLICIES: [(PROCESS_MITIGATION_POLICY, u32); 7] = [
    // No code that was not in a file.
    (ProcessDynamicCodePolicy, 1),
    // No calls of the window system.
    (ProcessSystemCallDisablePolicy, 1),
    (ProcessExtensionPointDisablePolicy, 1),
    // Only the system's own fonts.
    (ProcessFontDisablePolicy, 1),
    // No library from another machine, or written by a user with fewer rights.
    (ProcessImageLoadPolicy, 0b11),
    // Only libraries that the system's maker has signed.
    (ProcessSignaturePolicy, 1),
    // No other process.
    (ProcessChildProcessPolicy, 1),
];

pub(super) fn apply() {
    // SAFETY: a number; structures of one number each.
    unsafe {
        SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX | SEM_NOOPENFILEERRORBOX);
        for (policy, flags) in POLICIES {
            SetProcessMitigationPolicy(policy, ptr::from_ref(&flags).cast(), size_of::<u32>());
        }
    }
}
