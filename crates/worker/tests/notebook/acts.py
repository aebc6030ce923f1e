# Acts of a program that somebody has taken over, for a cell of Python. `outcomes` tells of each
# act whether it worked, else the name of its error.

import ctypes
import errno
import os
import platform
import resource
import socket
import stat
import sys
import tempfile

libc = ctypes.CDLL(None, use_errno=True)
NAMES = ("bpf", "keyctl", "userfaultfd", "perf_event_open", "reboot")
NUMBERS = {"x86_64": (321, 250, 323, 298, 169), "aarch64": (280, 219, 282, 241, 142)}
SYS = dict(zip(NAMES, NUMBERS[platform.machine()], strict=True))
SYS |= {"io_uring_setup": 425, "open_tree": 428, "fsopen": 430, "pidfd_getfd": 438}
SYS |= {"openat2": 437, "fchmodat2": 452}


def checked(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")


def call(name, *args):
    checked(libc.syscall(SYS[name], *args))


def read(path):
    with open(path, "rb") as file:
        file.read(1)


def write(path):
    with open(path, "wb") as file:
        file.write(b"x")


def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as client:
        client.connect(address)


def make_socket(*of):
    socket.socket(*of).close()


def own_file(mode=0o600):
    """The path of a new file with that mode."""
    path = os.path.join(tempfile.mkdtemp(), "file")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, mode))
    return path


def open_with_mode(mode):
    # How `openat2` is to open: the flags, the mode, the resolution.
    how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_CREAT, mode, 0)
    call("openat2", -100, f"{tempfile.mkdtemp()}/file".encode(), how, ctypes.sizeof(how))


def pidfd_of_host(act):
    descriptor = os.pidfd_open(HOST)
    try:
        act(descriptor)
    finally:
        os.close(descriptor)


def read_secret_variable():
    if "SECRET" not in os.environ:
        raise OSError(errno.ENOENT, "no such variable")


def find_host():
    if str(HOST) not in os.listdir("/proc"):
        raise OSError(errno.ENOENT, "no such process")


def find_other_processes():
    own = {1, os.getpid(), os.getppid()}
    if all(int(name) in own for name in os.listdir("/proc") if name.isdigit()):
        raise OSError(errno.ENOENT, "there is none")


def find_descriptors():
    # Its streams, its own three, and the one that lists these.
    if len(os.listdir("/proc/self/fd")) <= DESCRIPTORS:
        raise OSError(errno.ENOENT, "there is none")


def raise_limit(which):
    _, hard = resource.getrlimit(which)
    resource.setrlimit(which, (hard, hard + 1))


ACTS = {
    "read_secret": lambda: read(SECRET),
    "list_folder_of_secret": lambda: os.listdir(os.path.dirname(SECRET)),
    "read_shadow": lambda: read("/etc/shadow"),
    "list_var": lambda: os.listdir("/var"),
    "read_settings_of_machine": lambda: os.listdir("/sys/class"),
    "open_terminal": lambda: read("/dev/tty"),
    "open_memory_of_machine": lambda: read("/dev/mem"),
    "read_secret_variable": read_secret_variable,
    "find_descriptors": find_descriptors,
    "find_host": find_host,
    "find_other_processes": find_other_processes,
    "read_variables_of_host": lambda: read(f"/proc/{HOST}/environ"),
    "read_memory_of_host": lambda: read(f"/proc/{HOST}/mem"),
    "list_descriptors_of_host": lambda: os.listdir(f"/proc/{HOST}/fd"),
    "read_variables_of_parent": lambda: read(f"/proc/{os.getppid()}/environ"),
    "list_descriptors_of_parent": lambda: os.listdir(f"/proc/{os.getppid()}/fd"),
    "read_memory_of_parent": lambda: read(f"/proc/{os.getppid()}/mem"),
    "signal_host": lambda: os.kill(HOST, 0),
    "open_host": lambda: pidfd_of_host(lambda _: None),
    "trace_host": lambda: checked(libc.ptrace(0x4206, HOST, None, None)),
    "trace_parent": lambda: checked(libc.ptrace(0x4206, os.getppid(), None, None)),
    "take_descriptor": lambda: call("pidfd_getfd", os.pidfd_open(os.getpid()), 0, 0),
    "connect_to_host": lambda: connect(socket.AF_INET, ("127.0.0.1", PORT)),
    "send_to_host": lambda: connect(socket.AF_INET, ("127.0.0.1", PORT), socket.SOCK_DGRAM),
    "connect_by_path": lambda: connect(socket.AF_UNIX, SOCKET),
    "connect_by_name": lambda: connect(socket.AF_UNIX, "\0isolane"),
    "make_socket_of_6": lambda: make_socket(socket.AF_INET6, socket.SOCK_STREAM),
    "make_netlink_socket": lambda: make_socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
    "make_raw_socket": lambda: make_socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "make_packet_socket": lambda: make_socket(socket.AF_PACKET, socket.SOCK_RAW, 0),
    "make_vsock": lambda: make_socket(socket.AF_VSOCK, socket.SOCK_STREAM, 0),
    "write_beside": lambda: write(os.path.join(os.path.dirname(SECRET), "new")),
    "write_shown": lambda: write(SHOWN),
    "write_beside_shown": lambda: write(os.path.join(os.path.dirname(SHOWN), "new")),
    "write_root": lambda: write("/new"),
    "write_system": lambda: write("/usr/new"),
    "write_interpreter": lambda: write(os.path.join(sys.base_prefix, "new")),
    "write_settings": lambda: write("/etc/new"),
    "write_kernel_settings": lambda: write("/proc/sys/kernel/core_pattern"),
    "make_device": lambda: os.mknod("device", stat.S_IFCHR | 0o600, os.makedev(1, 1)),
    "set_uid": lambda: os.chmod(own_file(), 0o4755),
    "set_gid": lambda: os.chmod(own_file(), 0o2755),
    "set_uid_of_open": lambda: os.fchmod(os.open(own_file(), os.O_WRONLY), 0o4755),
    "set_uid_without_link": lambda: call("fchmodat2", -100, own_file().encode(), 0o4755, 0x100),
    "make_set_uid": lambda: own_file(0o4755),
    "make_set_uid_node": lambda: os.mknod(own_file() + "1", stat.S_IFREG | 0o4755),
    "make_set_uid_by_openat2": lambda: open_with_mode(0o4755),
    "mount": lambda: checked(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)),
    "unmount": lambda: checked(libc.umount2(b"/proc", 2)),
    "open_tree": lambda: call("open_tree", -100, b"/", 1),
    "open_file_system": lambda: call("fsopen", b"tmpfs", 0),
    "change_root": lambda: os.chroot("/tmp"),
    "new_user": lambda: checked(libc.unshare(0x10000000)),
    "new_mounts": lambda: checked(libc.unshare(0x00020000)),
    "new_network": lambda: checked(libc.unshare(0x40000000)),
    "enter_namespace": lambda: checked(libc.setns(os.open("/proc/self/ns/net", 0), 0)),
    "become_root": lambda: os.setuid(0),
    "join_groups": lambda: os.setgroups([0]),
    "uring": lambda: call("io_uring_setup", 1, ctypes.create_string_buffer(120)),
    "keys": lambda: call("keyctl", 0, -3, 1),
    "programs_in_kernel": lambda: call("bpf", 0, ctypes.create_string_buffer(120), 120),
    "faults": lambda: call("userfaultfd", 0),
    "counters": lambda: call("perf_event_open", ctypes.create_string_buffer(120), 0, -1, -1, 0),
    "restart": lambda: call("reboot", 0, 0, 0, 0),
    "raise_processes": lambda: raise_limit(resource.RLIMIT_NPROC),
    "raise_descriptors": lambda: raise_limit(resource.RLIMIT_NOFILE),
    "dump_core": lambda: raise_limit(resource.RLIMIT_CORE),
}


def outcomes(acts):
    told = {}
    for name in acts:
        try:
            ACTS[name]()
            told[name] = "done"
        except OSError as error:
            told[name] = errno.errorcode.get(error.errno, str(error))
        except ValueError:
            # `setrlimit` of Python: not allowed to raise the limit.
            told[name] = "EPERM"
    return told
