//! A container that ends with its call, however that ends.
//!
//! In: an engine, arguments with the name of the container, a deadline. Out: what the program printed, and how it ended. The
//! end of the command line alone would leave the container running, so it is killed by its name.

use std::{path::Path, sync::OnceLock, time::Duration};

use isolane_child::{self as child, Bounds, Ended, Ending};
use tokio::{
    process::Command,
    runtime::Handle,
    time::{MissedTickBehavior, interval, sleep},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::engine::Engine;
use crate::{ExecutorError, InvocationContext, local::in_thread, workspace::Watch};

/// The exit code by which an engine says that it failed itself.
const ENGINE_FAILED: i32 = 125;

/// How often the size of the working folder is looked at.
const WATCH: Duration = Duration::from_millis(100);

/// When a container is killed.
pub(super) struct Limits<'a> {
    /// The time from the start of its command line.
    pub(super) timeout: Option<Duration>,
    pub(super) cancelled: &'a CancellationToken,
    /// The working folder, whose size is watched.
    pub(super) folder: Option<&'a Path>,
    /// The bytes of each stream that are kept.
    pub(super) output_limit_bytes: usize,
}

/// A container that may run. Dropping it kills and removes it: a receiver of live output may panic.
pub(super) struct Container {
    engine: Engine,
    name: String,
    may_run: bool,
}

impl Container {
    /// A name for one that is about to start.
    pub(super) fn new(engine: &Engine) -> Self {
        let name = format!("isolane-exec-{}", Uuid::new_v4());
        Self { engine: engine.clone(), name, may_run: true }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// The engine cannot be started, or has failed.
    pub(super) async fn run(
        self,
        args: Vec<String>,
        code: Vec<u8>,
        limits: Limits<'_>,
        context: &InvocationContext,
    ) -> Result<Ended, ExecutorError> {
        let mut command = Command::new(self.engine.program());
        command.args(args);
        // The command line lives on until the container is killed: it may be in the middle of making it.
        let bounds = Bounds { timeout: None, output_limit_bytes: limits.output_limit_bytes };
        let why = OnceLock::new();
        let stop = async {
            let ending = limits.reached().await;
            let ending = *why.get_or_init(|| ending);
            self.engine.kill(&self.name).await;
            ending
        };
        let mut ended = match child::run(command, code, bounds, context, stop).await {
            Ok(ended) => ended,
            Err(error) => {
                let error = self.engine.not_started(&error);
                self.dismiss();
                return Err(error);
            }
        };
        if let Some(ending) = why.get() {
            ended.ending = *ending;
        }
        match ended.ending {
            Ending::Exited(Some(ENGINE_FAILED)) => {
                let error = self.engine.failed(&ended.stderr.into_text());
                self.dismiss();
                Err(error)
            }
            Ending::Exited(Some(_)) => {
                self.dismiss();
                Ok(ended)
            }
            Ending::TimedOut | Ending::Cancelled | Ending::Overfull => {
                self.engine.remove(&self.name).await;
                self.dismiss();
                Ok(ended)
            }
            // Somebody else has ended the command line, and the container may run on.
            Ending::Exited(None) | Ending::Signalled(_) => {
                self.end().await;
                Ok(ended)
            }
        }
    }

    /// Kills and removes it.
    pub(super) async fn end(self) {
        self.engine.end(&self.name).await;
        self.dismiss();
    }

    /// It is known to have ended.
    fn dismiss(mut self) {
        self.may_run = false;
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.may_run
            && let Ok(runtime) = Handle::try_current()
        {
            let (engine, name) = (self.engine.clone(), std::mem::take(&mut self.name));
            drop(runtime.spawn(async move { engine.end(&name).await }));
        }
    }
}

impl Limits<'_> {
    /// Ready when the container is to be killed.
    async fn reached(&self) -> Ending {
        tokio::select! {
            () = late(self.timeout) => Ending::TimedOut,
            () = self.cancelled.cancelled() => Ending::Cancelled,
            () = overfull(self.folder) => Ending::Overfull,
        }
    }
}

async fn late(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => sleep(timeout).await,
        None => std::future::pending().await,
    }
}

async fn overfull(folder: Option<&Path>) {
    let Some(folder) = folder else { return std::future::pending().await };
    let watch = Watch::new(folder);
    let mut ticks = interval(WATCH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let watch = watch.clone();
        if in_thread(move || watch.is_overfull()).await.unwrap_or(true) {
            return;
        }
    }
}
