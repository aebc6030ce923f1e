//! A call of a confined program, from its launcher's start to its last process's end.
//!
//! In: checked options, an input. Out: a result. The launcher's standard input is a socket, over which it learns what to
//! start and gets the standard input of the program. It opens the working folder to this side, which stages the input files
//! there and gives the word to start. When the call has ended, the output files are read from the folder, which is still
//! open although nobody else has it any more.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write as _},
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    pin::pin,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use isolane_child::{
    self as child, Bounds, Ending,
    interpreter::{self, Interpreter},
};
use isolane_confine::{
    interpreter::{Connection, ControlGroup, NotStarted, Prepared, Program, words},
    program::{NAME, NoLauncher, Required, find_launcher},
};
use rustix::fs::{Mode, OFlags, openat};
use tokio::{io::AsyncWriteExt as _, net::unix::pipe, process::Command};
use tokio_util::sync::CancellationToken;

use super::{Options, ProgramConfinement};
use crate::{
    CodeExecutionInput, CodeExecutionResult, ExecFile, ExecutorError, ExecutorErrorKind,
    InvocationContext,
    local::{in_thread, result},
    output_files::OutputFiles,
};

/// How long the last process may take to end after it was killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// CPU time beyond the wall time.
const CPU_AFTER: Duration = Duration::from_secs(1);

/// The working folder of programs.
const WORK: &str = "/work";

/// Where programs find others, after those beside the interpreter.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program that has started.
struct Started {
    prepared: Prepared,
    /// All processes end when this is closed.
    _lifeline: OwnedFd,
}

/// Everything that a call has ready before the launcher starts.
struct Call {
    command: Command,
    connection: Connection,
    program: Program,
    group: Option<ControlGroup>,
}

/// Runs a call in tokio.
pub(super) async fn run(
    options: Options,
    context: InvocationContext,
    input: CodeExecutionInput,
    cancelled: CancellationToken,
) -> Result<CodeExecutionResult, ExecutorError> {
    let CodeExecutionInput { code, input_files, .. } = input;
    let names = input_files.iter().map(|file| file.name.clone().into()).collect();
    let (options, call) = Call::new(options, names, &cancelled).await?;
    let Options { executor, required, .. } = options;
    let Call { command, connection, program, group } = call;
    let inputs: Arc<[ExecFile]> = input_files.into();

    let (stdin, writer) = io::pipe().map_err(cannot_launch)?;
    let outcome = Mutex::new(None);
    let staged = Arc::clone(&inputs);
    let start = in_thread(move || start(connection, &program, stdin, &staged, &required));
    let mut starting = pin!(async { start.await.and_then(|started| started) });
    let feeding = async {
        let started = starting.as_mut().await;
        let has_started = started.is_ok();
        *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
        // A program that does not read its code to the end is within its rights.
        if has_started && let Ok(mut writer) = pipe::Sender::from_owned_fd(writer.into()) {
            drop(writer.write_all(code.as_bytes()).await);
        }
    };
    let stop = async {
        cancelled.cancelled().await;
        Ending::Cancelled
    };
    let bounds =
        Bounds { timeout: executor.timeout, output_limit_bytes: executor.output_limit_bytes };
    let ended = child::run_fed(command, |_| feeding, bounds, &context, stop)
        .await
        .map_err(cannot_launch)?;

    let outcome = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    let outcome = match (outcome, ended.ending) {
        // The launcher has ended, and its last answer is still being read.
        (None, Ending::Exited(_) | Ending::Signalled(_)) => Some(starting.await),
        (outcome, _) => outcome,
    };
    let name = &executor.interpreter;
    let started = match (outcome, ended.ending) {
        (Some(Ok(started)), _) => Some(started),
        // It was killed before it started.
        (_, Ending::TimedOut | Ending::Cancelled | Ending::Overfull) | (None, _) => None,
        (Some(Err(error)), _) => return Err(error),
    };
    let is_killed = !matches!(ended.ending, Ending::Exited(_));
    let outputs = in_thread(move || {
        let outputs = started.map_or_else(OutputFiles::default, |started| {
            if is_killed {
                // A process in the middle of a long call takes a moment to end.
                let _ended = started.prepared.wait(PATIENCE);
            }
            OutputFiles::collect(&started.prepared.work, &inputs)
        });
        drop(group);
        outputs
    });
    result(ended, outputs.await?, name, executor.timeout)
}

/// The confinement that a program would have.
pub(super) async fn trial(
    options: Options,
    cancelled: CancellationToken,
) -> Result<ProgramConfinement, ExecutorError> {
    let (_, call) = Call::new(options, Vec::new(), &cancelled).await?;
    let Call { mut command, mut connection, program, group } = call;
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut launcher = command.spawn().map_err(cannot_launch)?;
    drop(command);
    let tried = in_thread(move || {
        let stdin = File::open("/dev/null").map_err(cannot_launch)?;
        let tried = match connection.prepare(&program, stdin.as_fd(), &[]) {
            Ok(Prepared { confinement, in_group, .. }) => Ok((confinement, in_group)),
            Err(NotStarted::Unconfined(confinement)) => Ok((confinement, false)),
            Err(
                NotStarted::Launcher(error) | NotStarted::Program(error) | NotStarted::Files(error),
            ) => Err(cannot_launch(error)),
        };
        // The program ends, as it gets no word to start.
        drop(connection);
        tried
    });
    let tried = tried.await?;
    launcher.wait().await.map_err(cannot_launch)?;
    drop(in_thread(move || drop(group)).await);
    let (items, in_group) = tried?;
    Ok(ProgramConfinement::new(items, in_group))
}

impl Call {
    /// Finds the interpreter and the launcher, and checks the paths that are to be shown.
    async fn new(
        options: Options,
        files: Vec<OsString>,
        cancelled: &CancellationToken,
    ) -> Result<(Options, Self), ExecutorError> {
        let executor = &options.executor;
        let name = &executor.interpreter;
        // An interpreter may be long in answering.
        let interpreter = tokio::select! {
            biased;
            () = cancelled.cancelled() => return Err(ExecutorError::cancelled()),
            found = interpreter::find(Path::new(name), WORK) => found.map_err(|error| not_started(name, error))?,
        };
        let (readable, worker_path) = (executor.readable.clone(), executor.worker.clone());
        let memory_bytes = options.memory_bytes;
        let (worker, group) = in_thread(move || {
            for path in &readable {
                fs::metadata(path).map_err(|error| {
                    let message = format!("cannot show {} to a program: {error}", path.display());
                    ExecutorError::bad_input(message)
                })?;
            }
            let worker =
                find_launcher(worker_path.as_deref()).map_err(|missing| no_launcher(&missing))?;
            Ok((worker, ControlGroup::new(memory_bytes)))
        })
        .await??;
        let program = program(&options, interpreter, files, group.as_ref());
        let (connection, socket) = Connection::new().map_err(cannot_launch)?;
        let mut command = Command::new(worker);
        command.arg0(NAME).args(words()).env_clear().current_dir("/").stdin(socket);
        Ok((options, Self { command, connection, program, group }))
    }
}

fn program(
    options: &Options,
    interpreter: Interpreter,
    files: Vec<OsString>,
    group: Option<&ControlGroup>,
) -> Program {
    let executor = &options.executor;
    let Interpreter { path, mut readable } = interpreter;
    readable.extend(executor.readable.iter().cloned());
    let mut search = path.parent().map(|folder| folder.as_os_str().to_owned()).unwrap_or_default();
    search.push(format!(":{PATH}"));
    let own = [
        ("PATH", search),
        ("HOME", WORK.into()),
        ("TMPDIR", "/tmp".into()),
        ("LANG", "C.UTF-8".into()),
    ];
    let own = own.into_iter().filter(|(name, _)| !executor.env.contains_key(*name));
    let own = own.map(|(name, value)| (name.into(), value));
    let given = executor.env.iter().map(|(name, value)| (name.into(), value.into()));
    Program {
        args: executor.args.iter().map(OsString::from).collect(),
        env: own.chain(given).collect(),
        readable,
        files,
        memory_bytes: options.memory_bytes,
        processes: executor.pids_limit.into(),
        cpu: executor.timeout.map(|timeout| timeout.saturating_add(CPU_AFTER)),
        group: group.map(ControlGroup::members).into_iter().collect::<Vec<PathBuf>>(),
        ..Program::new(path)
    }
}

/// Has the program confined, stages the files, and gives the word to start. It blocks.
fn start(
    mut connection: Connection,
    program: &Program,
    stdin: io::PipeReader,
    inputs: &[ExecFile],
    required: &Required,
) -> Result<Started, ExecutorError> {
    let name = program.path.display();
    let failed = |error| match error {
        NotStarted::Launcher(error) => cannot_launch(error),
        NotStarted::Program(error) => not_started(&name.to_string(), error),
        NotStarted::Files(error) => ExecutorError::staging(error),
        NotStarted::Unconfined(had) => required
            .check(had)
            .map_err(unsupported)
            .err()
            .unwrap_or_else(|| cannot_launch(io::Error::other("it cannot confine a program"))),
    };
    let prepared = connection.prepare(program, stdin.as_fd(), &[]).map_err(failed)?;
    drop(stdin);
    required.check(prepared.confinement).map_err(unsupported)?;
    for file in inputs {
        stage(&prepared.work, file).map_err(ExecutorError::staging)?;
    }
    let lifeline = connection.start().map_err(failed)?;
    Ok(Started { prepared, _lifeline: lifeline })
}

/// Fills a file that the launcher has made.
fn stage(work: &OwnedFd, file: &ExecFile) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(work, file.name.as_str(), flags, Mode::empty())?;
    File::from(opened).write_all(&file.content)
}

fn unsupported(reason: String) -> ExecutorError {
    ExecutorError::new(ExecutorErrorKind::Unsupported, reason)
}

fn no_launcher(missing: &NoLauncher) -> ExecutorError {
    ExecutorError::new(ExecutorErrorKind::Spawn, missing.message("a confined program needs"))
}

fn not_started(name: &str, error: io::Error) -> ExecutorError {
    let message = format!("cannot start {name:?}: {error}");
    ExecutorError::new(ExecutorErrorKind::Spawn, message).with_source(error)
}

fn cannot_launch(error: io::Error) -> ExecutorError {
    let message = format!("cannot launch a confined program: {error}");
    ExecutorError::new(ExecutorErrorKind::Spawn, message).with_source(error)
}
