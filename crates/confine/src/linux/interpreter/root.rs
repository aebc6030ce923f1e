//! The file system of a program.
//!
//! In: the paths that it may read, and those that it may write to. Out: a root with the system's folders and those paths,
//! read-only but for the latter; its own `/proc`; five devices; and two folders in memory, its working folder and `/tmp`,
//! that it may write to.
//!
//! The trees are opened before anything is mounted, as the caller if it may: root reaches them where nobody would not, and
//! the new root may lie over some of them.

use super::{
    super::{identity::NOBODY, kernel, root::PLACES},
    spec::{Folders, Program},
};
use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid, chmodat, chown, fchmod, openat, statat,
    },
    mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree},
};
use std::{
    ffi::{CStr, CString, OsString},
    fs,
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::symlink},
    },
    path::{Path, PathBuf},
};

const PLAIN: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV;
const QUIET: libc::c_ulong = PLAIN | libc::MS_NOEXEC;

/// Folders of the system, and files of it. `/lib` and its like come to them.
const SYSTEM: [&str; 3] = ["/usr", "/bin", "/sbin"];
const FILES: [&str; 4] =
    ["/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/timezone"];

/// Devices without a state.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// Names in `/dev` that libraries and shells use.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("shm", "/tmp"),
];

/// The fewest names that a folder in memory has room for.
const LEAST_NAMES: u64 = 16 << 10;

/// The bytes for each name, where that comes to more names.
const BYTES_OF_NAME: u64 = 4096;

/// A tree of files, and its place.
struct Tree {
    at: PathBuf,
    opened: OwnedFd,
    is_folder: bool,
    is_writable: bool,
}

/// Everything that a root shows of the caller's.
pub(super) struct Shown {
    trees: Vec<Tree>,
    devices: Vec<Tree>,
    links: Vec<(PathBuf, PathBuf)>,
}

impl Shown {
    /// Opens the system's folders and the paths of a program. It takes the right to mount.
    pub(super) fn open(program: &Program) -> io::Result<Self> {
        let mut shown = Self { trees: Vec::new(), devices: Vec::new(), links: Vec::new() };
        for path in system_folders() {
            match fs::read_link(&path) {
                Ok(target) => shown.links.push((path, target)),
                Err(_) => shown.add(path, kernel::SHOWN_FILE)?,
            }
        }
        for path in FILES.map(PathBuf::from).into_iter().filter(|path| path.exists()) {
            shown.add(path, kernel::SHOWN_FILE)?;
        }
        let readable = program.readable.iter().map(|path| (path, kernel::SHOWN_FILE));
        let writable = program.writable.iter().map(|path| (path, kernel::SHOWN_WRITABLE));
        // A folder comes before its contents; of both for one path, the one that can be written to.
        let mut all: Vec<_> = writable.chain(readable).collect();
        all.sort_by_key(|(path, _)| *path);
        for (path, attributes) in all {
            // A file has at least the rights of the folder around it.
            let is_there = shown.has(path);
            let is_more = attributes == kernel::SHOWN_WRITABLE && !shown.has_writable(path);
            if !is_there || is_more {
                shown.add(path.clone(), attributes)?;
            }
        }
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            if let Ok(opened) = open(&path, kernel::SHOWN_DEVICE) {
                shown.devices.push(Tree { at: path, opened, is_folder: false, is_writable: false });
            }
        }
        Ok(shown)
    }

    fn has(&self, path: &Path) -> bool {
        let trees = self.trees.iter().map(|tree| &tree.at);
        trees.chain(self.links.iter().map(|(at, _)| at)).any(|at| path.starts_with(at))
    }

    fn has_writable(&self, path: &Path) -> bool {
        self.trees.iter().any(|tree| tree.is_writable && path.starts_with(&tree.at))
    }

    fn add(&mut self, path: PathBuf, attributes: u64) -> io::Result<()> {
        let is_folder = fs::metadata(&path)?.is_dir();
        let opened = open(&path, attributes)?;
        let is_writable = attributes == kernel::SHOWN_WRITABLE;
        self.trees.push(Tree { at: path, opened, is_folder, is_writable });
        Ok(())
    }
}

/// Builds the root in the process's own table of mounts, and enters it. The current folder is then the working folder.
pub(super) fn build(shown: &Shown, folders: &Folders) -> io::Result<()> {
    // From now on mounts made here do not show elsewhere, and the other way round.
    done(kernel::mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_PRIVATE, c""))?;
    let options = c"size=1m,nr_inodes=4k,mode=755";
    let place = PLACES.into_iter().find(|at| kernel::mount(c"none", at, c"tmpfs", PLAIN, options));
    done(place.is_some_and(kernel::enter_folder))?;
    let work = inside(&folders.work);
    for folder in ["proc", "dev", "tmp"].map(Path::new).into_iter().chain([work]) {
        fs::create_dir(folder)?;
    }
    // Where another system lies over parts of `/proc`, as in some containers, there is none.
    kernel::mount(c"proc", c"proc", c"proc", QUIET | libc::MS_RDONLY, c"");
    make_folders(folders)?;
    for tree in shown.trees.iter().chain(&shown.devices) {
        attach(tree)?;
    }
    fs::create_dir_all("etc")?;
    for (at, text) in users(&folders.work.to_string_lossy()) {
        // The caller's own is in its place, if it is shown.
        if let Ok(mut file) = fs::OpenOptions::new().write(true).create_new(true).open(at) {
            file.write_all(text.as_bytes())?;
        }
    }
    for (at, target) in &shown.links {
        symlink(target, inside(at))?;
    }
    for (name, target) in LINKS {
        symlink(target, Path::new("dev").join(name))?;
    }
    done(kernel::pivot_here())?;
    // The old root lies over the new one, at the same place.
    done(kernel::unmount(c".") && kernel::enter_folder(c"/"))?;
    let flags = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | PLAIN;
    done(kernel::mount(c"none", c"/", c"none", flags, c""))?;
    done(kernel::enter_folder(&text(&folders.work)?))
}

/// Files by which a program finds the name and the home of its user. In a user namespace of its own everybody is nobody.
fn users(home: &str) -> [(&'static str, String); 2] {
    [
        ("etc/passwd", format!("nobody:x:{NOBODY}:{NOBODY}:nobody:{home}:/bin/sh\n")),
        ("etc/group", format!("nogroup:x:{NOBODY}:\n")),
    ]
}

/// Mounts the folders in memory below the current folder.
fn make_folders(folders: &Folders) -> io::Result<()> {
    let names = (folders.bytes / BYTES_OF_NAME).max(LEAST_NAMES);
    let options =
        format!("size={},nr_inodes={names},uid={NOBODY},gid={NOBODY},mode=0700", folders.bytes);
    let options = CString::new(options).map_err(io::Error::other)?;
    let mount = |at: &CStr| done(kernel::mount(c"none", at, c"tmpfs", PLAIN, &options));
    let work = inside(&folders.work);
    if !folders.are_together {
        mount(&text(work)?)?;
        return mount(c"tmp");
    }
    // Two folders of one file system, which is itself nowhere.
    mount(c"tmp")?;
    let opened = ["tmp/work", "tmp/tmp"].map(|folder| -> io::Result<OwnedFd> {
        fs::create_dir(folder)?;
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        chown(folder, Some(user), Some(group))?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        Ok(open_tree(CWD, folder, flags)?)
    });
    done(kernel::unmount(c"tmp"))?;
    for (opened, at) in opened.into_iter().zip([work, Path::new("tmp")]) {
        move_mount(&opened?, "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    }
    Ok(())
}

fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

fn attach(tree: &Tree) -> io::Result<()> {
    let at = inside(&tree.at);
    fs::create_dir_all(if tree.is_folder { at } else { at.parent().unwrap_or(at) })?;
    if !tree.is_folder {
        fs::OpenOptions::new().create(true).append(true).open(at)?;
    }
    let from = tree.opened.as_fd();
    move_mount(from, "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    Ok(())
}

/// A path below the current folder.
fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn open(path: &Path, attributes: u64) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(CWD, path, flags)?;
    done(kernel::set_mount_attributes(tree.as_fd(), attributes))?;
    Ok(tree)
}

fn system_folders() -> Vec<PathBuf> {
    let libraries = fs::read_dir("/").into_iter().flatten().flatten().map(|entry| entry.path());
    let libraries = libraries.filter(|path| path.as_os_str().as_bytes().starts_with(b"/lib"));
    let all = SYSTEM.map(PathBuf::from).into_iter().chain(libraries);
    all.filter(|path| path.is_dir()).collect()
}

fn done(worked: bool) -> io::Result<()> {
    if worked { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Opens the working folder, for the host, and makes empty files in it: the host may not be a user that could.
pub(super) fn open_work(work: &Path, files: &[OsString]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let work = rustix::fs::open(work, flags, Mode::empty())?;
    for name in files {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        openat(&work, name, flags, Mode::from_raw_mode(0o644))?;
    }
    Ok(work)
}

/// Lets the host read all that lies in the working folder, whatever modes the program has left.
pub(super) fn open_modes(work: &OwnedFd) {
    // Failures leave a file that the host cannot read; it says so.
    let _ = fchmod(work, Mode::RWXU);
    let Ok(entries) = Dir::read_from(work) else { return };
    for entry in entries.map_while(Result::ok) {
        let name = entry.file_name();
        let is_file = statat(work, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::RegularFile);
        if is_file {
            let _ = chmodat(work, name, Mode::RUSR | Mode::WUSR, AtFlags::empty());
        }
    }
}
