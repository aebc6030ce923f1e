//! The process of a kernel: started, read, and ended with all that it has started.
//!
//! In: cells and interruptions. Out: their output in their records, their ends, and the end of the process. A task tends
//! the process for as long as it lives, also between cells: what comes then waits for the next cell.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use isolane_child::{Ending, Lasting};
use isolane_confine::program::ProgramConfinement;
use serde_json::json;
use tokio::{
    net::unix::{OwnedReadHalf, pipe},
    sync::{oneshot, watch},
    task::{coop::consume_budget, yield_now},
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Refused,
    beats::{Beat, Beats},
    frame::{self, Display, Fault, Frame},
    interpreter,
    launch::{self, PIPE_BYTES, Room, Started},
    writer::Writer,
};
use crate::{
    CellError, HostAnswer, PyOptions,
    host::{
        Desk,
        desk::{HostCall, no_cell},
    },
    kernels::Cell,
    record::Record,
    text::{clean::cleaned, screen::Stream},
};

/// After that time the host itself takes what a kernel has left in the pipes of its descriptors 1 and 2: it computes.
const PATIENCE: Duration = Duration::from_millis(100);

/// The time in which the rest of a process that has ended is read.
const REST: Duration = Duration::from_millis(500);

/// The bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// The process of a kernel. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Process {
    /// The number of the last cell.
    cells: AtomicU32,
    id: Option<u32>,
    version: String,
    path: String,
    confinement: Option<ProgramConfinement>,
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
    /// It was killed as it did not answer, and had no cell.
    Silent,
    /// It was killed by the notebook.
    Killed,
}

/// A cell that runs.
#[derive(Debug)]
struct Active {
    record: Record,
    desk: Arc<Desk>,
    done: oneshot::Sender<Option<CellError>>,
}

/// The end of a cell that was begun, as the kernel will tell it.
pub(super) type Done = oneshot::Receiver<Option<CellError>>;

/// Where output goes.
#[derive(Debug)]
struct Output {
    /// The cells that run, by their numbers.
    active: BTreeMap<u32, Active>,
    /// The last cell that was begun.
    newest: u32,
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
        (live_bytes, held_bytes): (usize, usize),
        heartbeat: Duration,
    ) -> Result<Self, Refused> {
        let program = interpreter::program(options);
        let not_ready = || interpreter::not_ready(&program, options.start_timeout_ms);
        // A time beyond what the clock can say is none.
        let limit = Duration::from_millis(options.start_timeout_ms);
        let deadline = Instant::now().checked_add(limit).unwrap_or_else(far);
        let starting = launch::start(options, variables);
        let Ok(started) = timeout_at(deadline, starting).await else {
            return Err(not_ready().into());
        };
        let Started { lasting, stream, pipes, room } = started?;
        let confinement = room.confinement();
        let refused = |reason: String| Refused { reason, confinement };
        let (reader, writer) = stream.into_split();
        let writer = Arc::new(Writer::new(writer));
        let (told, mut progress) = watch::channel(Progress::default());
        let output = Arc::new(Mutex::new(Output {
            active: BTreeMap::new(),
            newest: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            most_bytes: live_bytes,
        }));
        let (id, kill) = (room.process_id(&lasting), CancellationToken::new());
        let tending = Tending {
            lasting,
            pipes,
            told,
            output: Arc::clone(&output),
            writer: Arc::clone(&writer),
            kill: kill.clone(),
            frame_bytes: options.frame_bytes,
            held_bytes,
            memory_limit_bytes: options.memory_limit_bytes,
            heartbeat,
            beats: Beats::default(),
            id,
            room,
        };
        let guard = kill.clone().drop_guard();
        drop(tokio::spawn(tending.tend(reader)));

        let is_up = |progress: &Progress| progress.ready.is_some() || progress.gone.is_some();
        let Ok(Ok(up)) =
            timeout_at(deadline, progress.wait_for(is_up)).await.map(|up| up.map(|up| up.clone()))
        else {
            return Err(refused(not_ready()));
        };
        if let Some(version) = &up.old {
            return Err(refused(interpreter::too_old(&program, version)));
        }
        let Some((version, path)) = up.ready else {
            let how = how(up.gone.unwrap_or(Gone::Killed));
            let said = lock(&output).said();
            let said = said.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
            let shown = program.display();
            return Err(refused(format!("{shown} ended before it was ready ({how}){said}")));
        };
        let cells = AtomicU32::new(0);
        Ok(Self {
            cells,
            id,
            version,
            path,
            confinement,
            writer,
            progress,
            output,
            _kill: guard,
            kill,
        })
    }

    /// Its number.
    pub(super) fn id(&self) -> Option<u32> {
        self.id
    }

    /// The version and the path of its interpreter.
    pub(super) fn found(&self) -> (&str, &str) {
        (&self.version, &self.path)
    }

    /// Its confinement, if it has one.
    pub(super) fn confinement(&self) -> Option<ProgramConfinement> {
        self.confinement
    }

    /// How it ended, if it has.
    pub(super) fn gone(&self) -> Option<Gone> {
        self.progress.borrow().gone
    }

    /// The number of the next cell.
    pub(super) fn next_cell(&self) -> u32 {
        self.cells.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Takes the output and the calls of a cell from now on.
    pub(super) fn attend(&self, number: u32, cell: &Cell<'_>) -> Done {
        let (sender, done) = oneshot::channel();
        lock(&self.output).begin(number, cell, sender);
        done
    }

    /// Begins a cell that is attended.
    pub(super) async fn begin(&self, number: u32, name: &str, cell: &Cell<'_>) {
        let (code, helpers) = (cell.code, cell.desk.helpers());
        let message = json!({
            "op": "cell",
            "cell": number,
            "name": name,
            "code": code,
            "tools": helpers.tools,
            "concurrency": helpers.concurrency,
        });
        self.send(&message).await;
    }

    /// Interrupts a cell.
    pub(super) async fn interrupt(&self, cell: u32) {
        self.send(&json!({ "op": "interrupt", "cell": cell })).await;
    }

    /// Waits for the end of a cell, or of the process.
    pub(super) async fn done(&self, done: &mut Done) -> Result<Option<CellError>, Gone> {
        let mut progress = self.progress.clone();
        tokio::select! {
            biased;
            Ok(error) = done => Ok(error),
            gone = progress.wait_for(|progress| progress.gone.is_some()) => {
                Err(gone.ok().and_then(|progress| progress.gone).unwrap_or(Gone::Killed))
            }
        }
    }

    /// Kills it with all that it has started, and waits until it is gone.
    pub(super) async fn kill(&self) {
        self.kill.cancel();
        // The task that tends it tells the end, or is gone itself.
        let _ = self.progress.clone().wait_for(|progress| progress.gone.is_some()).await;
    }

    /// Asks it to end, and kills it if it does not within that time.
    pub(super) async fn close(&self, grace: Duration) {
        let ended = async {
            self.send(&json!({ "op": "exit" })).await;
            // The task that tends it tells the end, or is gone itself.
            let _ = self.progress.clone().wait_for(|progress| progress.gone.is_some()).await;
        };
        let _ = timeout(grace, ended).await;
        self.kill().await;
    }

    async fn send(&self, message: &serde_json::Value) {
        self.writer.send(message).await;
    }
}

/// A moment that does not come.
fn far() -> Instant {
    Instant::now() + Duration::from_hours(30 * 365 * 24)
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
    held_bytes: usize,
    memory_limit_bytes: u64,
    /// The time between two looks at it.
    heartbeat: Duration,
    beats: Beats,
    /// The number of the kernel's own process, where the system tells it.
    id: Option<u32>,
    room: Room,
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
            held_bytes,
            memory_limit_bytes,
            heartbeat,
            beats,
            id,
            room,
        } = self;
        let watched = id.filter(|_| !room.counts_memory());
        let gone = {
            let newest = || lock(&output).newest;
            let frames = async {
                loop {
                    let bytes;
                    match frame::read(&mut reader, frame_bytes, held_bytes, newest).await {
                        Ok(frame) => {
                            bytes = frame.bytes();
                            if !take(frame, &told, &output, &writer, &beats) {
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
                gone = look_after(&told, &output, &writer, &beats, (watched, memory_limit_bytes, heartbeat)) => {
                    Some(gone)
                }
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
            gone.unwrap_or_else(|| room.ending(ending).map_or(Gone::OutOfMemory, Gone::Ended))
        };
        for (stream, pipe) in &pipes {
            read_pipe(*stream, pipe, &output, PIPE_BYTES);
        }
        room.remove().await;
        told.send_modify(|progress| progress.gone = Some(gone));
    }
}

/// Takes a frame; false if it may not come now.
fn take(
    frame: Frame,
    told: &watch::Sender<Progress>,
    output: &Mutex<Output>,
    writer: &Arc<Writer>,
    beats: &Beats,
) -> bool {
    match frame {
        Frame::Ready { version, path } => {
            told.send_modify(|progress| progress.ready = Some((version, path)));
        }
        Frame::Beat => beats.answered(),
        Frame::Old { version } => told.send_modify(|progress| progress.old = Some(version)),
        Frame::Done { cell, error } => {
            let Some(active) = lock(output).active.remove(&cell) else { return false };
            // Nobody waits for the end of a cell whose call was given up.
            let _ = active.done.send(error);
        }
        Frame::Call { cell, number, call } => {
            // A call belongs to a cell that runs, whatever its frame says.
            let desk = lock(output).active(cell).map(|active| Arc::clone(&active.desk));
            let Some(place) = writer.place() else { return false };
            let writer = Arc::clone(writer);
            drop(tokio::spawn(async move {
                answer(desk, number, call, &writer).await;
                drop(place);
            }));
        }
        frame @ (Frame::Stream { .. } | Frame::Display { .. }) => lock(output).push(frame),
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
                let bytes = bytes[..count].to_vec();
                lock(output).push(Frame::Stream { cell: 0, stream, bytes });
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return (taken, true),
            Ok(0) | Err(_) => return (taken, false),
        }
    }
    (taken, true)
}

/// Ready once the process holds more memory than it may, or has no cell and misses heartbeats.
async fn look_after(
    told: &watch::Sender<Progress>,
    output: &Mutex<Output>,
    writer: &Arc<Writer>,
    beats: &Beats,
    (id, memory_limit_bytes, heartbeat): (Option<u32>, u64, Duration),
) -> Gone {
    loop {
        sleep(heartbeat).await;
        if id.and_then(resident_bytes).is_some_and(|bytes| bytes > memory_limit_bytes) {
            return Gone::OutOfMemory;
        }
        // Until it is ready it has the time to start.
        let is_busy = told.borrow().ready.is_none() || !lock(output).active.is_empty();
        match beats.next(is_busy) {
            Beat::Asks => {
                let writer = Arc::clone(writer);
                // A kernel that reads nothing holds it up.
                drop(tokio::spawn(async move { writer.send(&json!({ "op": "beat" })).await }));
            }
            Beat::Waits => {}
            Beat::Dead => return Gone::Silent,
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
    fn begin(&mut self, number: u32, cell: &Cell<'_>, done: oneshot::Sender<Option<CellError>>) {
        for frame in std::mem::take(&mut self.waiting) {
            write(frame, cell.record);
        }
        self.waiting_bytes = 0;
        let (record, desk) = (cell.record.clone(), Arc::clone(cell.desk));
        self.newest = self.newest.max(number);
        self.active.insert(number, Active { record, desk, done });
    }

    /// The cell with that number if it runs, else the newest one.
    fn active(&self, number: u32) -> Option<&Active> {
        self.active.get(&number).or_else(|| self.active.values().next_back())
    }

    fn push(&mut self, frame: Frame) {
        let cell = match &frame {
            Frame::Stream { cell, .. } | Frame::Display { cell, .. } => *cell,
            _ => 0,
        };
        if let Some(active) = self.active(cell) {
            write(frame, &active.record);
            return;
        }
        self.waiting_bytes += frame.bytes();
        self.waiting.push_back(frame);
        while self.waiting_bytes > self.most_bytes && self.waiting.len() > 1 {
            let first = self.waiting.pop_front();
            self.waiting_bytes -= first.map_or(0, |frame| frame.bytes());
        }
        if let Some(Frame::Stream { bytes, .. }) = self.waiting.back_mut() {
            let surplus = bytes.len().saturating_sub(self.most_bytes);
            bytes.drain(..surplus);
            self.waiting_bytes -= surplus;
        }
    }

    /// The text that waits.
    fn said(&self) -> String {
        let mut bytes = Vec::new();
        for frame in &self.waiting {
            if let Frame::Stream { bytes: more, .. } = frame {
                bytes.extend(more);
            }
        }
        cleaned(&String::from_utf8_lossy(&bytes))
    }
}

fn write(frame: Frame, record: &Record) {
    match frame {
        Frame::Stream { stream, bytes, .. } => drop(record.stream(stream, &bytes)),
        Frame::Display { display, .. } => match display {
            Display::Text(text) => record.text(&text),
            Display::Markdown(text) => record.markdown(&text),
            Display::Json(value) => record.json(value),
            Display::Image(image) => record.displayed_image(image),
            Display::Event(event) => record.event(event),
        },
        Frame::Ready { .. }
        | Frame::Old { .. }
        | Frame::Beat
        | Frame::Done { .. }
        | Frame::Call { .. } => {}
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
        Gone::Silent => "no heartbeat".to_owned(),
        Gone::Killed => "killed".to_owned(),
    }
}

fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}
