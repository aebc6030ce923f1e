//! The process of a kernel: started, read, and ended with all that it has started.
//!
//! In: cells and interruptions. Out: their output in their records, their ends, and the end of the process. A task tends
//! the process for as long as it lives, also between cells: what comes then waits for the next cell.

use std::{
    collections::{BTreeMap, VecDeque},
    env, io,
    os::{fd::AsRawFd as _, unix::net::UnixStream as StdStream},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use isolane_child::{Ending, Lasting, at_exit, remove_folder};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::AsyncWriteExt as _,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, pipe},
    },
    process::Command,
    sync::watch,
    task::{coop::consume_budget, spawn_blocking, yield_now},
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    frame::{self, Display, Fault, Frame},
    interpreter,
    writer::Writer,
};
use crate::{
    CellError, HostAnswer, PyOptions,
    host::{
        Desk,
        desk::{Helpers, HostCall, no_cell},
    },
    kernels::Cell,
    record::Record,
    text::{clean::cleaned, screen::Stream},
};

/// Reads the kernel's program from its private descriptor and runs it.
const BOOT: &str = include_str!("boot.py");

/// The kernel's program.
const PROGRAM: &str = concat!(
    include_str!("kernel/channel.py"),
    include_str!("kernel/display.py"),
    include_str!("kernel/source.py"),
    include_str!("kernel/encode.py"),
    include_str!("kernel/decode.py"),
    include_str!("kernel/host.py"),
    include_str!("kernel/parallel.py"),
    include_str!("kernel/kernel.py"),
);

/// After that time the host itself takes what a kernel has left in the pipes of its descriptors 1 and 2: it computes.
const PATIENCE: Duration = Duration::from_millis(100);

/// The time in which the rest of a process that has ended is read.
const REST: Duration = Duration::from_millis(500);

/// The time between two looks at the memory of a kernel.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// The bytes that a pipe of a kernel holds.
const PIPE_BYTES: usize = 1 << 20;

/// The process of a kernel. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Process {
    id: Option<u32>,
    version: String,
    path: String,
    writer: Arc<Writer>,
    progress: watch::Receiver<Progress>,
    output: Arc<Mutex<Output>>,
    _kill: DropGuard,
    kill: CancellationToken,
}

/// The state of a process, as the task that tends it tells it.
#[derive(Clone, Debug, Default)]
struct Progress {
    ready: Option<(String, String)>,
    old: Option<String>,
    done: Option<(u32, Option<CellError>)>,
    gone: Option<Gone>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// By itself.
    Ended(Ending),
    /// It was killed as it sent something that is no frame.
    Malformed,
    /// It was killed as it held too much memory.
    OutOfMemory,
    /// It was killed by the notebook.
    Killed,
}

/// The cell that runs.
#[derive(Debug)]
struct Active {
    number: u32,
    record: Record,
    desk: Arc<Desk>,
}

/// Where output goes.
#[derive(Debug)]
struct Output {
    /// The cell that runs.
    active: Option<Active>,
    /// Output that came between cells: its end, within a bound.
    waiting: VecDeque<Frame>,
    waiting_bytes: usize,
    most_bytes: usize,
}

impl Process {
    /// Starts a kernel and waits until it takes cells.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(super) async fn start(
        options: &PyOptions,
        variables: &BTreeMap<String, String>,
        helpers: &Helpers,
        live_bytes: usize,
    ) -> Result<Self, String> {
        let program = interpreter::program(options);
        let failed = |error: &io::Error| interpreter::not_started(&program, error);
        let started =
            start(&program, options, variables, helpers).await.map_err(|error| failed(&error))?;
        let Started { lasting, stream, pipes, scratch } = started;
        let (reader, writer) = stream.into_split();
        let writer = Arc::new(Writer::new(writer));
        let (told, mut progress) = watch::channel(Progress::default());
        let output = Arc::new(Mutex::new(Output {
            active: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            most_bytes: live_bytes,
        }));
        let (id, kill) = (lasting.id(), CancellationToken::new());
        let tending = Tending {
            lasting,
            pipes,
            told,
            output: Arc::clone(&output),
            writer: Arc::clone(&writer),
            kill: kill.clone(),
            frame_bytes: options.frame_bytes,
            memory_limit_bytes: options.memory_limit_bytes,
            scratch,
        };
        let guard = kill.clone().drop_guard();
        drop(tokio::spawn(tending.tend(reader)));

        let is_up = |progress: &Progress| progress.ready.is_some() || progress.gone.is_some();
        let limit = Duration::from_millis(options.start_timeout_ms);
        let Ok(Ok(up)) =
            timeout(limit, progress.wait_for(is_up)).await.map(|up| up.map(|up| up.clone()))
        else {
            return Err(interpreter::not_ready(&program, options.start_timeout_ms));
        };
        if let Some(version) = &up.old {
            return Err(interpreter::too_old(&program, version));
        }
        let Some((version, path)) = up.ready else {
            let how = how(up.gone.unwrap_or(Gone::Killed));
            let said = lock(&output).said();
            let said = said.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
            return Err(format!("{} ended before it was ready ({how}){said}", program.display()));
        };
        Ok(Self { id, version, path, writer, progress, output, _kill: guard, kill })
    }

    /// Its number.
    pub(super) fn id(&self) -> Option<u32> {
        self.id
    }

    /// The version and the path of its interpreter.
    pub(super) fn found(&self) -> (&str, &str) {
        (&self.version, &self.path)
    }

    /// How it ended, if it has.
    pub(super) fn gone(&self) -> Option<Gone> {
        self.progress.borrow().gone
    }

    /// Begins a cell, whose output goes into the record from now on.
    pub(super) async fn begin(&mut self, number: u32, name: &str, cell: &Cell<'_>) {
        lock(&self.output).begin(number, cell);
        let code = cell.code;
        self.send(&json!({ "op": "cell", "cell": number, "name": name, "code": code })).await;
    }

    /// Interrupts a cell.
    pub(super) async fn interrupt(&mut self, cell: u32) {
        self.send(&json!({ "op": "interrupt", "cell": cell })).await;
    }

    /// Waits for the end of a cell, or of the process.
    pub(super) async fn done(&mut self, cell: u32) -> Result<Option<CellError>, Gone> {
        let is_done = |progress: &Progress| {
            progress.gone.is_some() || progress.done.as_ref().is_some_and(|done| done.0 == cell)
        };
        let Ok(progress) = self.progress.wait_for(is_done).await.map(|progress| progress.clone())
        else {
            return Err(Gone::Killed);
        };
        match (progress.done, progress.gone) {
            (Some((number, error)), _) if number == cell => Ok(error),
            (_, gone) => Err(gone.unwrap_or(Gone::Killed)),
        }
    }

    /// Kills it with all that it has started, and waits until it is gone.
    pub(super) async fn kill(&mut self) {
        self.kill.cancel();
        // The task that tends it tells the end, or is gone itself.
        let _ = self.progress.wait_for(|progress| progress.gone.is_some()).await;
    }

    /// Asks it to end, and kills it if it does not within that time.
    pub(super) async fn close(mut self, grace: Duration) {
        let ended = async {
            self.send(&json!({ "op": "exit" })).await;
            // The task that tends it tells the end, or is gone itself.
            let _ = self.progress.wait_for(|progress| progress.gone.is_some()).await;
        };
        let _ = timeout(grace, ended).await;
        self.kill().await;
    }

    async fn send(&self, message: &serde_json::Value) {
        self.writer.send(message).await;
    }
}

/// The parts of a process that was started.
struct Started {
    lasting: Lasting,
    stream: UnixStream,
    pipes: [(Stream, pipe::Receiver); 2],
    scratch: Scratch,
}

/// The folder of a kernel, removed with it.
struct Scratch(Option<TempDir>);

impl Scratch {
    fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("isolane-py-").tempdir()?;
        at_exit::folder_began(folder.path(), remove_folder);
        Ok(Self(Some(folder)))
    }

    fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new("/"), TempDir::path)
    }

    /// Removes it, on a thread that may block.
    async fn remove(mut self) {
        if let Some(folder) = self.0.take() {
            let path = folder.keep();
            // Files of another user stay in the system's folder for temporary files.
            let _ = spawn_blocking(move || {
                let _ = remove_folder(&path);
                at_exit::folder_ended(&path);
            })
            .await;
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = self.0.take() {
            at_exit::folder_ended(folder.path());
        }
    }
}

async fn start(
    program: &Path,
    options: &PyOptions,
    variables: &BTreeMap<String, String>,
    helpers: &Helpers,
) -> io::Result<Started> {
    let scratch = Scratch::new()?;
    let (ours, theirs) = StdStream::pair()?;
    let ((stdout, stdout_end), (stderr, stderr_end)) = (io::pipe()?, io::pipe()?);
    let (kernel_stdout, kernel_stderr) = (stdout.try_clone()?, stderr.try_clone()?);
    widen(&stdout_end);
    widen(&stderr_end);
    let numbers = [theirs.as_raw_fd(), kernel_stdout.as_raw_fd(), kernel_stderr.as_raw_fd()];

    let mut command = Command::new(program);
    command
        .args(["-X", "utf8", "-u", "-c", BOOT, &numbers[0].to_string()])
        .current_dir(options.working_folder.as_deref().unwrap_or(scratch.path()))
        .env_clear()
        .envs(own_variables(scratch.path()))
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(stdout_end)
        .stderr(stderr_end);
    let inherited = vec![theirs.into(), kernel_stdout.into(), kernel_stderr.into()];
    let lasting = Lasting::start(command, inherited)?;

    ours.set_nonblocking(true)?;
    let mut stream = UnixStream::from_std(ours)?;
    let path: Vec<PathBuf> =
        options.path.iter().map(std::path::absolute).collect::<Result<_, _>>()?;
    let path: Vec<_> = path.iter().map(|path| path.to_string_lossy()).collect();
    // Numbers and lists of texts are the same in JSON and in Python.
    let [descriptor, stdout_number, stderr_number] = numbers;
    let (frame_bytes, data_bytes) = (options.frame_bytes, options.memory_limit_bytes);
    let call = format!(
        "\nstart({descriptor}, {stdout_number}, {stderr_number}, {frame_bytes}, {data_bytes}, {}, {}, {})\n",
        json!(path),
        json!(helpers.tools),
        json!(helpers.concurrency)
    );
    let source = PROGRAM.to_owned() + &call;
    let mut bytes = u32::try_from(source.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    bytes.extend(source.as_bytes());
    // One that has ended already is seen by its end.
    let _ = stream.write_all(&bytes).await;
    let pipes = [
        (Stream::Stdout, pipe::Receiver::from_owned_fd(stdout.into())?),
        (Stream::Stderr, pipe::Receiver::from_owned_fd(stderr.into())?),
    ];
    Ok(Started { lasting, stream, pipes, scratch })
}

/// The variables that each kernel has.
fn own_variables(scratch: &Path) -> Vec<(String, std::ffi::OsString)> {
    let mut variables = vec![
        ("HOME".to_owned(), scratch.into()),
        ("TMPDIR".to_owned(), scratch.into()),
        ("MPLBACKEND".to_owned(), "agg".into()),
        ("LANG".to_owned(), env::var_os("LANG").unwrap_or_else(|| "C.UTF-8".into())),
    ];
    let kept = ["PATH", "TZ"].into_iter();
    variables.extend(kept.filter_map(|name| Some((name.to_owned(), env::var_os(name)?))));
    variables
}

/// The state of the task that tends a process.
struct Tending {
    lasting: Lasting,
    pipes: [(Stream, pipe::Receiver); 2],
    told: watch::Sender<Progress>,
    output: Arc<Mutex<Output>>,
    writer: Arc<Writer>,
    kill: CancellationToken,
    frame_bytes: u64,
    memory_limit_bytes: u64,
    scratch: Scratch,
}

impl Tending {
    async fn tend(self, mut reader: OwnedReadHalf) {
        let Self {
            mut lasting,
            pipes,
            told,
            output,
            writer,
            kill,
            frame_bytes,
            memory_limit_bytes,
            scratch,
        } = self;
        let id = lasting.id();
        let gone = {
            let frames = async {
                loop {
                    let bytes;
                    match frame::read(&mut reader, frame_bytes).await {
                        Ok(frame) => {
                            bytes = frame.bytes();
                            if !take(frame, &told, &output, &writer) {
                                return Fault::Malformed;
                            }
                        }
                        Err(fault) => return fault,
                    }
                    give_way(bytes).await;
                }
            };
            tokio::pin!(frames);
            let mut has_closed = false;
            let gone = tokio::select! {
                () = kill.cancelled() => Some(Gone::Killed),
                () = memory_is_full(id, memory_limit_bytes) => Some(Gone::OutOfMemory),
                () = lasting.exited() => None,
                () = take_pipes(&pipes, &output) => None,
                fault = &mut frames => {
                    has_closed = true;
                    match fault {
                        Fault::Malformed => Some(Gone::Malformed),
                        // It is about to end, or lives on without a way to the host.
                        Fault::Closed => {
                            timeout(REST, lasting.exited()).await.err().map(|_| Gone::Malformed)
                        }
                    }
                }
            };
            let ending = lasting.end().await;
            if gone.is_none() && !has_closed {
                // The process sent the rest before its end.
                let _ = timeout(REST, &mut frames).await;
            }
            gone.unwrap_or(Gone::Ended(ending))
        };
        for (stream, pipe) in &pipes {
            read_pipe(*stream, pipe, &output, PIPE_BYTES);
        }
        scratch.remove().await;
        told.send_modify(|progress| progress.gone = Some(gone));
    }
}

/// Takes a frame; false if it may not come now.
fn take(
    frame: Frame,
    told: &watch::Sender<Progress>,
    output: &Mutex<Output>,
    writer: &Arc<Writer>,
) -> bool {
    match frame {
        Frame::Ready { version, path } => {
            told.send_modify(|progress| progress.ready = Some((version, path)));
        }
        Frame::Old { version } => told.send_modify(|progress| progress.old = Some(version)),
        Frame::Done { cell, error } => {
            let mut output = lock(output);
            if output.active.take_if(|active| active.number == cell).is_none() {
                return false;
            }
            drop(output);
            told.send_modify(|progress| progress.done = Some((cell, error)));
        }
        Frame::Call { number, call } => {
            // A call belongs to the cell that runs, whatever its frame says.
            let desk = lock(output).active.as_ref().map(|active| Arc::clone(&active.desk));
            let Some(place) = writer.place() else { return false };
            let writer = Arc::clone(writer);
            drop(tokio::spawn(async move {
                answer(desk, number, call, &writer).await;
                drop(place);
            }));
        }
        frame @ (Frame::Stream(..) | Frame::Display(_)) => lock(output).push(frame),
    }
    true
}

/// Answers a call of a function of the host. The desk counts the bytes of the call until the kernel has read the answer.
async fn answer(desk: Option<Arc<Desk>>, number: u64, call: HostCall, writer: &Writer) {
    let settle = async |answer: HostAnswer| writer.answer(number, &answer).await;
    match desk {
        Some(desk) => desk.answer(call, settle).await,
        None => settle(Err(no_cell())).await,
    }
}

/// Takes what stays in the pipes: a kernel that computes does not read them.
async fn take_pipes(pipes: &[(Stream, pipe::Receiver); 2], output: &Mutex<Output>) {
    let [(first, stdout), (second, stderr)] = pipes;
    tokio::join!(take_pipe(*first, stdout, output), take_pipe(*second, stderr, output));
    // Nobody writes any more.
    std::future::pending::<()>().await;
}

async fn take_pipe(stream: Stream, pipe: &pipe::Receiver, output: &Mutex<Output>) {
    // Whether somebody writes much: then nobody waits for the kernel, which orders small pieces among its own output.
    let mut is_flowing = false;
    while pipe.readable().await.is_ok() {
        if !is_flowing {
            sleep(PATIENCE).await;
        }
        let (taken, is_open) = read_pipe(stream, pipe, output, READ_BYTES);
        if !is_open {
            return;
        }
        is_flowing = taken >= READ_BYTES;
        give_way(taken).await;
    }
}

/// Lets other tasks go on after that many bytes of output. The budget of a task counts operations: a megabyte of short
/// lines is one, and takes longer than all that is left to other tasks.
async fn give_way(bytes: usize) {
    if bytes >= READ_BYTES / 4 {
        yield_now().await;
    } else {
        consume_budget().await;
    }
}

/// Reads the bytes that are in a pipe, up to about so many: how many, and whether more may come.
fn read_pipe(
    stream: Stream,
    pipe: &pipe::Receiver,
    output: &Mutex<Output>,
    most: usize,
) -> (usize, bool) {
    let (mut bytes, mut taken) = (vec![0; READ_BYTES], 0);
    while taken < most {
        match pipe.try_read(&mut bytes) {
            Ok(count @ 1..) => {
                taken += count;
                let frame = Frame::Stream(stream, bytes[..count].to_vec());
                lock(output).push(frame);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return (taken, true),
            Ok(0) | Err(_) => return (taken, false),
        }
    }
    (taken, true)
}

/// Gives a pipe more room, where the system can: a child that prints much waits less often.
fn widen(pipe: &io::PipeWriter) {
    #[cfg(target_os = "linux")]
    // A system may permit less; the pipe keeps its size then.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

/// Ready once the process holds more memory than it may.
async fn memory_is_full(id: Option<u32>, limit_bytes: u64) {
    loop {
        sleep(HEARTBEAT).await;
        if id.and_then(resident_bytes).is_some_and(|bytes| bytes > limit_bytes) {
            return;
        }
    }
}

/// The resident memory of a process, where the system tells it.
pub(super) fn resident_bytes(id: u32) -> Option<u64> {
    /// A page of the systems that have `/proc/<pid>/statm`, but for some of ARM: an estimate there.
    const PAGE_BYTES: u64 = 4096;
    let text = std::fs::read_to_string(format!("/proc/{id}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

impl Output {
    fn begin(&mut self, number: u32, cell: &Cell<'_>) {
        for frame in std::mem::take(&mut self.waiting) {
            write(frame, cell.record);
        }
        self.waiting_bytes = 0;
        let (record, desk) = (cell.record.clone(), Arc::clone(cell.desk));
        self.active = Some(Active { number, record, desk });
    }

    fn push(&mut self, frame: Frame) {
        if let Some(active) = &self.active {
            write(frame, &active.record);
            return;
        }
        self.waiting_bytes += frame.bytes();
        self.waiting.push_back(frame);
        while self.waiting_bytes > self.most_bytes && self.waiting.len() > 1 {
            let first = self.waiting.pop_front();
            self.waiting_bytes -= first.map_or(0, |frame| frame.bytes());
        }
        if let Some(Frame::Stream(_, bytes)) = self.waiting.back_mut() {
            let surplus = bytes.len().saturating_sub(self.most_bytes);
            bytes.drain(..surplus);
            self.waiting_bytes -= surplus;
        }
    }

    /// The text that waits.
    fn said(&self) -> String {
        let mut bytes = Vec::new();
        for frame in &self.waiting {
            if let Frame::Stream(_, more) = frame {
                bytes.extend(more);
            }
        }
        cleaned(&String::from_utf8_lossy(&bytes))
    }
}

fn write(frame: Frame, record: &Record) {
    match frame {
        Frame::Stream(stream, bytes) => drop(record.stream(stream, &bytes)),
        Frame::Display(Display::Text(text)) => record.text(&text),
        Frame::Display(Display::Markdown(text)) => record.markdown(&text),
        Frame::Display(Display::Json(value)) => record.json(value),
        Frame::Display(Display::Image(image)) => record.displayed_image(image),
        Frame::Ready { .. } | Frame::Old { .. } | Frame::Done { .. } | Frame::Call { .. } => {}
    }
}

/// The end of a process in words.
pub(super) fn how(gone: Gone) -> String {
    match gone {
        Gone::Ended(Ending::Signalled(signal)) => format!("signal {signal}"),
        Gone::Ended(Ending::Exited(Some(code))) => format!("exit code {code}"),
        Gone::Ended(_) => "nobody knows how".to_owned(),
        Gone::Malformed => "malformed frame".to_owned(),
        Gone::OutOfMemory => "too much memory".to_owned(),
        Gone::Killed => "killed".to_owned(),
    }
}

fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}
