//! The pages of a range that were written since the last look.
//!
//! In: a range. Out: the pages that may have another content than at the last look. The system write-protects pages and
//! lifts the protection of a page at the first write to it, without a signal and without another thread (Linux 6.7 and
//! later). A look then costs some 10 ns a page, and the first write to a page some 0.5 µs. So this is for large heaps:
//! the pages of small ones are compared sooner.
//!
//! It needs calls of the system that a confined process is killed for. So the caller decides whether to look for it.
#![expect(unsafe_code, reason = "speaks to the operating system about raw memory")]

use super::range::{PAGE_BYTES, Range};
use crate::os::process::{PerProcess, Process};

/// Pages that a word of [`Written`] stands for.
const PAGES_PER_WORD: usize = u64::BITS as usize;

/// A bit for each page that may have been written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written(Vec<u64>);

impl Written {
    /// The bits of 64 pages, the lowest of which is that of the first.
    pub(super) fn word(&self, number: usize) -> u64 {
        self.0.get(number).copied().unwrap_or(u64::MAX)
    }

    /// `None` if one of the pages is beyond the last.
    fn insert(&mut self, first: usize, end: usize) -> Option<()> {
        for page in first..end {
            *self.0.get_mut(page / PAGES_PER_WORD)? |= 1 << (page % PAGES_PER_WORD);
        }
        Some(())
    }
}

/// A range whose written pages the system notes.
pub(super) struct Watch {
    start: usize,
    /// A child that is forked from this process has the range, and the system notes nothing there.
    process: Process,
    tracking: &'static system::Tracking,
}

impl Watch {
    /// Begins to watch a range; `None` where the system cannot. The first look finds every page written.
    pub(super) fn begin(range: &Range) -> Option<Self> {
        static TRACKING: PerProcess<Option<system::Tracking>> = PerProcess::new();
        let tracking = TRACKING.get_or_init(system::Tracking::begin).as_ref()?;
        let start = range.start().expose_provenance();
        tracking.add(start, range.bytes())?;
        Some(Self { start, process: Process::current(), tracking })
    }

    /// The pages, of so many from the start, that may have been written since the last look; at which it noted those up
    /// to there. `None` if the system fails; then nothing is known, as before the first look.
    pub(super) fn look(&self, pages: usize) -> Option<Written> {
        if !self.process.is_current() {
            return None;
        }
        let mut written = Written(vec![0; pages.div_ceil(PAGES_PER_WORD)]);
        let end = self.start + pages * PAGE_BYTES;
        self.tracking.take_written(self.start, end, |from, to| {
            let page = |address: usize| (address - self.start) / PAGE_BYTES;
            written.insert(page(from), page(to))
        })?;
        Some(written)
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(isolane_portable)))]
mod system {
    use super::{PAGE_BYTES, Range};
    use std::{
        fs::File,
        os::fd::{AsRawFd, FromRawFd, OwnedFd},
    };

    const UFFD_USER_MODE_ONLY: libc::c_int = 1;
    const UFFDIO_API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
    const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
    const UFFD_API: u64 = 0xaa;
    const UFFD_FEATURE_WP_UNPOPULATED: u64 = 1 << 13;
    const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;
    const UFFDIO_REGISTER_MODE_WP: u64 = 1 << 1;
    const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
    const PM_SCAN_WP_MATCHING: u64 = 1 << 0;
    const PM_SCAN_CHECK_WPASYNC: u64 = 1 << 1;
    const PAGE_IS_WRITTEN: u64 = 1 << 1;
    const PAGE_IS_PRESENT: u64 = 1 << 3;

    #[repr(C)]
    struct Api {
        version: u64,
        features: u64,
        ioctls: u64,
    }

    #[repr(C)]
    struct Register {
        start: u64,
        len: u64,
        mode: u64,
        ioctls: u64,
    }

    #[repr(C)]
    struct Scan {
        size: u64,
        flags: u64,
        start: u64,
        end: u64,
        walk_end: u64,
        vec: u64,
        vec_len: u64,
        max_pages: u64,
        category_inverted: u64,
        category_mask: u64,
        category_anyof_mask: u64,
        return_mask: u64,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Region {
        start: u64,
        end: u64,
        categories: u64,
    }

    /// Regions that one call of the system reports at most.
    const REGIONS: usize = 256;

    /// The handles of this process, kept for its life.
    pub(super) struct Tracking {
        faults: OwnedFd,
        pages: File,
    }

    impl Tracking {
        /// `None` if the system does not do all that is needed, as a trial shows.
        pub(super) fn begin() -> Option<Self> {
            // SAFETY: makes a descriptor.
            let faults = unsafe {
                let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | UFFD_USER_MODE_ONLY;
                let number = libc::syscall(libc::SYS_userfaultfd, flags);
                let number = libc::c_int::try_from(number).ok().filter(|number| *number >= 0)?;
                OwnedFd::from_raw_fd(number)
            };
            let features = UFFD_FEATURE_WP_UNPOPULATED | UFFD_FEATURE_WP_ASYNC;
            let mut api = Api { version: UFFD_API, features, ioctls: 0 };
            // SAFETY: the structure that this call takes.
            if unsafe { libc::ioctl(faults.as_raw_fd(), UFFDIO_API, &raw mut api) } != 0 {
                return None;
            }
            let pages = File::open("/proc/self/pagemap").ok()?;
            let tracking = Self { faults, pages };
            tracking.works().then_some(tracking)
        }

        /// Begins to note writes to those addresses, until they are unmapped.
        pub(super) fn add(&self, start: usize, bytes: usize) -> Option<()> {
            let (start, len) = (start as u64, bytes as u64);
            let mut register = Register { start, len, mode: UFFDIO_REGISTER_MODE_WP, ioctls: 0 };
            // SAFETY: the structure that this call takes. It changes no content.
            let code =
                unsafe { libc::ioctl(self.faults.as_raw_fd(), UFFDIO_REGISTER, &raw mut register) };
            (code == 0).then_some(())
        }

        /// Calls the function with the addresses of all pages that were written, or have no memory (those that were
        /// given back), and protects them. `None` if the system fails or the function does.
        pub(super) fn take_written(
            &self,
            start: usize,
            end: usize,
            mut each: impl FnMut(usize, usize) -> Option<()>,
        ) -> Option<()> {
            let mut regions = [Region::default(); REGIONS];
            let (mut from, end) = (start as u64, end as u64);
            while from < end {
                let mut scan = Scan {
                    size: size_of::<Scan>() as u64,
                    flags: PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
                    start: from,
                    end,
                    walk_end: 0,
                    vec: regions.as_mut_ptr().expose_provenance() as u64,
                    vec_len: REGIONS as u64,
                    max_pages: 0,
                    category_inverted: PAGE_IS_PRESENT,
                    category_mask: 0,
                    category_anyof_mask: PAGE_IS_WRITTEN | PAGE_IS_PRESENT,
                    return_mask: PAGE_IS_WRITTEN,
                };
                // SAFETY: the structure that this call takes, with room for that many regions. It changes no content.
                let count =
                    unsafe { libc::ioctl(self.pages.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) };
                let found = regions.get(..usize::try_from(count).ok()?)?;
                for region in found {
                    each(usize::try_from(region.start).ok()?, usize::try_from(region.end).ok()?)?;
                }
                if scan.walk_end <= from {
                    return None;
                }
                from = scan.walk_end;
            }
            Some(())
        }

        /// Tries everything that the snapshots rely on.
        fn works(&self) -> bool {
            const PAGES: usize = 8;
            let Some(range) = Range::reserve(PAGES * PAGE_BYTES) else { return false };
            range.prefer_small_pages();
            let start = range.start().expose_provenance();
            // SAFETY: within the range, to which nothing else refers.
            let touch = |page: usize| unsafe { range.start().add(page * PAGE_BYTES).write(1) };
            let written = || {
                let mut pages = [false; PAGES];
                self.take_written(start, start + PAGES * PAGE_BYTES, |from, to| {
                    let page = |address: usize| (address - start) / PAGE_BYTES;
                    pages.get_mut(page(from)..page(to))?.fill(true);
                    Some(())
                })?;
                Some(pages)
            };
            touch(0);
            touch(1);
            if self.add(start, range.bytes()).is_none()
                || !written().is_some_and(|pages| pages.starts_with(&[true, true]))
            {
                return false;
            }
            touch(1);
            touch(3);
            let second = written().is_some_and(|pages| !pages[0] && pages[1] && pages[3]);
            // SAFETY: as above.
            unsafe { range.give_back(0, PAGE_BYTES) };
            let third = written().is_some_and(|pages| pages[0] && !pages[1] && !pages[3]);
            second && third
        }
    }
}

/// No tracking on other systems: all pages are compared.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(isolane_portable))))]
mod system {
    pub(super) enum Tracking {}

    impl Tracking {
        pub(super) fn begin() -> Option<Self> {
            None
        }

        pub(super) fn add(&self, _start: usize, _bytes: usize) -> Option<()> {
            match *self {}
        }

        pub(super) fn take_written(
            &self,
            _start: usize,
            _end: usize,
            _each: impl FnMut(usize, usize) -> Option<()>,
        ) -> Option<()> {
            match *self {}
        }
    }
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(isolane_portable)))]
mod tests {
    use super::*;

    #[test]
    fn written_pages_are_seen_once() {
        const PAGES: usize = 1000;
        let range = Range::reserve(PAGES * PAGE_BYTES).expect("addresses");
        range.prefer_small_pages();
        let Some(watch) = Watch::begin(&range) else {
            println!("this system does not note writes");
            return;
        };
        // SAFETY: within the range, to which nothing else refers.
        let touch = |page: usize| unsafe { range.start().add(page * PAGE_BYTES + 7).write(9) };
        (0..PAGES).for_each(touch);
        let all = watch.look(PAGES).expect("a look");
        assert!((0..PAGES / PAGES_PER_WORD).all(|word| all.word(word) == u64::MAX));
        assert_eq!(watch.look(PAGES), Some(Written(vec![0; PAGES.div_ceil(PAGES_PER_WORD)])));
        // More regions than one call reports.
        (0..PAGES).step_by(2).for_each(touch);
        let some = watch.look(PAGES).expect("a look");
        assert!((0..PAGES / PAGES_PER_WORD).all(|word| some.word(word) == u64::MAX / 3));
        // SAFETY: as above.
        unsafe { range.give_back(64 * PAGE_BYTES, 64 * PAGE_BYTES) };
        let some = watch.look(PAGES).expect("a look");
        assert_eq!((some.word(0), some.word(1), some.word(2)), (0, u64::MAX, 0));
    }
}
