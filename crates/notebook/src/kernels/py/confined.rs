//! A kernel in confinement: the launcher that starts it, its limits, and its end.
//!
//! In: options, the ends of pipes and sockets that the kernel gets. Out: its process, whose number is the launcher's, and an
//! account of the confinement. `crates/confine` describes the processes.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::Duration,
};

use isolane_child::{
    Ending, Lasting,
    interpreter::{Interpreter, find_python},
};
use isolane_confine::{
    interpreter::{
        Connection, ControlGroup, FIRST_INHERITED, Folders, NotStarted, Prepared, Program, words,
    },
    program::{NAME, ProgramConfinement, Required, find_launcher},
};
use tokio::{process::Command, task::spawn_blocking};

use super::{
    Refused, interpreter,
    launch::{Ends, arguments, own_variables},
    shown::{HOME, plain},
};
use crate::PyOptions;

/// The numbers of the descriptors that a kernel inherits.
pub(super) const NUMBERS: [i32; 3] = [FIRST_INHERITED, FIRST_INHERITED + 1, FIRST_INHERITED + 2];

/// How long the last process may take to end after it was killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// An exit code above this one stands for a signal.
const SIGNALS: i32 = 128;

/// Where programs find others, after those beside the interpreter.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Settings of the system that libraries read: fonts, certificates, types of files, and names of the network.
const SETTINGS: &[&str] = &[
    "/etc/fonts",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/crypto-policies",
    "/etc/mime.types",
];
const SETTINGS_OF_NETWORK: &[&str] = &[
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
];

/// The confinement of a kernel that runs. All of its processes end when this is dropped.
#[derive(Debug)]
pub(super) struct Confined {
    prepared: Prepared,
    group: Group,
    /// Closed when the kernel is to end.
    lifeline: OwnedFd,
}

/// A control group. To remove it takes as long as its last process takes to end, which a thread of its own waits for.
#[derive(Debug)]
struct Group(Option<ControlGroup>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0.take() {
            // Without a thread the group stays, until another process of this library sweeps it away.
            drop(thread::Builder::new().spawn(move || drop(group)));
        }
    }
}

/// Everything that a launch has ready before the launcher starts.
struct Launch {
    command: Command,
    connection: Connection,
    program: Program,
    group: Group,
}

/// Starts a kernel.
///
/// # Errors
/// The reason why there is none.
pub(super) async fn start(
    options: &PyOptions,
    variables: &BTreeMap<String, String>,
    ends: Ends,
) -> Result<(Lasting, Confined), Refused> {
    let Launch { mut command, mut connection, program, group } =
        Launch::new(options, variables).await?;
    let Ends { streams: [stdout, stderr], inherited } = ends;
    command.stdout(stdout).stderr(stderr);
    let lasting = Lasting::start(command, Vec::new()).map_err(|error| cannot_launch(&error))?;
    let required = options.required_items();
    let (prepared, lifeline) = in_thread(move || {
        let prepared = prepare(&mut connection, &program, &inherited, &required)?;
        drop(inherited);
        let lifeline = connection.start().map_err(|error| not_started(error, &program.path))?;
        Ok((prepared, lifeline))
    })
    .await?;
    Ok((lasting, Confined { prepared, group, lifeline }))
}

/// Has a kernel confined that never starts, and ends it.
///
/// # Errors
/// The reason why none could start.
pub(super) async fn trial(options: &PyOptions) -> Result<ProgramConfinement, Refused> {
    let Launch { mut command, mut connection, program, group } =
        Launch::new(options, &BTreeMap::new()).await?;
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let lasting = Lasting::start(command, Vec::new()).map_err(|error| cannot_launch(&error))?;
    let required = options.required_items();
    let tried = in_thread(move || {
        let prepared = prepare(&mut connection, &program, &[], &required)?;
        Ok(ProgramConfinement::new(prepared.confinement, prepared.in_group))
    })
    .await;
    lasting.end().await;
    drop(group);
    tried
}

impl Launch {
    async fn new(
        options: &PyOptions,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self, Refused> {
        let name = interpreter::program(options);
        let (asked, memory_bytes) = (options.clone(), options.memory_limit_bytes);
        let (found, ready) = tokio::join!(
            find_python(&name, HOME),
            in_thread(move || {
                let worker = launcher(asked.worker.as_deref())?;
                let shown = Shown::of(&asked)?;
                Ok((worker, shown, Group(ControlGroup::new(memory_bytes))))
            })
        );
        let found = found.map_err(|error| interpreter::not_started(&name, &error))?;
        let (worker, shown, group) = ready?;
        let program = program(options, variables, found, shown, &group);
        let (connection, socket) = Connection::new().map_err(|error| cannot_launch(&error))?;
        let mut command = Command::new(worker);
        command.arg0(NAME).args(words()).env_clear().current_dir("/").stdin(socket);
        Ok(Self { command, connection, program, group })
    }
}

/// The parts of this machine's file system that a kernel has, beside its interpreter and the system's folders.
struct Shown {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    start_in: Option<PathBuf>,
}

impl Shown {
    fn of(options: &PyOptions) -> Result<Self, Refused> {
        let shown = |path: &PathBuf| {
            let plain = plain(path).and_then(|plain| fs::metadata(&plain).map(|_| plain));
            plain.map_err(|error| {
                let path = path.display();
                Refused::from(format!("{path} cannot be shown to a kernel: {error}"))
            })
        };
        let all = |paths: &[PathBuf]| paths.iter().map(shown).collect::<Result<Vec<_>, _>>();
        let start_in = options.working_folder.as_ref().map(shown).transpose()?;
        let mut readable = all(&options.readable)?;
        readable.extend(start_in.clone());
        // Python passes over those of its folders that are not there.
        readable.extend(options.path.iter().filter_map(|path| shown(path).ok()));
        let of_network = if options.network { SETTINGS_OF_NETWORK } else { &[] };
        let settings = SETTINGS.iter().chain(of_network).map(PathBuf::from);
        readable.extend(settings.filter(|path| path.exists()));
        Ok(Self { readable, writable: all(&options.writable)?, start_in })
    }
}

fn program(
    options: &PyOptions,
    variables: &BTreeMap<String, String>,
    found: Interpreter,
    shown: Shown,
    group: &Group,
) -> Program {
    let Interpreter { path, mut readable } = found;
    readable.extend(shown.readable);
    let mut search = path.parent().map(|folder| folder.as_os_str().to_owned()).unwrap_or_default();
    search.push(format!(":{PATH}"));
    let given = variables.iter().map(|(name, value)| (name.into(), value.into()));
    let own = own_variables(HOME.as_ref(), Some(search));
    let own = own.into_iter().filter(|(name, _): &(OsString, _)| {
        name.to_str().is_none_or(|name| !variables.contains_key(name))
    });
    Program {
        args: arguments(FIRST_INHERITED).into(),
        env: own.chain(given).collect(),
        readable,
        writable: shown.writable,
        folders: Folders { work: HOME.into(), bytes: options.scratch_bytes, are_together: true },
        start_in: shown.start_in,
        memory_bytes: options.memory_limit_bytes,
        processes: options.max_processes,
        may_fork: options.processes,
        network: options.network,
        group: group.0.iter().map(ControlGroup::members).collect(),
        ..Program::new(path)
    }
}

/// Has a program confined, as far as this machine can, and at least as it must be. It blocks.
fn prepare(
    connection: &mut Connection,
    program: &Program,
    inherited: &[OwnedFd],
    required: &Required,
) -> Result<Prepared, Refused> {
    let stdin = File::open("/dev/null").map_err(|error| cannot_launch(&error))?;
    let inherited: Vec<_> = inherited.iter().map(|descriptor| descriptor.as_fd()).collect();
    let refused = |items, in_group| {
        required.check(items).map_err(|reason| {
            let confinement = Some(ProgramConfinement::new(items, in_group));
            Refused { reason, confinement }
        })
    };
    match connection.prepare(program, stdin.as_fd(), &inherited) {
        Ok(prepared) => {
            refused(prepared.confinement, prepared.in_group)?;
            Ok(prepared)
        }
        Err(NotStarted::Unconfined(items)) => {
            refused(items, false)?;
            Err(cannot_launch(&io::Error::other("it cannot confine a program")))
        }
        Err(error) => Err(not_started(error, &program.path)),
    }
}

impl Confined {
    pub(super) fn process_id(&self) -> Option<u32> {
        self.prepared.process_id
    }

    pub(super) fn is_in_group(&self) -> bool {
        self.prepared.in_group
    }

    pub(super) fn confinement(&self) -> ProgramConfinement {
        ProgramConfinement::new(self.prepared.confinement, self.prepared.in_group)
    }

    /// How the kernel ended, by the end of its launcher. `None` if the system killed it as its group was full.
    pub(super) fn ending(&self, ending: Ending) -> Option<Ending> {
        let ending = match ending {
            Ending::Exited(Some(code)) if code > SIGNALS => Ending::Signalled(code - SIGNALS),
            other => other,
        };
        let is_killed = ending == Ending::Signalled(rustix::process::Signal::KILL.as_raw());
        let is_full = is_killed && self.group.0.as_ref().is_some_and(ControlGroup::has_killed);
        (!is_full).then_some(ending)
    }

    /// Waits until none of its processes is left, on a thread that may block.
    pub(super) async fn end(self) {
        let Self { prepared, group, lifeline } = self;
        drop(lifeline);
        // A process in the middle of a long call takes a moment to end.
        let _ = spawn_blocking(move || prepared.wait(PATIENCE)).await;
        drop(group);
    }
}

fn launcher(named: Option<&Path>) -> Result<PathBuf, Refused> {
    find_launcher(named).map_err(|missing| Refused::from(missing.message("confined cells need")))
}

fn not_started(error: NotStarted, program: &Path) -> Refused {
    match error {
        NotStarted::Program(error) => interpreter::not_started(program, &error).into(),
        NotStarted::Launcher(error) | NotStarted::Files(error) => cannot_launch(&error),
        NotStarted::Unconfined(_) => cannot_launch(&io::Error::other("it cannot be confined")),
    }
}

fn cannot_launch(error: &io::Error) -> Refused {
    format!("a confined program cannot be launched: {error}").into()
}

/// Does something that blocks.
async fn in_thread<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    // It fails only when this library's thread ends.
    spawn_blocking(act).await.unwrap_or_else(|error| Err(cannot_launch(&io::Error::other(error))))
}
