//! A process that is talked to over its three streams, and outlives calls.
//!
//! In: a command. Out: the ends of its pipes, and a handle that waits for the end of the process, or ends it with all of its
//! group. The process ends with this one, however that happens.

use std::{io, process::Stdio, time::Duration};

use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::run::KILLED;
#[cfg(unix)]
use crate::unix::{Group, exited};
#[cfg(windows)]
use crate::windows::{Group, exited};

/// A process with a group of its own, which is killed when this is dropped.
pub struct Piped {
    child: Child,
    group: Group,
}

/// The ends of the pipes of a process.
#[derive(Debug)]
pub struct Pipes {
    /// The standard input of the process.
    pub stdin: ChildStdin,
    /// The standard output of the process.
    pub stdout: ChildStdout,
    /// The standard error of the process.
    pub stderr: ChildStderr,
}

impl Piped {
    /// Starts a process. Call it on a thread that lives as long as the process should: Linux takes the end of that thread
    /// for the end of this process.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(mut command: Command) -> io::Result<(Self, Pipes)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Group::prepare(&mut command);
        let mut child = command.spawn()?;
        let group = Group::of(&child)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("a pipe is missing"));
        };
        Ok((Self { child, group }, Pipes { stdin, stdout, stderr }))
    }

    /// Waits so long for the end of the process, and kills all of its group.
    pub async fn end(mut self, grace: Duration) {
        // A process that takes longer is killed.
        let _ = timeout(grace, exited(&mut self.child)).await;
        self.group.kill();
        let _ = timeout(KILLED, self.child.wait()).await;
    }
}

impl std::fmt::Debug for Piped {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Piped").field("id", &self.child.id()).finish_non_exhaustive()
    }
}
