//! Memory of the process as the kernel reports it.

use std::fs;

/// Bytes resident now.
pub(crate) fn resident_bytes() -> usize {
    field("VmRSS:")
}

/// The peak of resident bytes since `reset_peak`.
pub(crate) fn peak_bytes() -> usize {
    field("VmHWM:")
}

pub(crate) fn reset_peak() {
    fs::write("/proc/self/clear_refs", "5").expect("a kernel that forgets a peak");
}

/// Returns the free blocks of the process's allocator to the system.
pub(crate) fn trim() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "the C library's own function")]
    // SAFETY: takes no pointers, and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn field(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("the process's own status");
    let line = status.lines().find(|line| line.starts_with(name)).expect("a field of it");
    let kib: usize = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kib << 10
}
