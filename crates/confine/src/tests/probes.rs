//! Probes of a worker. A probe that succeeds is `Ok`, which must not happen.

use super::inside;
use crate::{Worker, room_bytes};
use std::{
    ffi::{CStr, CString},
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream},
    },
    path::PathBuf,
    ptr,
    rc::Rc,
    time::{Duration, Instant},
};

type Try = fn(&Scene, &Worker) -> io::Result<()>;

/// A probe with its scene.
pub(super) struct Probe {
    pub(super) name: &'static str,
    run: Try,
    scene: Rc<Scene>,
}

/// Objects outside of the workers, made before the first phase.
struct Scene {
    stage: i32,
    user_namespace: PathBuf,
    /// The places of the environment's variables.
    variables: Vec<*const libc::c_char>,
    tcp: (TcpListener, SocketAddr),
    name: Vec<u8>,
    _named: UnixListener,
    shared: SharedMemory,
}

/// Every probe by its name. Most are for a worker with all items taken.
const PROBES: &[(&str, Try)] = &[
    ("computing", |_, _| compute()),
    ("variables", |scene, _| found(scene.variables.iter().any(|text| is_text(*text)))),
    ("environment", |_, _| found(std::env::vars_os().next().is_some())),
    ("descriptors", |_, _| found((1..256).any(is_open))),
    ("new_privileges", |_, _| found(control(libc::PR_GET_NO_NEW_PRIVS, 0) == 0)),
    ("user_namespace", |scene, _| {
        found(fs::read_link("/proc/self/ns/user")? == scene.user_namespace)
    }),
    // SAFETY: a text that ends in zero.
    ("chroot", |_, _| done(unsafe { libc::chroot(c"/".as_ptr()) })),
    ("bounding_set", |_, _| found((0..=40).any(|c| control(libc::PR_CAPBSET_READ, c) == 1))),
    // SAFETY: no list is written.
    ("groups", |_, _| found(unsafe { libc::getgroups(0, ptr::null_mut()) } > 0)),
    // SAFETY: touch no memory of ours.
    ("setuid", |_, _| done(unsafe { libc::setresuid(0, 0, 0) })),
    ("open", |_, _| open()),
    ("open_own_memory", |_, _| fs::read("/proc/self/mem").map(drop)),
    ("open_environment", |_, _| fs::read("/proc/self/environ").map(drop)),
    ("list_descriptors", |_, _| fs::read_dir("/proc/self/fd").map(drop)),
    ("list_root", |_, _| found(fs::read_dir("/")?.next().is_some())),
    ("write_root", |_, _| fs::write("/file", "text")),
    ("tcp", |scene, _| TcpStream::connect(scene.tcp.1).map(drop)),
    ("udp", |_, _| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map(drop)),
    ("unix", |_, _| UnixStream::connect("/run/socket").map(drop)),
    ("abstract", |scene, _| {
        UnixStream::connect_addr(&UnixAddress::from_abstract_name(&scene.name)?).map(drop)
    }),
    ("pair", |_, _| UnixStream::pair().map(drop)),
    // SAFETY: touches no memory.
    ("find_process", |scene, _| done(unsafe { libc::getpgid(scene.stage) })),
    // SAFETY: no signal is sent by that number.
    ("signal_stage", |scene, _| done(unsafe { libc::kill(scene.stage, 0) })),
    // SAFETY: as above.
    ("signal_parent", |_, _| done(unsafe { libc::kill(libc::getppid(), 0) })),
    // SAFETY: as above.
    ("signal_first", |_, _| done(unsafe { libc::kill(1, 0) })),
    ("abort_another", |scene, _| call(libc::SYS_tgkill, [scene.stage.into(), 1, 6, 0, 0])),
    // SAFETY: touches no memory of ours.
    ("find_shared", |scene, _| done(unsafe { libc::shmget(scene.shared.key, 0, 0) })),
    ("fork", |_, _| fork()),
    ("thread", |_, _| std::thread::Builder::new().spawn(|| ()).map(|thread| drop(thread.join()))),
    ("execute", |_, _| execute()),
    ("trace", |_, _| call(libc::SYS_ptrace, [0, 0, 0, 0, 0])),
    ("trace_parent", |scene, _| call(libc::SYS_ptrace, [16, scene.stage.into(), 0, 0, 0])),
    ("read_other_memory", |scene, _| {
        call(libc::SYS_process_vm_readv, [scene.stage.into(), 0, 0, 0, 0])
    }),
    ("map_code", |_, _| map(libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE, 4096)),
    ("map_shared", |_, _| map(libc::PROT_READ, libc::MAP_SHARED, 4096)),
    ("make_code", |_, _| make_code()),
    ("raise_descriptors", |_, _| raise(libc::RLIMIT_NOFILE, 100)),
    ("raise_memory", |_, worker| {
        found(worker.limit(0, 64 << 20, Duration::from_secs(9)))?;
        raise(libc::RLIMIT_AS, libc::RLIM_INFINITY)
    }),
    ("duplicate", |_, _| call(libc::SYS_dup, [0; 5])),
    ("mount", |_, _| call(libc::SYS_mount, [0; 5])),
    ("unshare", |_, _| call(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0, 0, 0])),
    ("io_uring", |_, _| call(libc::SYS_io_uring_setup, [1, 0, 0, 0, 0])),
    ("bpf", |_, _| call(libc::SYS_bpf, [0; 5])),
    ("perf", |_, _| call(libc::SYS_perf_event_open, [0; 5])),
    ("userfaultfd", |_, _| call(libc::SYS_userfaultfd, [0; 5])),
    ("memory_file", |_, _| call(libc::SYS_memfd_create, [c"m".as_ptr() as i64, 0, 0, 0, 0])),
    ("keyring", |_, _| call(libc::SYS_keyctl, [0; 5])),
    ("personality", |_, _| call(libc::SYS_personality, [0; 5])),
    ("receive_descriptors", |_, _| call(libc::SYS_recvmsg, [0; 5])),
    ("other_clock", |_, _| call(libc::SYS_clock_gettime, [!(1_i64 << 3), 0, 0, 0, 0])),
    ("merge_pages", |_, _| call(libc::SYS_madvise, [0, 0, libc::MADV_MERGEABLE.into(), 0, 0])),
    ("foreign_call", |_, _| call(libc::SYS_getpid + 0x4000_0000, [0; 5])),
    ("old_call", |_, _| old_call()),
    ("memory", |_, worker| {
        found(worker.limit(0, 64 << 20, Duration::from_secs(9)))?;
        map(libc::PROT_READ, libc::MAP_PRIVATE, 32 << 20)?;
        map(libc::PROT_READ, libc::MAP_PRIVATE, 64 << 20)
    }),
    ("limited_memory", |_, worker| {
        found(worker.limit(0, room_bytes(8 << 20, true), Duration::from_secs(9)))?;
        // The stack that the deepest source takes, with the pages around it.
        stacker::grow(64 << 20, || map(libc::PROT_READ, libc::MAP_PRIVATE, 60 << 20))
    }),
    ("cpu", |_, worker| {
        found(worker.limit(0, 64 << 20, Duration::from_millis(1)))?;
        burn(Duration::from_millis(2_500));
        Ok(())
    }),
    ("abort", |_, _| std::process::abort()),
    ("too_much", |_, _| {
        inside::want_too_much();
        Ok(())
    }),
];

/// Makes the scene for those probes.
pub(super) fn prepare(names: &[&str]) -> Vec<Probe> {
    // SAFETY: takes nothing and cannot fail.
    let stage = unsafe { libc::getpid() };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let name = format!("isolane-{stage}").into_bytes();
    let abstract_name = UnixAddress::from_abstract_name(&name).expect("a name");
    let scene = Rc::new(Scene {
        stage,
        user_namespace: fs::read_link("/proc/self/ns/user").expect("a namespace"),
        variables: inside::variables(),
        tcp: (listener, address),
        name,
        _named: UnixListener::bind_addr(&abstract_name).expect("a socket"),
        shared: SharedMemory::new(stage),
    });
    let probe = |name: &&str| {
        let known = PROBES.iter().find(|(known, _)| known == name).expect("a known probe");
        Probe { name: known.0, run: known.1, scene: Rc::clone(&scene) }
    };
    names.iter().map(probe).collect()
}

/// The probes at which only a worker with all items taken has to fail.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PROBES.iter().map(|(name, _)| *name)
}

impl Probe {
    pub(super) fn run(&self, worker: &Worker) -> io::Result<()> {
        (self.run)(&self.scene, worker)
    }
}

/// System V memory under a key, for everyone; removed in the process that made it.
struct SharedMemory {
    key: i32,
    number: i32,
    maker: i32,
}

impl SharedMemory {
    fn new(maker: i32) -> Self {
        let key = 0x1501_0000 ^ maker;
        // SAFETY: touches no memory of ours.
        let number = unsafe { libc::shmget(key, 4096, libc::IPC_CREAT | 0o666) };
        assert!(number >= 0, "shared memory");
        Self { key, number, maker }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: nobody is attached.
        unsafe {
            if libc::getpid() == self.maker {
                libc::shmctl(self.number, libc::IPC_RMID, ptr::null_mut());
            }
        }
    }
}

fn found(found: bool) -> io::Result<()> {
    if found { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn call(number: i64, arguments: [i64; 5]) -> io::Result<()> {
    let [first, second, third, fourth, fifth] = arguments;
    // SAFETY: the calls made here read no memory through these arguments, or a text that ends in zero.
    if unsafe { libc::syscall(number, first, second, third, fourth, fifth) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn control(option: i32, argument: u64) -> i32 {
    // SAFETY: these options take no pointer.
    unsafe { libc::prctl(option, argument, 0_u64, 0_u64, 0_u64) }
}

fn is_open(descriptor: i32) -> bool {
    // SAFETY: a number.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) >= 0 }
}

fn is_text(text: *const libc::c_char) -> bool {
    // SAFETY: where a variable stood, on the stack of the process's first thread.
    !unsafe { CStr::from_ptr(text) }.is_empty()
}

/// Tries any way that leads to a root.
fn open() -> io::Result<()> {
    let here = fs::File::open("/etc/passwd").or_else(|_| fs::File::open("etc/passwd"));
    here.or_else(|_| fs::File::open("/../etc/passwd"))
        .or_else(|_| fs::File::open("../../../../../../etc/passwd"))
        .map(drop)
}

/// The calls that a worker needs.
fn compute() -> io::Result<()> {
    let text = (0..100_000).fold(String::new(), |text, number| text + &number.to_string());
    let large = vec![1_u8; 64 << 20];
    let clock = Instant::now();
    let mut own = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one structure.
    done(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut own) })?;
    let random = std::collections::HashMap::from([(text.len(), large.len())]);
    std::thread::yield_now();
    std::thread::sleep(Duration::from_millis(1));
    // Without the kernel's own page, which some machines do not have.
    call(libc::SYS_gettimeofday, [0; 5])?;
    found(random.len() == 1 && clock.elapsed() > Duration::ZERO)?;
    // A panic's message goes to a descriptor that does not exist, and the panic goes on.
    found(std::panic::catch_unwind(|| panic!("as the test wants")).is_err())?;
    found(inside::zone_is_known())
}

fn fork() -> io::Result<()> {
    // SAFETY: the child does nothing but end.
    match unsafe { libc::fork() } {
        // SAFETY: as above.
        0 => unsafe { libc::_exit(0) },
        child => done(child),
    }
}

/// Only returns if it fails; success ends the worker in another way than it should.
fn execute() -> io::Result<()> {
    let program = CString::new("/bin/true")?;
    let arguments = [program.as_ptr(), ptr::null()];
    // SAFETY: texts that end in zero, and lists that end in null.
    done(unsafe { libc::execv(program.as_ptr(), arguments.as_ptr()) })
}

fn map(access: i32, kind: i32, bytes: usize) -> io::Result<()> {
    // SAFETY: a new mapping at an address of the system's choice touches nothing.
    let start =
        unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind | libc::MAP_ANONYMOUS, -1, 0) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn make_code() -> io::Result<()> {
    // SAFETY: a new mapping, which nothing else knows.
    unsafe {
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = libc::mmap(ptr::null_mut(), 4096, libc::PROT_WRITE, kind, -1, 0);
        done(libc::mprotect(start, 4096, libc::PROT_READ | libc::PROT_EXEC))
    }
}

/// Sets a limit to more than a worker has, and less than others have.
fn raise(what: impl Into<i64>, to: u64) -> io::Result<()> {
    let limit = libc::rlimit64 { rlim_cur: to, rlim_max: to };
    let nothing: *mut libc::rlimit64 = ptr::null_mut();
    // SAFETY: reads one structure.
    let set =
        unsafe { libc::syscall(libc::SYS_prlimit64, 0, what.into(), &raw const limit, nothing) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn burn(cpu: Duration) {
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    while Duration::new(used.tv_sec.unsigned_abs(), 0)
        + Duration::from_nanos(used.tv_nsec.unsigned_abs())
        < cpu
    {
        // SAFETY: writes one structure.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut used) };
    }
}

/// A system call through the interface of 32 bits.
#[cfg(target_arch = "x86_64")]
fn old_call() -> io::Result<()> {
    const GETPID: i64 = 20;
    let mut result: i64 = GETPID;
    // SAFETY: that call takes nothing and returns a number.
    unsafe { std::arch::asm!("int 0x80", inout("rax") result) };
    found(result > 0)
}

#[cfg(not(target_arch = "x86_64"))]
fn old_call() -> io::Result<()> {
    call(libc::SYS_getpid + 0x4000_0000, [0; 5])
}
