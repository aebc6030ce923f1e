//! Room for large mappings.
//!
//! In: a number of bytes. Out: whether this process may map so many now. Limits on addresses and the system's guess at
//! the memory that it can promise decide that.
#![cfg_attr(unix, expect(unsafe_code, reason = "maps memory and unmaps it"))]

/// Whether a mapping of so many bytes succeeds. Costs two system calls and no memory.
#[cfg(unix)]
pub(crate) fn are_free(bytes: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANON;
    // SAFETY: a new mapping, where the system chooses.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    // SAFETY: the mapping above, which nothing uses.
    start != libc::MAP_FAILED && unsafe { libc::munmap(start, bytes) } == 0
}

/// As many as any process has free.
#[cfg(not(unix))]
pub(crate) fn are_free(bytes: usize) -> bool {
    bytes <= 64 << 20
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_little_and_none_for_all() {
        assert!(are_free(1 << 20));
        assert!(!are_free(usize::MAX / 2));
    }
}
