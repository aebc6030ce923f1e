//! Signals that end a command, and one that must not.
//!
//! In: Ctrl-C and, on Unix, SIGTERM and the SIGHUP of a terminal that closes. Out: the exit code that belongs to the signal.

use crate::exit::Ended;

/// The exit code after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// The exit code after SIGTERM.
#[cfg(unix)]
pub(crate) const TERMINATED: u8 = 143;

/// The exit code after SIGHUP.
#[cfg(unix)]
const HUNG_UP: u8 = 129;

/// The signal for a file that passes the limit of its process.
#[cfg(unix)]
const FILE_SIZE: i32 = libc::SIGXFSZ;

/// The signals, listened to from now on.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// `None` if somebody has the command outlive its terminal, as `nohup` does.
    #[cfg(unix)]
    hang_up: Option<tokio::signal::unix::Signal>,
    /// The signal for a file that is too large: it would end the command, where the write is an error, too.
    #[cfg(unix)]
    _file_size: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Listens from now on. Fails if the system refuses.
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup())?) },
            _file_size: signal(SignalKind::from_raw(FILE_SIZE))?,
        })
    }

    /// Waits for a signal; gives its exit code and its name.
    pub(crate) async fn next(&mut self) -> (u8, &'static str) {
        tokio::select! {
            _ = self.interrupt.recv() => (INTERRUPTED, "SIGINT"),
            _ = self.terminate.recv() => (TERMINATED, "SIGTERM"),
            () = async {
                match &mut self.hang_up {
                    Some(hang_up) => drop(hang_up.recv().await),
                    None => std::future::pending().await,
                }
            } => (HUNG_UP, "SIGHUP"),
        }
    }
}

/// Whether the command was started with SIGHUP ignored.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the disposition of a signal is read")]
fn ignores_hang_up() -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call only writes the old one, which is read where the call has succeeded.
    unsafe {
        libc::sigaction(libc::SIGHUP, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
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
