//! A process that a host starts for a worker, and this process itself.
#![expect(unsafe_code, reason = "calls the system")]

use std::{
    env,
    ffi::{OsStr, c_void},
    io, mem,
    os::windows::ffi::OsStrExt,
    path::Path,
    ptr,
};

use windows_sys::Win32::{
    Foundation::{HANDLE, INVALID_HANDLE_VALUE, STILL_ACTIVE},
    System::Threading::{
        BELOW_NORMAL_PRIORITY_CLASS, CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT,
        CreateProcessAsUserW, CreateProcessW, DETACHED_PROCESS, DeleteProcThreadAttributeList,
        EXTENDED_STARTUPINFO_PRESENT, GetCurrentProcess, GetExitCodeProcess, INFINITE,
        InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST,
        PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROC_THREAD_ATTRIBUTE_JOB_LIST, PROCESS_INFORMATION,
        RegisterWaitForSingleObject, ResumeThread, STARTUPINFOEXW, SetPriorityClass,
        TerminateProcess, UnregisterWaitEx, UpdateProcThreadAttribute, WT_EXECUTEINWAITTHREAD,
        WT_EXECUTEONLYONCE, WaitForSingleObject,
    },
};

use super::{handles::Owned, job::Job, loader, token::Tokens};
use crate::ended::{Ended, KILLED};

/// The time for a killed process to be gone.
const GONE_MS: u32 = 2_000;

/// A process that ends when the owner of this drops it.
pub struct Process {
    handle: Owned,
    /// Ends the process when it is closed.
    job: Job,
    watch: Option<Watch>,
}

/// The call that the system makes when a process has ended.
struct Watch {
    wait: HANDLE,
    tell: *mut Box<dyn Fn() + Send>,
}

// SAFETY: a number, and a box that only the system's thread looks into until the wait is over.
unsafe impl Send for Process {}

/// A program to start.
pub(super) struct Program<'a> {
    pub(super) path: &'a Path,
    pub(super) words: &'a [String],
    /// The only handle that it inherits.
    pub(super) inherits: &'a Owned,
}

/// A process that does not run yet.
pub(super) struct Started {
    process: Process,
    thread: Owned,
    number: u32,
}

impl Started {
    /// The number by which others know it.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The number of a handle that it has from now on, with which it may limit itself.
    pub(super) fn lend_job(&self) -> io::Result<usize> {
        self.process.job.lend(&self.process.handle)
    }

    /// Lets it run.
    pub(super) fn resume(self) -> io::Result<Process> {
        // SAFETY: a handle.
        if unsafe { ResumeThread(self.thread.raw()) } == u32::MAX {
            return Err(io::Error::last_os_error());
        }
        Ok(self.process)
    }
}

impl Program<'_> {
    /// Starts it in a job.
    pub(super) fn start(self, tokens: Option<&Tokens>, job: Job) -> io::Result<Started> {
        let (handle, thread, number) = self.create(tokens, &job)?;
        let process = Process { handle, job, watch: None };
        if let Some(tokens) = tokens {
            loader::keep_to_first_thread(&process.handle)?;
            tokens.lend(&thread)?;
        }
        Ok(Started { process, thread, number })
    }

    /// A process and its thread, which does not run yet.
    fn create(self, tokens: Option<&Tokens>, job: &Job) -> io::Result<(Owned, Owned, u32)> {
        let (inherits, jobs) = ([self.inherits.raw()], [job.raw()]);
        let mut attributes = Attributes::new(&inherits, &jobs)?;
        let path = text(self.path);
        let mut line = text(format!("isolane-worker {}", self.words.join(" ")));
        let environment = environment();
        // A folder that every machine has.
        let folder = text(env::var_os("SystemRoot").unwrap_or_else(|| "C:\\".into()));
        // SAFETY: all zero is a value of these structures of numbers and pointers.
        let (mut startup, mut started) =
            unsafe { (mem::zeroed::<STARTUPINFOEXW>(), mem::zeroed::<PROCESS_INFORMATION>()) };
        startup.StartupInfo.cb = u32::try_from(size_of::<STARTUPINFOEXW>()).unwrap_or(0);
        startup.lpAttributeList = attributes.as_list();
        let how = CREATE_SUSPENDED
            | CREATE_UNICODE_ENVIRONMENT
            | DETACHED_PROCESS
            | EXTENDED_STARTUPINFO_PRESENT;
        let (line, environment) = (line.as_mut_ptr(), environment.as_ptr().cast::<c_void>());
        let (path, folder) = (path.as_ptr(), folder.as_ptr());
        let (startup, told) = ((&raw const startup).cast(), &raw mut started);
        let none = ptr::null();
        // SAFETY: texts that end in zero, and structures in the required form, all of which outlive the calls; handles
        // that are nobody else's.
        unsafe {
            let worked = match tokens.map(Tokens::of_process) {
                Some(token) => CreateProcessAsUserW(
                    token,
                    path,
                    line,
                    none,
                    none,
                    1,
                    how,
                    environment,
                    folder,
                    startup,
                    told,
                ),
                None => CreateProcessW(
                    path,
                    line,
                    none,
                    none,
                    1,
                    how,
                    environment,
                    folder,
                    startup,
                    told,
                ),
            };
            if worked == 0 {
                return Err(io::Error::last_os_error());
            }
            let number = started.dwProcessId;
            Ok((Owned::from_call(started.hProcess)?, Owned::from_call(started.hThread)?, number))
        }
    }
}

impl Process {
    /// Has the system call `tell` on a thread of its own when the process has ended.
    pub fn when_ended(&mut self, tell: impl Fn() + Send + 'static) -> io::Result<()> {
        unsafe extern "system" fn ended(tell: *mut c_void, _timed_out: bool) {
            // SAFETY: the pointer that was given with the wait, which is freed after that is over.
            let tell = unsafe { &*tell.cast::<Box<dyn Fn() + Send>>() };
            tell();
        }
        let mut wait = ptr::null_mut();
        let tell: *mut Box<dyn Fn() + Send> = Box::into_raw(Box::new(Box::new(tell)));
        let how = WT_EXECUTEONLYONCE | WT_EXECUTEINWAITTHREAD;
        // SAFETY: a place for a handle, a handle, and a function with its argument.
        unsafe {
            let process = self.handle.raw();
            let tells = tell.cast_const().cast();
            let worked = RegisterWaitForSingleObject(
                &raw mut wait,
                process,
                Some(ended),
                tells,
                INFINITE,
                how,
            );
            if worked == 0 {
                let error = io::Error::last_os_error();
                drop(Box::from_raw(tell));
                return Err(error);
            }
        }
        self.watch = Some(Watch { wait, tell });
        Ok(())
    }

    /// Ends it, if it has not ended.
    pub fn kill(&self) {
        // SAFETY: a handle. One that has ended is not ended again.
        unsafe { TerminateProcess(self.handle.raw(), KILLED) };
    }

    /// Lowers its priority.
    pub fn demote(&self) {
        // SAFETY: a handle.
        unsafe { SetPriorityClass(self.handle.raw(), BELOW_NORMAL_PRIORITY_CLASS) };
    }

    /// The cause of its end; `None` while it is there.
    pub fn ended(&self) -> Option<Ended> {
        let mut code = 0;
        // SAFETY: a handle, and a place for a number.
        let told = unsafe { GetExitCodeProcess(self.handle.raw(), &raw mut code) };
        (told != 0 && code != STILL_ACTIVE.cast_unsigned()).then(|| Ended::from_code(code))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        // SAFETY: handles; the box that only the wait had, which is over then.
        unsafe {
            WaitForSingleObject(self.handle.raw(), GONE_MS);
            if let Some(Watch { wait, tell }) = self.watch.take()
                && UnregisterWaitEx(wait, INVALID_HANDLE_VALUE) != 0
            {
                drop(Box::from_raw(tell));
            }
        }
    }
}

/// Attributes of a new process beyond the usual ones.
struct Attributes {
    list: Vec<u64>,
}

impl Attributes {
    /// It inherits only those handles, and is in those jobs from the start. They must outlive this.
    fn new(inherits: &[HANDLE], jobs: &[HANDLE]) -> io::Result<Self> {
        let mut bytes = 0;
        // SAFETY: queries the size, and makes it in a place of that size.
        unsafe {
            InitializeProcThreadAttributeList(ptr::null_mut(), 2, 0, &raw mut bytes);
            let mut list = vec![0_u64; bytes.div_ceil(size_of::<u64>()).max(1)];
            let place = list.as_mut_ptr().cast();
            if InitializeProcThreadAttributeList(place, 2, 0, &raw mut bytes) == 0 {
                return Err(io::Error::last_os_error());
            }
            let mut made = Self { list };
            made.add(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, inherits)?;
            made.add(PROC_THREAD_ATTRIBUTE_JOB_LIST, jobs)?;
            Ok(made)
        }
    }

    fn add(&mut self, what: u32, handles: &[HANDLE]) -> io::Result<()> {
        // SAFETY: a list of handles with its length.
        let worked = unsafe {
            UpdateProcThreadAttribute(
                self.as_list(),
                0,
                what as usize,
                handles.as_ptr().cast(),
                size_of_val(handles),
                ptr::null_mut(),
                ptr::null(),
            )
        };
        if worked == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn as_list(&mut self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.list.as_mut_ptr().cast()
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: it was made.
        unsafe { DeleteProcThreadAttributeList(self.as_list()) };
    }
}

/// The variables that the system's libraries need.
fn environment() -> Vec<u16> {
    let mut block = Vec::new();
    if let Some(folder) = env::var_os("SystemRoot") {
        block.extend("SystemRoot=".encode_utf16().chain(folder.encode_wide()).chain([0]));
    }
    // An empty list ends in two zeros as well.
    block.extend([0, 0]);
    block
}

/// Removes every variable of this process.
pub(super) fn clear_environment() -> bool {
    let names: Vec<_> = env::vars_os().map(|(name, _)| name).collect();
    for name in names {
        // SAFETY: nobody else reads them meanwhile.
        unsafe { env::remove_var(name) };
    }
    env::vars_os().next().is_none()
}

/// Ends this process without running exit handlers.
pub fn exit(code: i32) -> ! {
    // SAFETY: nothing of this process is used again.
    unsafe {
        TerminateProcess(GetCurrentProcess(), code.cast_unsigned());
        libc::_exit(code)
    }
}

fn text(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}
