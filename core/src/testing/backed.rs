//! The pages of a mapping of ours that the system backs with memory: those that something has touched.
#![expect(unsafe_code, reason = "asks the system")]

/// The bytes of that range that have been touched and were not given back since. It begins with a page.
pub(crate) fn backed_bytes(start: usize, bytes: usize) -> usize {
    const PAGE_BYTES: usize = 4096;
    let mut pages = vec![0_u8; bytes.div_ceil(PAGE_BYTES)];
    let address = std::ptr::without_provenance_mut::<libc::c_void>(start);
    // SAFETY: writes one byte for each page of the range.
    let done = unsafe { libc::mincore(address, bytes, pages.as_mut_ptr().cast()) };
    assert_eq!(done, 0, "the range is mapped");
    pages.into_iter().filter(|page| page & 1 == 1).count() * PAGE_BYTES
}
