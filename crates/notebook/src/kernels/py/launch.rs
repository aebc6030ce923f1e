//! The start of a kernel: its process, with the rights of this one or confined, and its program.
//!
//! In: options and variables. Out: a process that has been sent its program, and the ways to it.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::UnixStream as StdStream,
    },
    path::{Path, PathBuf},
    process::Stdio,
};

use isolane_child::{Ending, Lasting};
use isolane_confine::program::ProgramConfinement;
use serde_json::json;
use tokio::{
    io::AsyncWriteExt as _,
    net::{UnixStream, unix::pipe},
    process::Command,
};

use super::{
    Refused,
    confined::{self, Confined},
    interpreter,
    scratch::Scratch,
    shown,
};
use crate::{Isolation, PyOptions, text::screen::Stream};

/// Reads the kernel's program from its private descriptor and runs it.
const BOOT: &str = include_str!("boot.py");

/// The kernel's program.
const PROGRAM: &str = concat!(
    include_str!("kernel/channel.py"),
    include_str!("kernel/display.py"),
    include_str!("kernel/ipython.py"),
    include_str!("kernel/source.py"),
    include_str!("kernel/encode.py"),
    include_str!("kernel/decode.py"),
    include_str!("kernel/host.py"),
    include_str!("kernel/parallel.py"),
    include_str!("kernel/nesting.py"),
    include_str!("kernel/text.py"),
    include_str!("kernel/kernel.py"),
);

/// The bytes that a pipe of a kernel holds.
pub(super) const PIPE_BYTES: usize = 1 << 20;

/// A process that was started.
pub(super) struct Started {
    pub(super) lasting: Lasting,
    pub(super) stream: UnixStream,
    pub(super) pipes: [(Stream, pipe::Receiver); 2],
    pub(super) room: Room,
}

/// Everything of a kernel beside its process, and ended with it.
#[derive(Debug)]
pub(super) enum Room {
    /// The folder of one with the rights of this process.
    Open(Scratch),
    /// The confinement.
    Confined(Confined),
}

/// The ends of a kernel's pipes and sockets that the kernel gets.
pub(super) struct Ends {
    /// Its standard output and its standard error.
    pub(super) streams: [io::PipeWriter; 2],
    /// Its private socket, and the reading ends of both streams.
    pub(super) inherited: [OwnedFd; 3],
}

impl Room {
    /// The number of the kernel's own process, where the system tells it.
    pub(super) fn process_id(&self, lasting: &Lasting) -> Option<u32> {
        match self {
            Self::Open(_) => lasting.id(),
            Self::Confined(confined) => confined.process_id(),
        }
    }

    /// Whether the system itself counts all memory of the kernel.
    pub(super) fn counts_memory(&self) -> bool {
        matches!(self, Self::Confined(confined) if confined.is_in_group())
    }

    /// The confinement, if there is one.
    pub(super) fn confinement(&self) -> Option<ProgramConfinement> {
        match self {
            Self::Open(_) => None,
            Self::Confined(confined) => Some(confined.confinement()),
        }
    }

    /// How the kernel ended, by the end of the process that was started. `None` stands for too much memory.
    pub(super) fn ending(&self, ending: Ending) -> Option<Ending> {
        match self {
            Self::Open(_) => Some(ending),
            Self::Confined(confined) => confined.ending(ending),
        }
    }

    /// Waits until nothing of the kernel is left, and removes its folder.
    pub(super) async fn remove(self) {
        match self {
            Self::Open(scratch) => scratch.remove().await,
            Self::Confined(confined) => confined.end().await,
        }
    }
}

/// Starts the process of a kernel, and sends it its program.
///
/// # Errors
/// The reason why there is none.
pub(super) async fn start(
    options: &PyOptions,
    variables: &BTreeMap<String, String>,
) -> Result<Started, Refused> {
    let program = interpreter::program(options);
    let failed = |error: io::Error| Refused::from(interpreter::not_started(&program, &error));
    let (ours, theirs) = StdStream::pair().map_err(failed)?;
    let ((stdout, stdout_end), (stderr, stderr_end)) =
        (io::pipe().map_err(failed)?, io::pipe().map_err(failed)?);
    widen(&stdout_end);
    widen(&stderr_end);
    let copies =
        [stdout.try_clone().map_err(failed)?.into(), stderr.try_clone().map_err(failed)?.into()];
    let [kernel_stdout, kernel_stderr] = copies;
    let ends = Ends {
        streams: [stdout_end, stderr_end],
        inherited: [theirs.into(), kernel_stdout, kernel_stderr],
    };
    let (lasting, room, numbers) = match options.isolation {
        Isolation::None => open(&program, options, variables, ends).map_err(failed)?,
        Isolation::Confined => {
            let (lasting, confined) = confined::start(options, variables, ends).await?;
            (lasting, Room::Confined(confined), confined::NUMBERS)
        }
    };
    let stream = send(ours, options, numbers).await.map_err(failed)?;
    let receiver = |pipe: io::PipeReader| pipe::Receiver::from_owned_fd(pipe.into());
    let pipes = [
        (Stream::Stdout, receiver(stdout).map_err(failed)?),
        (Stream::Stderr, receiver(stderr).map_err(failed)?),
    ];
    Ok(Started { lasting, stream, pipes, room })
}

/// A process with the rights of this one.
fn open(
    program: &Path,
    options: &PyOptions,
    variables: &BTreeMap<String, String>,
    ends: Ends,
) -> io::Result<(Lasting, Room, [i32; 3])> {
    let scratch = Scratch::new()?;
    let Ends { streams: [stdout, stderr], inherited } = ends;
    let numbers = inherited.each_ref().map(AsRawFd::as_raw_fd);
    let mut command = Command::new(program);
    command
        .args(arguments(numbers[0]))
        .current_dir(options.working_folder.as_deref().unwrap_or(scratch.path()))
        .env_clear()
        .envs(own_variables(scratch.path().as_os_str(), env::var_os("PATH")))
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr);
    let lasting = Lasting::start(command, inherited.into())?;
    Ok((lasting, Room::Open(scratch), numbers))
}

/// The arguments of the interpreter. The number is that of the kernel's private descriptor.
pub(super) fn arguments(channel: i32) -> [OsString; 6] {
    ["-X", "utf8", "-u", "-c", BOOT, &channel.to_string()].map(OsString::from)
}

/// The variables that each kernel has.
pub(super) fn own_variables(home: &OsStr, path: Option<OsString>) -> Vec<(OsString, OsString)> {
    let mut variables = vec![
        ("HOME", home.to_owned()),
        ("TMPDIR", home.to_owned()),
        ("MPLBACKEND", "agg".into()),
        ("LANG", env::var_os("LANG").unwrap_or_else(|| "C.UTF-8".into())),
    ];
    let kept = [("PATH", path), ("TZ", env::var_os("TZ"))];
    variables.extend(kept.into_iter().filter_map(|(name, value)| Some((name, value?))));
    variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// Sends a kernel its program, which then has the descriptors of these numbers.
async fn send(ours: StdStream, options: &PyOptions, numbers: [i32; 3]) -> io::Result<UnixStream> {
    ours.set_nonblocking(true)?;
    let mut stream = UnixStream::from_std(ours)?;
    let path: Vec<PathBuf> =
        options.path.iter().map(|path| absolute(path)).collect::<Result<_, _>>()?;
    let path: Vec<_> = path.iter().map(|path| path.to_string_lossy()).collect();
    // Numbers and lists of texts are the same in JSON and in Python.
    let [descriptor, stdout_number, stderr_number] = numbers;
    let (frame_bytes, data_bytes) = (options.frame_bytes, options.memory_limit_bytes);
    let call = format!(
        "\nstart({descriptor}, {stdout_number}, {stderr_number}, {frame_bytes}, {data_bytes}, {})\n",
        json!(path)
    );
    let source = PROGRAM.to_owned() + &call;
    let mut bytes = u32::try_from(source.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    bytes.extend(source.as_bytes());
    // One that has ended already is seen by its end.
    let _ = stream.write_all(&bytes).await;
    Ok(stream)
}

/// A path as a kernel knows it. One that leads nowhere is of no use, and does no harm.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    shown::plain(path).or_else(|_| std::path::absolute(path))
}

/// Gives a pipe more room, where the system can: a child that prints much waits less often.
fn widen(pipe: &io::PipeWriter) {
    #[cfg(target_os = "linux")]
    // A system may permit less; the pipe keeps its size then.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}
