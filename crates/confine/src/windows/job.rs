//! Jobs, which bind the end of a process and limit its resources.
#![expect(unsafe_code, reason = "calls the system")]

use std::{cell::RefCell, ffi::c_void, io, mem, ptr, time::Duration};

use windows_sys::Win32::{
    Foundation::DuplicateHandle,
    System::{
        JobObjects::{
            CreateJobObjectW, JOB_OBJECT_LIMIT, JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
            JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
            JOB_OBJECT_LIMIT_PROCESS_MEMORY, JOB_OBJECT_LIMIT_PROCESS_TIME,
            JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JOBOBJECTINFOCLASS,
            JobObjectExtendedLimitInformation, SetInformationJobObject,
        },
        ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS},
        Threading::GetCurrentProcess,
    },
};

use super::handles::Owned;

/// The job ends its process when the last handle on it is closed, allows no other process, and shows no dialog. It has
/// no limits about windows: a job with those cannot be nested, and the host may be in another job.
const ALWAYS: JOB_OBJECT_LIMIT = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
    | JOB_OBJECT_LIMIT_ACTIVE_PROCESS
    | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;

/// The right to limit a job, and no other.
const JOB_OBJECT_SET_ATTRIBUTES: u32 = 2;

/// A tick is 100 nanoseconds.
const TICKS_PER_SECOND: u64 = 10_000_000;

#[derive(Debug)]
pub(super) struct Job(RefCell<Option<Owned>>);

impl Job {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: no name and no attributes; the resulting handle is nobody else's.
        let job =
            Self::of(unsafe { Owned::from_call(CreateJobObjectW(ptr::null(), ptr::null()))? });
        let mut limits = limits();
        limits.BasicLimitInformation.LimitFlags = ALWAYS;
        if !job.set(JobObjectExtendedLimitInformation, &limits) {
            return Err(io::Error::last_os_error());
        }
        Ok(job)
    }

    pub(super) fn of(handle: Owned) -> Self {
        Self(RefCell::new(Some(handle)))
    }

    /// The number of a handle in that process, with which it may limit the job, and do nothing else.
    pub(super) fn lend(&self, process: &Owned) -> io::Result<usize> {
        let mut theirs = ptr::null_mut();
        // SAFETY: handles, and a place for a number.
        let lent = unsafe {
            let (this, right) = (GetCurrentProcess(), JOB_OBJECT_SET_ATTRIBUTES);
            DuplicateHandle(this, self.raw(), process.raw(), &raw mut theirs, right, 0, 0)
        };
        if lent == 0 { Err(io::Error::last_os_error()) } else { Ok(theirs.addr()) }
    }

    /// Limits this process, which is in the job, to that much memory more than it has and to that much time in all.
    pub(super) fn limit(&self, room_bytes: u64, cpu: Duration) -> bool {
        let mut limits = limits();
        limits.BasicLimitInformation.LimitFlags = ALWAYS | JOB_OBJECT_LIMIT_PROCESS_TIME;
        let ticks = u64::try_from(cpu.as_nanos() / 100).unwrap_or(u64::MAX);
        let ticks = ticks.max(TICKS_PER_SECOND).min(i64::MAX.cast_unsigned());
        limits.BasicLimitInformation.PerProcessUserTimeLimit = ticks.cast_signed();
        let most = committed_bytes().saturating_add(room_bytes);
        if let Ok(most) = usize::try_from(most)
            && most < usize::MAX
        {
            limits.BasicLimitInformation.LimitFlags |= JOB_OBJECT_LIMIT_PROCESS_MEMORY;
            limits.ProcessMemoryLimit = most;
        }
        self.set(JobObjectExtendedLimitInformation, &limits)
    }

    /// Closes the handle: nothing can be done with the job any more.
    pub(super) fn close(&self) {
        self.0.borrow_mut().take();
    }

    pub(super) fn raw(&self) -> *mut c_void {
        self.0.borrow().as_ref().map_or(ptr::null_mut(), Owned::raw)
    }

    fn set<T>(&self, what: JOBOBJECTINFOCLASS, information: &T) -> bool {
        let bytes = u32::try_from(size_of::<T>()).unwrap_or(0);
        // SAFETY: a structure of that size.
        unsafe {
            SetInformationJobObject(self.raw(), what, ptr::from_ref(information).cast(), bytes) != 0
        }
    }
}

/// The limit to one process.
fn limits() -> JOBOBJECT_EXTENDED_LIMIT_INFORMATION {
    // SAFETY: a structure of numbers.
    let mut limits: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = unsafe { mem::zeroed() };
    limits.BasicLimitInformation.ActiveProcessLimit = 1;
    limits
}

/// Bytes of memory that the system has committed to this process.
fn committed_bytes() -> u64 {
    let bytes = u32::try_from(size_of::<PROCESS_MEMORY_COUNTERS>()).unwrap_or(0);
    // SAFETY: a structure of numbers, and its size.
    unsafe {
        let mut counters: PROCESS_MEMORY_COUNTERS = mem::zeroed();
        K32GetProcessMemoryInfo(GetCurrentProcess(), &raw mut counters, bytes);
        counters.PagefileUsage as u64
    }
}
