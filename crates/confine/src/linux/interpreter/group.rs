//! A control group of one program, which counts the memory of all its processes together.
//!
//! In: a limit. Out: a group below or beside that of this process, where the system lets it make one and counts memory
//! there; removed when it is dropped. Both versions of control groups will do. A group is made beside one's own only where
//! it was delegated: it belongs to this user, or bears the mark that service managers set.
//!
//! A host that is killed leaves its groups behind, and a later process may have its number. So the owner of a group holds a
//! lock on its folder: whoever gets the lock may remove the group.

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

const PREFIX: &str = "isolane-exec-";

/// How long the last processes of a group may take to leave it.
const PATIENCE: Duration = Duration::from_secs(2);

/// A control group. Dropping it removes it.
#[derive(Debug)]
pub struct ControlGroup {
    folder: Owned,
    /// The file in which a process writes its number to join.
    members: &'static str,
    is_first_version: bool,
}

/// A folder in which groups can be made, and the version of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    folder: PathBuf,
    is_first_version: bool,
}

impl ControlGroup {
    /// A new group with that limit; `None` where the system delegates none.
    #[must_use]
    pub fn new(memory_bytes: u64) -> Option<Self> {
        places().into_iter().find_map(|place| Self::at(&place, memory_bytes).ok())
    }

    /// The file in which a process of one thread writes `0` to join.
    #[must_use]
    pub fn members(&self) -> PathBuf {
        self.folder.path.join(self.members)
    }

    /// Whether the system has killed a process of the group because the group was full.
    #[must_use]
    pub fn has_killed(&self) -> bool {
        let told = if self.is_first_version { "memory.oom_control" } else { "memory.events" };
        let told = fs::read_to_string(self.folder.path.join(told)).unwrap_or_default();
        told.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count != "0"))
    }

    fn at(place: &Place, memory_bytes: u64) -> io::Result<Self> {
        sweep(&place.folder);
        // A thread that moves itself need not wait for all other processes of the machine, as others have to.
        let members = if place.is_first_version { "tasks" } else { "cgroup.procs" };
        let folder = Owned::new(&place.folder)?;
        let made = Self { folder, members, is_first_version: place.is_first_version };
        let (memory, all) = if place.is_first_version {
            ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        } else {
            ("memory.max", "memory.swap.max")
        };
        fs::write(made.folder.path.join(memory), memory_bytes.to_string())?;
        let all = made.folder.path.join(all);
        // Where swap is not counted, there is no such file.
        if all.exists() {
            let bytes = if place.is_first_version { memory_bytes } else { 0 };
            fs::write(all, bytes.to_string())?;
        }
        // A process must be able to join.
        fs::OpenOptions::new().write(true).open(made.members())?;
        Ok(made)
    }
}

/// The folder of a group. Dropping it removes it.
#[derive(Debug)]
struct Owned {
    path: PathBuf,
    /// Open and locked.
    _lock: File,
}

impl Owned {
    /// A new folder in that one.
    fn new(place: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = place.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => {}
                // An earlier process of this number has left it, and somebody lives there or owns it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // Somebody who sweeps may take it for one that was left, until it is locked.
            if let Some(lock) = lock(&path)?.filter(|_| path.exists()) {
                return Ok(Self { path, _lock: lock });
            }
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let started = Instant::now();
        while let Err(error) = fs::remove_dir(&self.path) {
            let is_busy = error.kind() == io::ErrorKind::ResourceBusy;
            if !is_busy || started.elapsed() > PATIENCE {
                // It is swept away later.
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The lock of a folder; `None` if somebody else has it, or the folder is gone.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let folder = match File::open(path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(folder)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes groups that nobody owns and nobody lives in: their owners ended without doing so.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && let Ok(Some(_lock)) = lock(&entry.path())
        {
            // It is refused while a process is in it.
            drop(fs::remove_dir(entry.path()));
        }
    }
}

/// The places where groups may be made, the best first.
fn places() -> Vec<Place> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let found = candidates(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
    found.into_iter().filter(Place::is_delegated).collect()
}

/// The group of this process and, in the second version, the one around it.
fn candidates(groups: &str, mounts: &str) -> Vec<Place> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let is_first_version = number != "0";
        if is_first_version && !controllers.split(',').any(|controller| controller == "memory") {
            continue;
        }
        let Some(folder) = folder_of(Path::new(path), is_first_version, mounts) else { continue };
        let around = folder.parent().map(Path::to_owned);
        let is_top = path == "/";
        found.push(Place { folder, is_first_version });
        // Processes and further groups exclude each other in one group of the second version.
        if let Some(folder) = around.filter(|_| !is_first_version && !is_top) {
            found.push(Place { folder, is_first_version });
        }
    }
    found
}

/// The folder of a group.
fn folder_of(group: &Path, is_first_version: bool, mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let right = if is_first_version {
            kind.next() == Some("cgroup")
                && kind.nth(1)?.split(',').any(|option| option == "memory")
        } else {
            kind.next() == Some("cgroup2")
        };
        let mut mount = mount.split(' ').skip(3);
        let (root, at) = (mount.next()?, mount.next()?);
        let below = group.strip_prefix(root).ok().filter(|_| right)?;
        Some(Path::new(at).join(below))
    })
}

impl Place {
    fn is_delegated(&self) -> bool {
        if self.is_first_version {
            return true;
        }
        let enabled = fs::read_to_string(self.folder.join("cgroup.subtree_control"));
        let counts = enabled.is_ok_and(|all| all.split_whitespace().any(|one| one == "memory"));
        counts && (!rustix::process::geteuid().is_root() || self.is_marked())
    }

    fn is_marked(&self) -> bool {
        ["trusted.delegate", "user.delegate"].into_iter().any(|name| {
            let mut value = [0; 8];
            let length = rustix::fs::getxattr(&self.folder, name, &mut value[..]);
            length.is_ok_and(|length| value.starts_with(b"1") && length > 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: &str = "24 1 0:22 / /sys rw - sysfs sysfs rw\n\
        30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const FIRST: &str = "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        32 24 0:28 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    #[test]
    fn a_group_of_the_second_version_is_made_in_its_own_or_beside_it() {
        let found = candidates("0::/user.slice/app.slice/run.scope\n", SECOND);
        let expected = ["run.scope", ""].map(|name| Place {
            folder: Path::new("/sys/fs/cgroup/user.slice/app.slice").join(name),
            is_first_version: false,
        });
        assert_eq!(found.len(), 2);
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.folder.components().as_path(), expected.folder.components().as_path());
        }
        assert_eq!(candidates("0::/\n", SECOND).len(), 1);
    }

    #[test]
    fn groups_of_an_earlier_process_of_this_number_are_in_nobodys_way() {
        let place = tempfile::tempdir().expect("a folder");
        let left: Vec<_> = (0..100)
            .map(|number| place.path().join(format!("{PREFIX}{}-{number}", std::process::id())))
            .collect();
        for path in &left {
            fs::create_dir(path).expect("a folder");
        }
        // Somebody lives in the first half, as far as its removal shows.
        let (inhabited, empty) = left.split_at(50);
        for path in inhabited {
            fs::write(path.join("member"), "").expect("a file");
        }
        sweep(place.path());
        assert!(inhabited.iter().all(|path| path.exists()));
        assert!(!empty.iter().any(|path| path.exists()));
        let owned = [(); 2].map(|()| Owned::new(place.path()).expect("a group"));
        sweep(place.path());
        let paths = owned.each_ref().map(|owned| owned.path.clone());
        assert!(paths.iter().all(|path| path.exists() && !inhabited.contains(path)), "{paths:?}");
        drop(owned);
        assert!(!paths.iter().any(|path| path.exists()));
    }

    #[test]
    fn a_group_of_the_first_version_is_made_in_its_own() {
        let found = candidates("4:memory:/docker/ab/x\n1:cpu:/\n", FIRST);
        let folder = PathBuf::from("/sys/fs/cgroup/memory/x");
        assert_eq!(found, [Place { folder, is_first_version: true }]);
        assert_eq!(candidates("4:memory:/elsewhere\n", FIRST), []);
        assert_eq!(candidates("", FIRST), []);
    }
}
