//! Jobs and pipes of Windows.
//!
//! In: a process that has just started, its pipes. Out: a job that can be killed, the end of the process, and the bytes of
//! its output. The process gets its code after it has joined the job, so nothing that the code starts is outside of it.

use std::{io, process::ExitStatus, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    task::coop::consume_budget,
    time::timeout,
};
use win32job::{ExtendedLimitInfo, Job};

use crate::{
    output::Output,
    run::{Ending, MOST_LEFT_BYTES, READ_BYTES},
};

/// How long the end of a pipe may take once its job is killed. Somebody outside of the job may hold it open.
const END: Duration = Duration::from_millis(200);

/// A job, whose processes are killed when this is dropped.
pub(crate) struct Group {
    _job: Job,
}

impl Group {
    pub(crate) fn prepare(command: &mut Command) {
        // If it cannot join the job, it ends.
        command.kill_on_drop(true);
    }

    pub(crate) fn of(child: &Child) -> io::Result<Self> {
        let mut limits = ExtendedLimitInfo::new();
        limits.limit_kill_on_job_close();
        let job = Job::create_with_limit_info(&limits).map_err(io::Error::other)?;
        if let Some(handle) = child.raw_handle() {
            job.assign_process(handle as isize).map_err(io::Error::other)?;
        }
        Ok(Self { _job: job })
    }

    /// Kills all of the job.
    pub(crate) fn kill(self) {
        drop(self);
    }
}

/// Waits until a process has ended.
pub(crate) async fn exited(child: &mut Child) {
    drop(child.wait().await);
}

/// How a process ended by itself.
pub(crate) fn ending_of(status: Option<ExitStatus>) -> Ending {
    Ending::Exited(status.and_then(|status| status.code()))
}

/// A pipe, and what came out of it.
pub(crate) struct Stream {
    /// `None` once its end was seen.
    pipe: Option<Box<dyn AsyncRead + Send + Unpin>>,
    pub(crate) output: Output,
}

impl Stream {
    #[expect(clippy::unnecessary_wraps, reason = "other systems can refuse it")]
    pub(crate) fn new(
        pipe: Option<impl AsyncRead + Send + Unpin + 'static>,
        limit_bytes: usize,
    ) -> io::Result<Self> {
        let pipe = pipe.map(|pipe| Box::new(pipe) as Box<dyn AsyncRead + Send + Unpin>);
        Ok(Self { pipe, output: Output::new(limit_bytes) })
    }

    /// Reads to the end.
    pub(crate) async fn read(&mut self, sink: impl Fn(&[u8])) {
        while self.read_once(&sink).await > 0 {
            // The thread is that of all calls: a program that never stops writing is not to keep it.
            consume_budget().await;
        }
    }

    /// Reads what is there, without waiting for a process outside of the job.
    pub(crate) async fn take_rest(&mut self, sink: impl Fn(&[u8])) {
        let mut taken = 0;
        while taken < MOST_LEFT_BYTES
            && let Ok(count @ 1..) = timeout(END, self.read_once(&sink)).await
        {
            taken += count;
        }
    }

    /// Reads once; 0 at the end, or if the pipe cannot be read.
    async fn read_once(&mut self, sink: &impl Fn(&[u8])) -> usize {
        let Some(pipe) = &mut self.pipe else { return 0 };
        let mut bytes = vec![0; READ_BYTES];
        match pipe.read(&mut bytes).await {
            Ok(count @ 1..) => {
                self.output.push(&bytes[..count]);
                sink(&bytes[..count]);
                count
            }
            Ok(0) | Err(_) => {
                self.pipe = None;
                0
            }
        }
    }
}
