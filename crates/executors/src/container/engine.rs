//! A container engine, by its command line.
//!
//! In: the program that was asked for, or none. Out: images, containers that are no more, and errors with the engine's own
//! message.

use std::{process::Stdio, sync::Arc, time::Duration};

use tokio::{
    io::{self, AsyncReadExt as _},
    process::Command,
    time::{error::Elapsed, sleep, timeout},
};

use crate::{ExecutorError, ExecutorErrorKind};

/// How long an engine may take for an answer, or to end a container.
const ANSWER: Duration = Duration::from_secs(10);

/// The pause before a container is killed again that an engine may still be making.
const AGAIN: Duration = Duration::from_millis(50);

/// How long a pull may take.
const PULL: Duration = Duration::from_mins(10);

/// The longest message of an engine that is handed on.
const MOST_MESSAGE_BYTES: u64 = 4096;

/// An engine that answers.
#[derive(Clone, Debug)]
pub(super) struct Engine(Arc<str>);

impl Engine {
    /// The engine that was asked for, else Docker if its daemon answers, else Podman.
    ///
    /// # Errors
    /// `engine_missing`.
    pub(super) async fn find(asked: Option<&str>) -> Result<Self, ExecutorError> {
        if let Some(program) = asked {
            let engine = Self(program.into());
            return match engine.output(&["--version"], ANSWER).await {
                Ok(Ok(_)) => Ok(engine),
                Ok(Err(_)) | Err(_) => {
                    Err(missing(&format!("there is no container engine {program:?}")))
                }
            };
        }
        for (program, args) in [
            ("docker", &["version", "--format", "{{.Server.Version}}"][..]),
            ("podman", &["--version"]),
        ] {
            let engine = Self(program.into());
            if let Ok(Ok(answer)) = engine.output(args, ANSWER).await
                && answer.is_ok
            {
                return Ok(engine);
            }
        }
        Err(missing(
            "there is no container engine: neither a Docker daemon that answers, nor Podman",
        ))
    }

    pub(super) fn program(&self) -> &str {
        &self.0
    }

    /// Pulls an image if it is not there.
    ///
    /// # Errors
    /// `engine_failed`.
    pub(super) async fn provide(&self, image: &str) -> Result<(), ExecutorError> {
        let inspect = self.output(&["image", "inspect", image], ANSWER).await;
        if matches!(inspect, Ok(Ok(answer)) if answer.is_ok) {
            return Ok(());
        }
        match self.output(&["pull", image], PULL).await {
            Ok(Ok(answer)) if answer.is_ok => Ok(()),
            Ok(Ok(answer)) => {
                Err(failed(&format!("cannot pull {image:?}: {}", answer.message.trim())))
            }
            Ok(Err(error)) => Err(self.not_started(&error)),
            Err(Elapsed { .. }) => {
                Err(failed(&format!("cannot pull {image:?} within {} s", PULL.as_secs())))
            }
        }
    }

    /// Kills a container that is being made or runs. Returns whether that was done within the time of an answer.
    ///
    /// While an engine makes a container there is nothing to kill, and to kill its command line then would leave parts of
    /// the container behind. So it is tried until the container is there.
    pub(super) async fn kill(&self, name: &str) -> bool {
        let kill = async {
            while !self.kill_once(name).await {
                sleep(AGAIN).await;
            }
        };
        timeout(ANSWER, kill).await.is_ok()
    }

    async fn kill_once(&self, name: &str) -> bool {
        matches!(self.output(&["kill", name], ANSWER).await, Ok(Ok(answer)) if answer.is_ok)
    }

    /// Removes a container. One that is not there is fine.
    pub(super) async fn remove(&self, name: &str) {
        // Nobody is left to be told.
        drop(self.output(&["rm", "-f", name], ANSWER).await);
    }

    /// Kills and removes a container whose command line is over, if it is there.
    pub(super) async fn end(&self, name: &str) {
        self.kill_once(name).await;
        self.remove(name).await;
    }

    /// Runs a container to its end, within the time of an answer.
    pub(super) async fn run(&self, args: &[String]) {
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        drop(self.output(&args, ANSWER).await);
    }

    /// The error for an engine that has failed to run a container.
    pub(super) fn failed(&self, message: &str) -> ExecutorError {
        match message.trim() {
            "" => failed(&format!("{:?} failed without a message", self.0)),
            message => failed(message),
        }
    }

    /// The error for an engine that cannot be started.
    pub(super) fn not_started(&self, error: &io::Error) -> ExecutorError {
        match error.kind() {
            io::ErrorKind::NotFound => {
                missing(&format!("there is no container engine {:?}", self.0))
            }
            _ => failed(&format!("cannot start {:?}: {error}", self.0)),
        }
    }

    /// The answer of the engine to a command. Of its messages no more is kept than is handed on.
    async fn output(&self, args: &[&str], time: Duration) -> Result<io::Result<Answer>, Elapsed> {
        let mut command = Command::new(&*self.0);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let answer = async {
            let mut child = command.kill_on_drop(true).spawn()?;
            let mut message = Vec::new();
            if let Some(mut stderr) = child.stderr.take() {
                (&mut stderr).take(MOST_MESSAGE_BYTES).read_to_end(&mut message).await?;
                io::copy(&mut stderr, &mut io::sink()).await?;
            }
            let is_ok = child.wait().await?.success();
            Ok(Answer { is_ok, message: String::from_utf8_lossy(&message).into_owned() })
        };
        timeout(time, answer).await
    }
}

/// The answer of an engine.
struct Answer {
    is_ok: bool,
    message: String,
}

fn missing(message: &str) -> ExecutorError {
    ExecutorError::new(ExecutorErrorKind::EngineMissing, message)
}

fn failed(message: &str) -> ExecutorError {
    ExecutorError::new(ExecutorErrorKind::EngineFailed, message)
}
