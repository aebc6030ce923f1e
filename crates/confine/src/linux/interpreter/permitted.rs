//! System calls that a program may make.
//!
//! Out: the rules. They suffice for interpreters with threads, subprocesses, libraries and files. Calls that concern the
//! machine, other processes or rights fail with EPERM. Any other call is as if the kernel did not know it (ENOSYS), so
//! that libraries do without it.

use super::super::filter::{Rule, Rules, Test, Verdict, has, is, is_null};

/// The way in which the memory of a program is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::linux) enum Memory {
    /// A control group, all of it.
    OfGroup,
    /// A limit of each process, which sees neither shared memory without a file nor what sockets and pipes hold.
    OfEach,
}

/// The calls that a program gets beside those that all have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::linux) struct Granted {
    pub(in crate::linux) memory: Memory,
    /// Processes; threads always.
    pub(in crate::linux) may_fork: bool,
    /// Sockets of TCP and UDP.
    pub(in crate::linux) network: bool,
}

const fn word(number: i32) -> u32 {
    number.cast_unsigned()
}

const REFUSED: Verdict = Verdict::Fail(libc::EPERM);
const UNKNOWN: Verdict = Verdict::Fail(libc::ENOSYS);

/// Namespaces, as `clone` has them.
const SPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// A call that not every C library names. Its number is the same everywhere.
const FCHMODAT2: libc::c_long = 452;

/// Allowed with any arguments.
const ALWAYS: &[libc::c_long] = &[
    // Files.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_umask,
    libc::SYS_utimensat,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_flock,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    // Waiting.
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_signalfd4,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_sched_yield,
    libc::SYS_membarrier,
    libc::SYS_rseq,
    libc::SYS_restart_syscall,
    // Pairs of sockets.
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_recvfrom,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_mlockall,
    libc::SYS_munlockall,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    libc::SYS_get_mempolicy,
    // Processes, of which it sees its own alone.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_sigaltstack,
    libc::SYS_set_tid_address,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getpgid,
    libc::SYS_setpgid,
    libc::SYS_getsid,
    libc::SYS_setsid,
    libc::SYS_getpriority,
    libc::SYS_setpriority,
    libc::SYS_ioprio_get,
    libc::SYS_ioprio_set,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_setparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_getattr,
    libc::SYS_sched_setattr,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_prlimit64,
    libc::SYS_getrusage,
    libc::SYS_times,
    // Its user and its rights, of which it can only lose more.
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_capget,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
    // Clocks and the machine.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getitimer,
    libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_delete,
    libc::SYS_getrandom,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getcpu,
];

/// The older forms that one architecture has.
#[cfg(target_arch = "x86_64")]
const ALWAYS_HERE: &[libc::c_long] = &[
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    libc::SYS_sync_file_range,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_getdents,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_inotify_init,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_signalfd,
    libc::SYS_pause,
    libc::SYS_alarm,
    libc::SYS_getpgrp,
    libc::SYS_time,
    libc::SYS_arch_prctl,
];
/// `renameat`, `sync_file_range`, `getrlimit` and `setrlimit`, which not every C library names.
#[cfg(not(target_arch = "x86_64"))]
const ALWAYS_HERE: &[libc::c_long] = &[38, 84, 163, 164];

/// Calls that make a process of their own accord.
#[cfg(target_arch = "x86_64")]
const FORKS: &[libc::c_long] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FORKS: &[libc::c_long] = &[];

/// Calls by which a socket names another one, which none but those of the network can be.
const NAMING: &[libc::c_long] =
    &[libc::SYS_bind, libc::SYS_connect, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];

/// Calls that fail with EPERM.
const NEVER: &[libc::c_long] = &[
    // Privileges.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_seccomp,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    // Keys, programs in the kernel, other ways into it.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_vmsplice,
    libc::SYS_remap_file_pages,
    libc::SYS_memfd_secret,
    libc::SYS_io_setup,
    libc::SYS_io_submit,
    // Objects of System V and queues of messages.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_semtimedop,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
];

/// Requests of `ioctl`. The terminal's input is not among them.
const REQUESTS: [u32; 10] = [
    0x5401,      // TCGETS
    0x540f,      // TIOCGPGRP
    0x5413,      // TIOCGWINSZ
    0x541b,      // FIONREAD
    0x5421,      // FIONBIO
    0x5450,      // FIONCLEX
    0x5451,      // FIOCLEX
    0x5452,      // FIOASYNC
    0x802c_542a, // TCGETS2
    0x5411,      // TIOCOUTQ
];

/// Options of `prctl`: names, questions, and less of something.
const OPTIONS: [i32; 13] = [
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_SET_PDEATHSIG,
    libc::PR_GET_PDEATHSIG,
    libc::PR_GET_DUMPABLE,
    libc::PR_GET_KEEPCAPS,
    libc::PR_CAPBSET_READ,
    libc::PR_GET_SECUREBITS,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_SET_TIMERSLACK,
    libc::PR_GET_TIMERSLACK,
    // Names of areas of memory.
    0x5356_4d41,
];

/// The bits of a mode by which a file gives the rights of its owner, or of its group, to anybody who executes it.
const OF_OWNER: u32 = libc::S_ISUID | libc::S_ISGID;

/// The flags of a call that opens a file: it looks at the mode if one of these is among them.
const MAKES: i32 = libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY);

/// Calls that set the mode of a file, and the place of the mode.
const MODES: &[(libc::c_long, u32)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];

/// Calls that open a file, and the place of the flags, which the mode follows.
const OPENS: &[(libc::c_long, u32)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// Options of sockets that a program may set where a limit of each process counts its memory.
const SOCKET_OPTIONS: [i32; 8] = [
    libc::SO_REUSEADDR,
    libc::SO_KEEPALIVE,
    libc::SO_LINGER,
    libc::SO_PASSCRED,
    libc::SO_RCVLOWAT,
    libc::SO_RCVTIMEO,
    libc::SO_SNDTIMEO,
    libc::SO_PEEK_OFF,
];

/// The rules for a program.
pub(in crate::linux) fn interpreter(granted: Granted) -> Rules {
    let mut rules: Vec<Rule> = with_arguments(granted).collect();
    let unless = |is_granted| if is_granted { Verdict::Allow } else { REFUSED };
    let plain = |mode| vec![has(mode, OF_OWNER, 0)];
    rules.extend(MODES.iter().map(|(call, mode)| when(*call, vec![plain(*mode)], REFUSED)));
    rules.extend(OPENS.iter().map(|(call, flags)| {
        when(*call, vec![vec![has(*flags, word(MAKES), 0)], plain(flags + 1)], REFUSED)
    }));
    // Its mode is in memory, where no filter looks; without it libraries take the others.
    rules.push(decided(libc::SYS_openat2, UNKNOWN));
    rules.extend(FORKS.iter().map(|call| decided(*call, unless(granted.may_fork))));
    rules.extend(NAMING.iter().map(|call| decided(*call, unless(granted.network))));
    rules.extend(ALWAYS.iter().chain(ALWAYS_HERE).map(|call| decided(*call, Verdict::Allow)));
    rules.extend(NEVER.iter().map(|call| decided(*call, REFUSED)));
    Rules { rules, otherwise: UNKNOWN }
}

fn with_arguments(granted: Granted) -> impl Iterator<Item = Rule> {
    let Granted { memory, may_fork, network } = granted;
    let own = |kind: i32| vec![is(0, word(libc::AF_UNIX)), has(1, 0xf, word(kind))];
    let [low, high] = is_null(4);
    let options = OPTIONS.map(|option| vec![is(0, word(option))]).to_vec();
    let requests = REQUESTS.map(|request| vec![is(1, request)]).to_vec();
    // The usual one, and the question for it.
    let personalities = [0, u32::MAX].map(|kind| vec![is(0, kind)]).to_vec();
    [
        when(libc::SYS_clone, children(may_fork), REFUSED),
        // Its flags are in memory, where no filter looks; without it libraries take the other one.
        decided(libc::SYS_clone3, UNKNOWN),
        // Those without a connection could send to any address.
        when(
            libc::SYS_socketpair,
            vec![own(libc::SOCK_STREAM), own(libc::SOCK_SEQPACKET)],
            REFUSED,
        ),
        when(libc::SYS_socket, if network { sockets() } else { Vec::new() }, REFUSED),
        if network {
            decided(libc::SYS_sendto, Verdict::Allow)
        } else {
            // Without an address: there is none to name.
            when(libc::SYS_sendto, vec![vec![low, high]], REFUSED)
        },
        when(libc::SYS_ioctl, requests, Verdict::Fail(libc::ENOTTY)),
        when(libc::SYS_prctl, options, REFUSED),
        when(libc::SYS_personality, personalities, REFUSED),
        when(libc::SYS_mmap, mappings(memory), Verdict::Fail(libc::ENOMEM)),
        unless_of_each(memory, libc::SYS_memfd_create, Vec::new()),
        unless_of_each(memory, libc::SYS_setsockopt, options_of_sockets(network)),
        unless_of_each(memory, libc::SYS_fcntl, commands()),
    ]
    .into_iter()
}

/// Flags of `clone`: no namespace, and a process only if it may start some.
fn children(may_fork: bool) -> Vec<Vec<Test>> {
    let thread = libc::CLONE_THREAD;
    let (mask, bits) = if may_fork { (SPACES, 0) } else { (SPACES | thread, thread) };
    vec![vec![has(0, word(mask), word(bits))]]
}

/// Sockets of the network: TCP, UDP, and those that tell the addresses of this machine.
fn sockets() -> Vec<Vec<Test>> {
    let kind = |kind: i32| has(1, 0xf, word(kind));
    // Both versions, whose numbers differ in one bit.
    let differ = word(libc::AF_INET ^ libc::AF_INET6);
    let mut sockets = Vec::new();
    for (type_, protocol) in
        [(libc::SOCK_STREAM, libc::IPPROTO_TCP), (libc::SOCK_DGRAM, libc::IPPROTO_UDP)]
    {
        for protocol in [0, protocol] {
            let family = has(0, !differ, word(libc::AF_INET));
            sockets.push(vec![family, kind(type_), is(2, word(protocol))]);
        }
    }
    for type_ in [libc::SOCK_RAW, libc::SOCK_DGRAM] {
        let routes = is(2, word(libc::NETLINK_ROUTE));
        sockets.push(vec![is(0, word(libc::AF_NETLINK)), kind(type_), routes]);
    }
    sockets
}

/// Allowed where a group counts what the call makes the kernel hold; else as far as that is nothing.
fn unless_of_each(memory: Memory, call: libc::c_long, harmless: Vec<Vec<Test>>) -> Rule {
    match memory {
        Memory::OfGroup => decided(call, Verdict::Allow),
        Memory::OfEach => when(call, harmless, REFUSED),
    }
}

/// Options of sockets, of which no size of a buffer is one.
fn options_of_sockets(network: bool) -> Vec<Vec<Test>> {
    let of_all = SOCKET_OPTIONS.as_slice();
    let of_network: &[i32] = if network { &[libc::SO_REUSEPORT, libc::SO_BROADCAST] } else { &[] };
    let option = |option: &i32| vec![is(1, word(libc::SOL_SOCKET)), is(2, word(*option))];
    let mut options: Vec<_> = of_all.iter().chain(of_network).map(option).collect();
    if network {
        let levels = [libc::IPPROTO_TCP, libc::IPPROTO_IP, libc::IPPROTO_IPV6];
        options.extend(levels.map(|level| vec![is(1, word(level))]));
    }
    options
}

/// Commands of `fcntl`, but for that which sets the size of a pipe.
fn commands() -> Vec<Vec<Test>> {
    let first = word(libc::F_SETLEASE);
    let mut commands = vec![
        // Those that POSIX has, and locks.
        vec![has(1, !(first - 1), 0)],
        // Leases, notices, and the comparison of descriptors.
        vec![has(1, !3, first)],
    ];
    let others = [libc::F_DUPFD_CLOEXEC, libc::F_GETPIPE_SZ, libc::F_ADD_SEALS, libc::F_GET_SEALS];
    commands.extend(others.map(|command| vec![is(1, word(command))]));
    commands
}

/// Mappings that the limit of a process counts: not those that grow like a stack, nor shared ones without a file.
fn mappings(memory: Memory) -> Vec<Vec<Test>> {
    let uncounted = libc::MAP_GROWSDOWN | libc::MAP_HUGETLB;
    match memory {
        Memory::OfGroup => vec![vec![has(3, word(libc::MAP_HUGETLB), 0)]],
        Memory::OfEach => [
            // Private.
            (libc::MAP_TYPE, libc::MAP_PRIVATE),
            // Shared, in either form, with a file.
            (libc::MAP_TYPE | libc::MAP_ANONYMOUS, libc::MAP_SHARED),
            (libc::MAP_TYPE | libc::MAP_ANONYMOUS, libc::MAP_SHARED_VALIDATE),
        ]
        .map(|(mask, bits)| vec![has(3, word(mask | uncounted), word(bits))])
        .to_vec(),
    }
}

fn decided(call: libc::c_long, otherwise: Verdict) -> Rule {
    Rule { call, allowed: Vec::new(), otherwise }
}

fn when(call: libc::c_long, allowed: Vec<Vec<Test>>, otherwise: Verdict) -> Rule {
    Rule { call, allowed, otherwise }
}
