//! A process of a call: it is fed, read, watched, and ended with all that it has started.
//!
//! In: a command, the code for its standard input, a deadline, a receiver of live output. Out: its output within bounds, and
//! how it ended. The process has a group of its own (on Windows a job), and the group is killed when the process has ended,
//! is late, or is no longer wanted, so that nothing of the group is left. The output is read while the code is still being
//! written; what is in the pipes at the end is taken, and a process outside of the group that holds them open is not waited
//! for. `unix` and `windows` have the means of the systems: the group, the end of a process, its pipes.

use std::{future::Future, io, process::Stdio, time::Duration};

use tokio::{
    io::AsyncWriteExt as _,
    process::{ChildStdin, Command},
    time::{Instant, sleep_until, timeout},
};

use crate::output::Output;
#[cfg(unix)]
use crate::unix::{Group, Stream, ending_of, exited};
#[cfg(windows)]
use crate::windows::{Group, Stream, ending_of, exited};

/// The bytes that are read at once: those of a pipe.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// How long a process may take to end after it was killed. One of another user is not killed.
pub(crate) const KILLED: Duration = Duration::from_secs(5);

/// The most bytes that are taken of a pipe after the end: those of the largest pipe. Somebody else may go on writing.
pub(crate) const MOST_LEFT_BYTES: usize = 1 << 20;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with that exit code. `None` if somebody else has waited for it, so that nobody can say.
    Exited(Option<i32>),
    /// By that signal, which was not sent from here.
    Signalled(i32),
    /// It was killed when its time was over.
    TimedOut,
    /// It was killed as the call was cancelled.
    Cancelled,
    /// It was killed as it filled its working folder beyond what it may.
    Overfull,
}

/// A process that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The kept part of its standard output.
    pub stdout: Output,
    /// The kept part of its standard error.
    pub stderr: Output,
    /// How it ended.
    pub ending: Ending,
}

/// A receiver of live output. It is called on a thread of the library and must not block.
pub trait OutputSink: Sync {
    /// Takes bytes of the standard output, as they come.
    fn stdout(&self, bytes: &[u8]);

    /// Takes bytes of the standard error.
    fn stderr(&self, bytes: &[u8]);
}

/// Nobody listens.
impl OutputSink for () {
    fn stdout(&self, _bytes: &[u8]) {}

    fn stderr(&self, _bytes: &[u8]) {}
}

/// The bounds of a process.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The time from its start.
    pub timeout: Option<Duration>,
    /// The bytes of each stream that are kept.
    pub output_limit_bytes: usize,
}

/// Starts a process and waits until it has ended and nothing of its group is left. It is killed when `stop` is there.
///
/// # Errors
/// The process cannot be started.
pub async fn run(
    mut command: Command,
    code: Vec<u8>,
    bounds: Bounds,
    sink: &impl OutputSink,
    stop: impl Future<Output = Ending>,
) -> io::Result<Ended> {
    command.stdin(Stdio::piped());
    run_fed(command, |stdin| async move { feed(stdin, &code).await }, bounds, sink, stop).await
}

/// The same for a command whose standard input is set. `feed` begins as the process starts; its argument is the pipe to
/// the process, if it has one.
///
/// # Errors
/// The process cannot be started.
pub async fn run_fed<F: Future<Output = ()>>(
    mut command: Command,
    feed: impl FnOnce(Option<ChildStdin>) -> F,
    bounds: Bounds,
    sink: &impl OutputSink,
    stop: impl Future<Output = Ending>,
) -> io::Result<Ended> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Group::prepare(&mut command);
    let started = Instant::now();
    let mut child = command.spawn()?;
    // It may hold the other end of something that the child alone is to have.
    drop(command);
    let group = Group::of(&child)?;
    let stdin = child.stdin.take();
    let mut stdout = Stream::new(child.stdout.take(), bounds.output_limit_bytes)?;
    let mut stderr = Stream::new(child.stderr.take(), bounds.output_limit_bytes)?;
    // A time beyond what the clock can say is none.
    let deadline = bounds.timeout.and_then(|timeout| started.checked_add(timeout));

    let ending = {
        let read = async {
            tokio::join!(
                stdout.read(|bytes| sink.stdout(bytes)),
                stderr.read(|bytes| sink.stderr(bytes)),
                feed(stdin),
            );
            // All pipes are closed, but the process may live on.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = exited(&mut child) => None,
            () = read => None,
            () = until(deadline) => Some(Ending::TimedOut),
            why = stop => Some(why),
        }
    };
    group.kill();
    // A host may have the system reap its children, so that there is nothing to wait for.
    let status = timeout(KILLED, child.wait()).await.ok().and_then(Result::ok);
    stdout.take_rest(|bytes| sink.stdout(bytes)).await;
    stderr.take_rest(|bytes| sink.stderr(bytes)).await;
    let ending = ending.unwrap_or_else(|| ending_of(status));
    Ok(Ended { stdout: stdout.output, stderr: stderr.output, ending })
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Writes the code. A process that does not read it to the end is within its rights.
async fn feed(stdin: Option<ChildStdin>, code: &[u8]) {
    if let Some(mut stdin) = stdin {
        drop(stdin.write_all(code).await);
        drop(stdin.shutdown().await);
    }
}
