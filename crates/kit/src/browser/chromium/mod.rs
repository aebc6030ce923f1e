//! Chromium, for hosts in Rust: a browser of a kit's own.
//!
//! In: options, and commands of runs. Out: their answers, from a Chromium that is started at the first command, in a fresh
//! folder, and driven over a pipe. A crash fails its command; the next one has a new Chromium. Begin to read at
//! `tab.rs`; `connection.rs` and `pages.rs` speak the DevTools protocol, of which we use some thirty methods.

mod connection;
mod element;
mod keys;
mod options;
mod pages;
mod process;
mod screenshot;
mod tab;

use std::{
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::Duration,
};

use isolane::{Error, NativeRun};
use serde_json::json;
use tokio::{
    sync::{self, oneshot, watch},
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};

use self::{connection::Connection, pages::Pages, process::Process, tab::Tab};
use super::{Answer, Browser, Command, Failure, Performed, abandonment::Abandonment};
use crate::kit::ProxySettings;

pub use options::{ChromiumOptions, Network, Sandbox};

/// The time in which Chromium must have started. Commands wait no longer than their own time.
const START: Duration = Duration::from_mins(1);

/// A Chromium. It starts at the first command. It ends with [`close`](Self::close), with all its processes and files.
///
/// All clones are one, also those that kits have. It also ends when the last one is dropped, which may be some moments
/// after the kit was: a host that ends right then closes it before. If the host's process is killed, Chromium ends by
/// itself, and its folder stays among the temporary files.
///
/// A page that opens another one (`target="_blank"`) is followed: the newest page is the one in use. Downloads are
/// refused, dialogs are dismissed. Selectors are those of CSS; or XPath, with `xpath=` or `//` before it; or a text, with
/// `text=`.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use isolane_kit::{
///     BrowserSettings, Kit, KitOptions, ToolOptions,
///     browser::{BrowserLimits, Chromium, ChromiumOptions},
/// };
///
/// let chromium = Chromium::new(ChromiumOptions::default())?;
/// let browser = BrowserSettings {
///     browser: Arc::new(chromium.clone()),
///     allow: None,
///     limits: BrowserLimits::default(),
/// };
/// let kit = Kit::new(KitOptions { browser: Some(browser), ..KitOptions::default() })?;
/// // Each request of its pages is judged.
/// chromium.set_proxy(kit.proxy().await.map_err(|error| error.message)?);
///
/// let tool = "await browser.navigate('https://example.org/'); return await browser.extractText('h1')";
/// println!("{:?}", kit.run_tool(tool, ToolOptions::default()).await?.json);
/// chromium.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Chromium(Arc<Handle>);

/// The host's handle. Commands that are under way do not keep Chromium alive.
struct Handle(Arc<Inner>);

struct Inner {
    options: Mutex<ChromiumOptions>,
    life: sync::Mutex<Life>,
    processes: Arc<Processes>,
    /// `true` once it is closed.
    closed: watch::Sender<bool>,
}

enum Life {
    /// Nothing runs.
    Idle,
    Starting(Starting),
    Live(Arc<Connection>),
}

/// A start. It goes on while no command waits for it, and ends on drop.
struct Starting(JoinHandle<Result<Arc<Connection>, Fault>>);

/// The Chromium that runs, or that it is over.
#[derive(Default)]
struct Processes(Mutex<Slot>);

#[derive(Default)]
struct Slot {
    process: Option<Process>,
    is_closed: bool,
}

impl Processes {
    fn locked(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a process, unless it is over; then it is ended.
    fn keep(&self, process: Process) {
        let mut slot = self.locked();
        let ended = if slot.is_closed { Some(process) } else { slot.process.replace(process) };
        drop(slot);
        drop(ended);
    }

    /// Ends the one that runs, if there is one. It blocks until its processes have ended.
    fn end(&self, is_closed: bool) {
        let mut slot = self.locked();
        slot.is_closed |= is_closed;
        let ended = slot.process.take();
        drop(slot);
        drop(ended);
    }
}

/// The failure of something that Chromium was told.
#[derive(Clone, Debug)]
enum Fault {
    /// The page or the browser is gone.
    Lost(&'static str),
    /// Chromium does not do it, perhaps because the page is just changing.
    Refused(String),
    /// It cannot be done, or it threw.
    Failed(String),
    /// The answer is too large.
    TooLarge,
}

impl Fault {
    const GONE: Self = Self::Lost("the browser is gone");
}

impl Chromium {
    /// A Chromium that has not started. With [`Network::AwaitProxy`], the default, it needs
    /// [`set_proxy`](Self::set_proxy).
    ///
    /// # Errors
    /// There is no such executable; an option is misuse.
    pub fn new(options: ChromiumOptions) -> Result<Self, Error> {
        Ok(Self(Arc::new(Handle(Arc::new(Inner {
            options: Mutex::new(options.checked()?),
            life: sync::Mutex::new(Life::Idle),
            processes: Arc::default(),
            closed: watch::Sender::default(),
        })))))
    }

    /// Has Chromium reach the network through that proxy alone, such as [`Kit::proxy`](crate::Kit::proxy) of the kit that
    /// has this browser. Counts from the next start.
    pub fn set_proxy(&self, proxy: ProxySettings) {
        self.0.0.locked_options().network = Network::Proxy(proxy);
    }

    /// Ends it, with all its processes and files. The command that it is at fails, and so do later ones.
    pub async fn close(&self) {
        self.0.0.closed.send_replace(true);
        end(&self.0.0.processes, true).await;
    }
}

impl Browser for Chromium {
    fn perform(&self, command: Command, time: Duration, run: &NativeRun) -> Performed {
        let (inner, run) = (Arc::clone(&self.0.0), run.clone());
        Box::pin(async move {
            let abandonment = Abandonment::of(&run, || {});
            let mut closed = inner.closed.subscribe();
            let used = OnceLock::new();
            let performed = tokio::select! {
                biased;
                _ = closed.wait_for(|is_closed| *is_closed) => Err(Fault::Lost("the browser is closed").into()),
                () = abandonment.reached() => Err(Failure::Timeout),
                performed = inner.perform(&command, &used) => performed,
                () = tokio::time::sleep(time) => Err(Failure::Timeout),
            };
            if let (Err(Failure::Timeout), Some(tab)) = (&performed, used.into_inner()) {
                tab.recover(&command).await;
            }
            performed
        })
    }
}

impl Inner {
    async fn perform(&self, command: &Command, used: &OnceLock<Tab>) -> Result<Answer, Failure> {
        let tab = match self.tab(command).await? {
            Some(tab) => used.get_or_init(|| tab),
            None => return Ok(Answer::Nothing),
        };
        match tab.perform(command).await {
            Err(Fault::TooLarge) => Ok(Answer::TooLarge),
            performed => Ok(performed?),
        }
    }

    /// The page in use, or a new one. None to close or to halt if there is none.
    async fn tab(&self, command: &Command) -> Result<Option<Tab>, Fault> {
        let ends = matches!(command, Command::Close | Command::Halt);
        let connection = match self.running().await {
            None if ends => return Ok(None),
            None => self.started().await?,
            Some(connection) => connection,
        };
        // A page that has just closed itself is still known.
        while let Some(tab) = Tab::newest(&connection) {
            if tab.is_there().await? {
                return Ok(Some(tab));
            }
        }
        if ends { Ok(None) } else { Ok(Some(Tab::open(&connection).await?)) }
    }

    /// The Chromium that runs, unless it has ended.
    async fn running(&self) -> Option<Arc<Connection>> {
        let mut life = self.life.lock().await;
        match &*life {
            Life::Live(connection) if connection.is_gone() => {
                *life = Life::Idle;
                end(&self.processes, false).await;
                None
            }
            Life::Live(connection) => Some(Arc::clone(connection)),
            Life::Idle | Life::Starting(_) => None,
        }
    }

    async fn started(&self) -> Result<Arc<Connection>, Fault> {
        let mut life = self.life.lock().await;
        if matches!(*life, Life::Idle) {
            let options = self.locked_options().clone();
            *life =
                Life::Starting(Starting(tokio::spawn(start(options, Arc::clone(&self.processes)))));
        }
        if let Life::Starting(starting) = &mut *life {
            let started = (&mut starting.0).await.unwrap_or(Err(DID_NOT_START));
            *life = Life::Idle;
            *life = Life::Live(started?);
        }
        match &*life {
            Life::Live(connection) => Ok(Arc::clone(connection)),
            Life::Idle | Life::Starting(_) => Err(DID_NOT_START),
        }
    }

    fn locked_options(&self) -> MutexGuard<'_, ChromiumOptions> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const DID_NOT_START: Fault = Fault::Lost("the browser did not start");

async fn start(
    options: ChromiumOptions,
    processes: Arc<Processes>,
) -> Result<Arc<Connection>, Fault> {
    let proxy = match &options.network {
        Network::AwaitProxy => return Err(Fault::Lost("the browser has no proxy yet")),
        Network::Proxy(proxy) => Some(proxy.clone()),
        Network::Direct => None,
    };
    let most_bytes = options.max_message_bytes;
    let keeps = Arc::clone(&processes);
    let started = spawn_blocking(move || {
        let (process, ends) = Process::start(&options)?;
        keeps.keep(process);
        Ok::<_, io::Error>(ends)
    });
    let ends = started.await.map_err(|_| DID_NOT_START)?.map_err(|_| DID_NOT_START)?;
    let connection = Connection::open(ends, Pages::new(proxy), most_bytes);
    let connection = Arc::new(connection.map_err(|_| DID_NOT_START)?);
    let set_up = async {
        let downloads = json!({ "behavior": "deny" });
        connection.call(None, "Browser.setDownloadBehavior", downloads).await?;
        let attach = json!({
            "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true,
            "filter": [{ "type": "page" }, { "exclude": true }],
        });
        connection.call(None, "Target.setAutoAttach", attach).await
    };
    if let Ok(Ok(_)) = timeout(START, set_up).await {
        return Ok(connection);
    }
    end(&processes, false).await;
    Err(DID_NOT_START)
}

/// Ends what runs, on a thread that may wait for it. The host may have no tokio.
async fn end(processes: &Arc<Processes>, is_closed: bool) {
    let (sender, ended) = oneshot::channel();
    let of_thread = Arc::clone(processes);
    let spawned = thread::Builder::new().spawn(move || {
        of_thread.end(is_closed);
        // Nobody may wait for it any more.
        let _ = sender.send(());
    });
    match spawned {
        // It fails only if the thread has panicked.
        Ok(_) => drop(ended.await),
        Err(_) => processes.end(is_closed),
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.closed.send_replace(true);
        self.0.processes.end(true);
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Other(match fault {
            Fault::Lost(message) => message.to_owned(),
            Fault::Refused(message) | Fault::Failed(message) => message,
            Fault::TooLarge => "the answer is too large".to_owned(),
        })
    }
}

impl fmt::Debug for Chromium {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Chromium")
            .field("options", &*self.0.0.locked_options())
            .finish_non_exhaustive()
    }
}
