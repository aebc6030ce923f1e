/* What a program would try that somebody else has taken over.
 *
 * In: the number of a process outside, the path of a file outside, and the names of acts, or none for all. Out: a line for
 * each act: its name, and 0 or the error that the system gave, or `signal N`. Each act has a process of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t outside;
static const char *secret;
extern char **environ;

static int got(long result) { return result < 0 ? errno : 0; }
static int opened(const char *path, int flags) { return got(open(path, flags, 0600)); }
static int made(int domain, int type) { return got(socket(domain, type, 0)); }
/* A mount that is read-only says so before anybody asks for rights. */
static int written(const char *path, int flags) {
  int error = opened(path, flags);
  return error == EROFS ? EACCES : error;
}
#define CALL(...) got(syscall(__VA_ARGS__))

static const size_t MUCH = 512u << 20;
static int mapped(int protection, int flags, int file) {
  char *at = mmap(NULL, MUCH, protection, flags, file, 0);
  return at == MAP_FAILED ? errno : 0;
}

static int open_secret(void) { return opened(secret, O_RDONLY); }
static int open_shadow(void) { return opened("/etc/shadow", O_RDONLY); }
static int open_root_home(void) { return opened("/root", O_RDONLY | O_DIRECTORY); }
static int open_disk(void) { return opened("/dev/vda", O_RDONLY); }
static int open_sys(void) { return opened("/sys", O_RDONLY); }
static int open_init_memory(void) { return opened("/proc/1/mem", O_RDONLY); }
static int open_init_environment(void) { return opened("/proc/1/environ", O_RDONLY); }
static int open_init_root(void) { return opened("/proc/1/root/etc/shadow", O_RDONLY); }
static int open_init_descriptors(void) { return opened("/proc/1/fd", O_RDONLY | O_DIRECTORY); }
static int find_outside(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d", outside);
  return opened(path, O_RDONLY);
}
static int parent_of_root(void) { return opened("/../../..", O_RDONLY) ? errno : opened("/../etc/shadow", O_RDONLY); }
static int other_descriptors(void) {
  for (int descriptor = 3; descriptor < 1024; descriptor++)
    if (fcntl(descriptor, F_GETFD) >= 0) return 0;
  return ENOENT;
}
static int terminal(void) { return opened("/dev/tty", O_RDWR); }
static int push_input(void) { return got(ioctl(-1, TIOCSTI, "x")); }

static int write_root(void) { return written("/file", O_CREAT | O_WRONLY); }
static int write_system(void) { return written("/usr/file", O_CREAT | O_WRONLY); }
static int write_device_folder(void) { return written("/dev/file", O_CREAT | O_WRONLY); }
static int write_shown(void) { return written(getenv("SHOWN"), O_WRONLY); }
static int write_kernel(void) { return written("/proc/sys/kernel/core_pattern", O_WRONLY); }
static int write_own_memory(void) { return written("/proc/self/mem", O_RDWR); }
static int make_device(void) { return got(mknod("/work/device", S_IFCHR | 0600, 0x0101)); }

static int inet(void) { return made(AF_INET, SOCK_STREAM); }
static int inet6(void) { return made(AF_INET6, SOCK_DGRAM); }
static int local(void) { return made(AF_UNIX, SOCK_STREAM); }
static int netlink(void) { return made(AF_NETLINK, SOCK_RAW); }
static int vsock(void) { return made(AF_VSOCK, SOCK_STREAM); }
static int packet(void) { return made(AF_PACKET, SOCK_RAW); }
static int bluetooth(void) { return made(AF_BLUETOOTH, SOCK_RAW); }
static int crypto(void) { return made(AF_ALG, SOCK_SEQPACKET); }
static int pair_of_datagrams(void) {
  int pair[2];
  return got(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
}
static int pair(void) {
  int pair[2];
  return got(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
}
static int rename_pair(void) {
  int pair[2];
  struct sockaddr_un name = {AF_UNIX, "/work/socket"};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 0;
  return got(bind(pair[0], (struct sockaddr *)&name, sizeof name));
}

static int signal_outside(void) { return got(kill(outside, 0)); }
static int signal_init(void) {
  /* It may be refused, or lost. Without init all would be gone. */
  kill(1, SIGKILL);
  return got(kill(1, 0)) == ESRCH ? 0 : ECHILD;
}
static int trace_me(void) { return got(ptrace(PTRACE_TRACEME, 0, 0, 0)); }
static int trace_outside(void) { return got(ptrace(PTRACE_SEIZE, outside, 0, 0)); }
static int trace_init(void) { return got(ptrace(PTRACE_SEIZE, 1, 0, 0)); }
static int read_memory_of_init(void) { return CALL(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0); }
static int compare(void) { return CALL(SYS_kcmp, getpid(), getpid(), 0, 0, 0); }
static int take_descriptor(void) { return CALL(SYS_pidfd_getfd, -1, 0, 0); }
static int dump_core(void) { raise(SIGSEGV); return 0; }

static int new_user(void) { return got(unshare(CLONE_NEWUSER)); }
static int new_mounts(void) { return got(unshare(CLONE_NEWNS)); }
static int new_network(void) { return got(unshare(CLONE_NEWNET)); }
static int clone_user(void) {
  long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  return got(child);
}
static int clone_by_memory(void) {
  uint64_t arguments[11] = {CLONE_NEWUSER, [4] = SIGCHLD};
  long child = syscall(SYS_clone3, arguments, sizeof arguments);
  if (child == 0) _exit(0);
  return got(child);
}
static int enter_namespace(void) { return CALL(SYS_setns, -1, 0); }
static int mount_it(void) { return got(mount("none", "/nowhere", "tmpfs", 0, 0)); }
static int unmount_it(void) { return got(umount2("/nowhere", 0)); }
static int pivot(void) { return CALL(SYS_pivot_root, "/nowhere", "/nowhere"); }
static int change_root(void) { return got(chroot("/nowhere")); }
static int open_tree_it(void) { return CALL(SYS_open_tree, -1, "", 0); }
static int open_file_system(void) { return CALL(SYS_fsopen, "nothing", 0); }
static int mount_attributes(void) { return CALL(SYS_mount_setattr, -1, "", 0, 0, 0); }
static int open_by_handle(void) { return CALL(SYS_open_by_handle_at, -1, 0, 0); }

static int keys(void) { return CALL(SYS_keyctl, 0, -3, 0, 0, 0); }
static int add_key(void) { return CALL(SYS_add_key, "user", "name", "x", 1, -3); }
static int request_key(void) { return CALL(SYS_request_key, "user", "name", 0, 0); }
static int bpf(void) { return CALL(SYS_bpf, 0, 0, 0); }
static int uring(void) { return CALL(SYS_io_uring_setup, 1, 0); }
static int perf(void) { return CALL(SYS_perf_event_open, 0, 0, -1, -1, 0); }
static int faults(void) { return CALL(SYS_userfaultfd, -1); }
static int splice_memory(void) { return CALL(SYS_vmsplice, -1, 0, 0, 0); }
static int shared_memory(void) { return CALL(SYS_shmget, 0, 4096, 0600); }
static int messages(void) { return CALL(SYS_msgget, 0, 0600); }
static int semaphores(void) { return CALL(SYS_semget, 0, 1, 0600); }
static int load_module(void) { return CALL(SYS_finit_module, -1, "", 0); }
static int restart(void) { return CALL(SYS_reboot, 0, 0, 0, 0); }
static int read_log(void) { return CALL(SYS_syslog, 99, 0, 0); }
static int set_clock(void) { return CALL(SYS_clock_settime, -1, 0); }
static int swap(void) { return CALL(SYS_swapon, "/nowhere", 0); }
static int quota(void) { return CALL(SYS_quotactl, -1, 0, 0, 0); }
static int watch_all(void) { return CALL(SYS_fanotify_init, -1, 0); }
static int domain_name(void) { return CALL(SYS_setdomainname, 0, -1); }
static int own_filter(void) { return CALL(SYS_seccomp, 99, 0, 0); }
static int no_random_addresses(void) { return CALL(SYS_personality, 0x0040000); }
static int move_own_program(void) { return got(prctl(PR_SET_MM, 99, 0, 0, 0)); }
static int unknown_call(void) { return CALL(999); }

static int become_root(void) { return got(setresuid(0, 0, 0)); }
static int join_groups(void) { return got(setgroups(0, 0)); }
static int may_gain(void) { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0; }
static int set_user_bits(void) {
  struct statvfs status;
  return statvfs("/usr", &status) || (status.f_flag & ST_NOSUID) ? EPERM : 0;
}

static int raise_memory(void) {
  struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
  return got(setrlimit(RLIMIT_DATA, &most));
}
static int raise_processes(void) {
  struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
  return got(setrlimit(RLIMIT_NPROC, &most));
}
static int raise_core(void) {
  struct rlimit most = {4096, 4096};
  return got(setrlimit(RLIMIT_CORE, &most));
}
static int private_memory(void) { return mapped(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1); }
static int later_private_memory(void) {
  char *at = mmap(NULL, MUCH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? errno : got(mprotect(at, MUCH, PROT_READ | PROT_WRITE));
}
static int grown_memory(void) {
  char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED || mremap(at, 4096, MUCH, MREMAP_MAYMOVE) != MAP_FAILED ? 0 : errno;
}
static int unnamed_shared_memory(void) { return mapped(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1); }
static int stack_memory(void) {
  return mapped(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1);
}
static int memory_file(void) { return CALL(SYS_memfd_create, "x", 0); }
static int grow_socket(int option) {
  int pair[2], bytes = 1 << 30;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 0;
  return got(setsockopt(pair[0], SOL_SOCKET, option, &bytes, sizeof bytes));
}
static int grow_sending(void) { return grow_socket(SO_SNDBUF); }
static int grow_receiving(void) { return grow_socket(SO_RCVBUF); }
static int force_sending(void) { return grow_socket(SO_SNDBUFFORCE); }
static int force_receiving(void) { return grow_socket(SO_RCVBUFFORCE); }
static int grow_pipe(void) {
  int ends[2];
  if (pipe(ends)) return 0;
  return got(fcntl(ends[0], F_SETPIPE_SZ, 1 << 17));
}
static int zero_memory(void) {
  int zero = open("/dev/zero", O_RDWR);
  return zero < 0 ? errno : mapped(PROT_READ | PROT_WRITE, MAP_SHARED, zero);
}
#ifdef __x86_64__
/* The calls of 32 bits have other numbers, which no filter for these would know. */
static int old_call(void) {
  long result = 20;
  __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
  return got(result);
}
#endif

/* Allowed, or the tests above would show nothing. */
static int write_work(void) { return opened("/work/.file", O_CREAT | O_WRONLY); }
static int commands_of_files(void) {
  int ends[2];
  struct flock lock = {F_WRLCK, SEEK_SET};
  int file = open("/work/.file", O_CREAT | O_RDWR, 0600);
  if (file < 0 || pipe2(ends, O_CLOEXEC)) return errno;
  if (fcntl(file, F_SETLK, &lock) || fcntl(file, F_OFD_GETLK, &lock)) return errno;
  if (fcntl(file, F_DUPFD_CLOEXEC, 0) < 0 || fcntl(file, F_DUPFD, 0) < 0) return errno;
  return fcntl(ends[0], F_SETFL, O_NONBLOCK) || fcntl(ends[0], F_GETPIPE_SZ) < 0 ? errno : 0;
}
static int options_of_sockets(void) {
  int pair[2], on = 1;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return errno;
  return got(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
}
static int write_null(void) { return opened("/dev/null", O_WRONLY); }
static int read_shown(void) { return opened(getenv("SHOWN"), O_RDONLY); }
static int some_memory(void) {
  char *at = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? errno : 0;
}

struct act {
  const char *name;
  int (*run)(void);
};
#define ACT(name) {#name, name}
static const struct act acts[] = {
    ACT(open_secret), ACT(open_shadow), ACT(open_root_home), ACT(open_disk), ACT(open_sys),
    ACT(open_init_memory), ACT(open_init_environment), ACT(open_init_root),
    ACT(open_init_descriptors), ACT(find_outside), ACT(parent_of_root), ACT(other_descriptors),
    ACT(terminal), ACT(push_input), ACT(write_root), ACT(write_system), ACT(write_device_folder),
    ACT(write_shown), ACT(write_kernel), ACT(write_own_memory), ACT(make_device), ACT(inet),
    ACT(inet6), ACT(local), ACT(netlink), ACT(vsock), ACT(packet), ACT(bluetooth), ACT(crypto),
    ACT(pair_of_datagrams), ACT(pair), ACT(rename_pair), ACT(signal_outside), ACT(signal_init),
    ACT(trace_me), ACT(trace_outside), ACT(trace_init), ACT(read_memory_of_init), ACT(compare),
    ACT(take_descriptor), ACT(dump_core), ACT(new_user), ACT(new_mounts), ACT(new_network),
    ACT(clone_user), ACT(clone_by_memory), ACT(enter_namespace), ACT(mount_it), ACT(unmount_it),
    ACT(pivot), ACT(change_root), ACT(open_tree_it), ACT(open_file_system), ACT(mount_attributes),
    ACT(open_by_handle), ACT(keys), ACT(add_key), ACT(request_key), ACT(bpf), ACT(uring), ACT(perf),
    ACT(faults), ACT(splice_memory), ACT(shared_memory), ACT(messages), ACT(semaphores),
    ACT(load_module), ACT(restart), ACT(read_log), ACT(set_clock), ACT(swap), ACT(quota),
    ACT(watch_all), ACT(domain_name), ACT(own_filter), ACT(no_random_addresses),
    ACT(move_own_program), ACT(unknown_call), ACT(become_root), ACT(join_groups), ACT(may_gain),
    ACT(set_user_bits), ACT(raise_memory), ACT(raise_processes), ACT(raise_core),
    ACT(private_memory), ACT(later_private_memory), ACT(grown_memory), ACT(unnamed_shared_memory),
    ACT(stack_memory), ACT(memory_file), ACT(zero_memory), ACT(grow_sending), ACT(grow_receiving), ACT(force_sending),
    ACT(force_receiving), ACT(grow_pipe), ACT(commands_of_files), ACT(options_of_sockets),
#ifdef __x86_64__
    ACT(old_call),
#endif
    ACT(write_work), ACT(write_null), ACT(read_shown), ACT(some_memory),
};

static int is_named(const char *name, char **names) {
  if (!*names) return 1;
  for (; *names; names++)
    if (!strcmp(name, *names)) return 1;
  return 0;
}

int main(int count, char **words) {
  if (count == 2 && !strcmp(words[1], "user")) return printf("%d\n", geteuid()) < 0;
  if (count < 3) return 2;
  outside = atoi(words[1]);
  secret = words[2];
  for (size_t at = 0; at < sizeof acts / sizeof *acts; at++) {
    if (!is_named(acts[at].name, words + 3)) continue;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(acts[at].run());
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0) return 3;
    if (WIFSIGNALED(status))
      printf("%s signal %d%s\n", acts[at].name, WTERMSIG(status), WCOREDUMP(status) ? " core" : "");
    else
      printf("%s %d\n", acts[at].name, WEXITSTATUS(status));
  }
  return 0;
}
