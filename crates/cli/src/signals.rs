//! Signals that end a run.
//!
//! In: Ctrl-C and, on Unix, SIGTERM. Out: the exit code that belongs to the signal.

use crate::exit::Ended;

/// The exit code after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// The exit code after SIGTERM.
#[cfg(unix)]
pub(crate) const TERMINATED: u8 = 143;

/// The signals, listened to from now on.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Listens from now on. Fails if the system refuses.
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal; gives its exit code and its name.
    pub(crate) async fn next(&mut self) -> (u8, &'static str) {
        tokio::select! {
            _ = self.interrupt.recv() => (INTERRUPTED, "SIGINT"),
            _ = self.terminate.recv() => (TERMINATED, "SIGTERM"),
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Listens from now on.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for Ctrl-C; gives its exit code and its name.
    pub(crate) async fn next(&mut self) -> (u8, &'static str) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        (INTERRUPTED, "Ctrl-C")
    }
}

impl Signals {
    /// Does work that blocks, such as reading stdin, on a thread of its own. A signal ends the command meanwhile.
    ///
    /// # Errors
    /// Those of the work; the signal.
    pub(crate) async fn during<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> Result<T, Ended> + Send + 'static,
    ) -> Result<T, Ended> {
        tokio::select! {
            done = tokio::task::spawn_blocking(work) => done.map_err(|error| Ended::failure(&error))?,
            (code, _) = self.next() => Err(Ended::signal(code)),
        }
    }
}
