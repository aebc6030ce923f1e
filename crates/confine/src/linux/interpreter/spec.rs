//! Messages between a host and the launcher of a program.
//!
//! In: a [`Program`], a [`Reply`]. Out: bytes, and back. Both sides are of one build; bytes of another one are refused.

use crate::Confinement;
use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
    time::Duration,
};

/// Distinguishes this version of the messages from others.
const VERSION: u64 = 0x1501_a4e0_0000_0003;

/// The most bytes of a message: arguments and variables have a bound in the system as well.
pub(super) const MOST_BYTES: u32 = 16 << 20;

/// The word that starts `isolane-worker` as a launcher.
pub(super) const WORD: &str = "--interpreter";

/// The arguments that start `isolane-worker` as a launcher.
#[must_use]
pub fn words() -> [&'static str; 1] {
    [WORD]
}

/// A program, and its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its absolute path.
    pub path: PathBuf,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// All of its environment.
    pub env: Vec<(OsString, OsString)>,
    /// Absolute paths that it may read beside the system's folders.
    pub readable: Vec<PathBuf>,
    /// Absolute paths of folders that it may read and write.
    pub writable: Vec<PathBuf>,
    /// The folders that it has in memory.
    pub folders: Folders,
    /// The folder in which it starts, if its user may enter it; by default its working folder.
    pub start_in: Option<PathBuf>,
    /// Names of files in its working folder. They are made, and empty.
    pub files: Vec<OsString>,
    /// Bytes of memory: of all its processes in a control group, else of each.
    pub memory_bytes: u64,
    /// The most processes and threads at a time.
    pub processes: u64,
    /// Whether it may start processes. It may always start threads.
    pub may_fork: bool,
    /// Whether it has the caller's network: TCP and UDP over IP, to any address.
    pub network: bool,
    /// CPU time of each process, rounded up to whole seconds.
    pub cpu: Option<Duration>,
    /// Files of a control group; a process that writes its number there joins it. Empty without a group.
    pub group: Vec<PathBuf>,
}

/// The two folders in memory that a program may write to: its working folder, and `/tmp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The working folder, which is the home of its user: a name below the root.
    pub work: PathBuf,
    /// The bytes of each of both.
    pub bytes: u64,
    /// Whether both have these bytes together.
    pub are_together: bool,
}

impl Default for Folders {
    fn default() -> Self {
        Self { work: "/work".into(), bytes: 64 << 20, are_together: false }
    }
}

/// The program's report before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It is confined like this. The flag says that it has joined its control group.
    Ready(Confinement, bool),
    /// Its files could not be made, by this error of the system.
    Unstaged(i32),
    /// It did not start, by this error of the system.
    Failed(i32),
}

/// The host's word to start.
pub(super) const GO: u8 = 1;

impl Program {
    /// A program without arguments and variables: 256 MiB of memory, 128 processes, no network.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            args: Vec::new(),
            env: Vec::new(),
            readable: Vec::new(),
            writable: Vec::new(),
            folders: Folders::default(),
            start_in: None,
            files: Vec::new(),
            memory_bytes: 256 << 20,
            processes: 128,
            may_fork: true,
            network: false,
            cpu: None,
            group: Vec::new(),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let numbers = [
            VERSION,
            self.memory_bytes,
            self.processes,
            self.cpu.map_or(0, |cpu| seconds(cpu).saturating_add(1)),
            self.folders.bytes,
            self.folders.are_together.into(),
            self.may_fork.into(),
            self.network.into(),
        ];
        out.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        put_all(&mut out, [self.path.as_os_str()].into_iter());
        put_all(&mut out, self.args.iter().map(OsString::as_os_str));
        put_all(&mut out, self.env.iter().flat_map(|(name, value)| [&**name, &**value]));
        put_all(&mut out, self.readable.iter().map(|path| path.as_os_str()));
        put_all(&mut out, self.writable.iter().map(|path| path.as_os_str()));
        put_all(&mut out, [self.folders.work.as_os_str()].into_iter());
        put_all(&mut out, self.start_in.iter().map(|path| path.as_os_str()));
        put_all(&mut out, self.files.iter().map(OsString::as_os_str));
        put_all(&mut out, self.group.iter().map(|path| path.as_os_str()));
        out
    }

    pub(super) fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let from = &mut bytes;
        if take_number(from)? != VERSION {
            return None;
        }
        let (memory_bytes, processes, cpu) =
            (take_number(from)?, take_number(from)?, take_number(from)?);
        let bytes = take_number(from)?;
        let (are_together, may_fork, network) =
            (take_flag(from)?, take_flag(from)?, take_flag(from)?);
        let path = take_all(from)?.pop()?.into();
        let args = take_all(from)?;
        let env = take_all(from)?;
        let env = env.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let (readable, writable) = (take_paths(from)?, take_paths(from)?);
        let folders = Folders { work: take_paths(from)?.pop()?, bytes, are_together };
        let start_in = take_paths(from)?.pop();
        let files = take_all(from)?;
        let group = take_paths(from)?;
        let cpu = (cpu > 0).then(|| Duration::from_secs(cpu - 1));
        from.is_empty().then_some(Self {
            path,
            args,
            env,
            readable,
            writable,
            folders,
            start_in,
            files,
            memory_bytes,
            processes,
            may_fork,
            network,
            cpu,
            group,
        })
    }
}

impl Reply {
    pub(super) const BYTES: usize = 5;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        match self {
            Self::Ready(confinement, in_group) => {
                let [low, high] = confinement.to_bytes();
                [0, low, high, u8::from(in_group), 0]
            }
            Self::Failed(error) => error_after(1, error),
            Self::Unstaged(error) => error_after(2, error),
        }
    }

    pub(super) fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        match bytes {
            [0, low, high, in_group, 0] => {
                Some(Self::Ready(Confinement::from_bytes([low, high])?, in_group == 1))
            }
            [1, error @ ..] => Some(Self::Failed(i32::from_le_bytes(error))),
            [2, error @ ..] => Some(Self::Unstaged(i32::from_le_bytes(error))),
            _ => None,
        }
    }
}

fn error_after(kind: u8, error: i32) -> [u8; Reply::BYTES] {
    let [a, b, c, d] = error.to_le_bytes();
    [kind, a, b, c, d]
}

/// Whole seconds that are not less.
fn seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0))
}

fn put_all<'a>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'a OsStr> + Clone) {
    out.extend((texts.clone().count() as u64).to_le_bytes());
    for text in texts {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    }
}

fn take_number(from: &mut &[u8]) -> Option<u64> {
    let (number, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u64::from_le_bytes(*number))
}

fn take_flag(from: &mut &[u8]) -> Option<bool> {
    match take_number(from)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn take_paths(from: &mut &[u8]) -> Option<Vec<PathBuf>> {
    Some(take_all(from)?.into_iter().map(PathBuf::from).collect())
}

fn take_all(from: &mut &[u8]) -> Option<Vec<OsString>> {
    let count = take_number(from)?;
    (0..count)
        .map(|_| {
            let length = usize::try_from(take_number(from)?).ok()?;
            let (text, rest) = from.split_at_checked(length)?;
            *from = rest;
            Some(OsString::from_vec(text.to_vec()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_crosses_as_bytes() {
        let program = Program {
            path: "/usr/bin/python3".into(),
            args: vec!["-".into(), "".into()],
            env: vec![("HOME".into(), "/work".into())],
            readable: vec!["/opt/a".into()],
            writable: vec!["/home/ada/b".into()],
            folders: Folders { work: "/kernel".into(), bytes: 1 << 20, are_together: true },
            start_in: Some("/home/ada/b".into()),
            files: vec!["a.txt".into()],
            memory_bytes: 1 << 28,
            processes: 128,
            may_fork: false,
            network: true,
            cpu: Some(Duration::from_secs(31)),
            group: Vec::new(),
        };
        let bytes = program.to_bytes();
        assert_eq!(Program::from_bytes(&bytes), Some(program));
        for length in 0..bytes.len() {
            assert_eq!(Program::from_bytes(&bytes[..length]), None);
        }
    }

    #[test]
    fn a_reply_crosses_as_bytes() {
        for reply in [
            Reply::Ready(Confinement::ALL, true),
            Reply::Ready(Confinement::default(), false),
            Reply::Failed(libc::ENOENT),
            Reply::Unstaged(libc::ENOSPC),
        ] {
            assert_eq!(Reply::from_bytes(reply.to_bytes()), Some(reply));
        }
        assert_eq!(Reply::from_bytes([3; 5]), None);
    }
}
