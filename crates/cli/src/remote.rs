//! Tools of a configuration file, for whichever command runs code.
//!
//! In: a file. Out: tools that code may import; servers that run until the end. Lines of servers go to stderr.

use std::{
    collections::BTreeMap,
    io::{Write, stderr},
    path::Path,
    sync::{
        Arc,
        mpsc::{Sender, SyncSender, channel, sync_channel},
    },
    thread,
    time::Duration,
};

use isolane::{Error, Inputs};
use isolane_environment::{Log, ToolCalls, ToolSet};
use isolane_remote_tools::{Approver, Config, Opening, RemoteTools};
use tokio::runtime::Handle;

use crate::{exit::Ended, signals::Signals, sources, streams::harmless};

/// The lines that wait for a reader of stderr. Further ones are dropped.
const MOST_LINES: usize = 256;

/// The time that the reader of stderr has at the end.
const FLUSH_TIME: Duration = Duration::from_secs(1);

/// The tools of a configuration file.
pub(crate) struct Remote {
    pub(crate) tools: RemoteTools,
    /// The same, for runs without a service.
    pub(crate) set: ToolSet,
    lines: Lines,
}

/// Reads a file, and so blocks.
pub(crate) fn read(file: &Path) -> Result<Config, Ended> {
    let text = sources::read(file)?;
    Config::parse(&text, variable).map_err(|error| named(file, &error))
}

/// The value of a variable of the environment.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The misuse of a file, with its name.
pub(crate) fn named(file: &Path, error: &Error) -> Ended {
    Ended::misuse(format!("{}: {}", file.display(), error.message()))
}

impl Remote {
    /// Starts the servers. A signal ends the command meanwhile.
    pub(crate) async fn open(
        config: &Config,
        approver: Option<Arc<dyn Approver>>,
        signals: &mut Signals,
    ) -> Result<Self, Ended> {
        let lines = Lines::start()?;
        let opening = Opening { approver, log: Some(lines.log()) };
        let opened = tokio::select! {
            tools = RemoteTools::open(config, opening) => tools,
            (code, _) = signals.next() => return Err(Ended::signal(code)),
        };
        let added = match opened {
            Ok(tools) => {
                let given = tools.tools();
                let adding = move || {
                    let mut set = ToolSet::default();
                    set.add(given)?;
                    Ok(set)
                };
                match signals.during(adding).await {
                    Ok(set) => Ok((tools, set)),
                    Err(ended) => {
                        tools.shutdown().await;
                        Err(ended)
                    }
                }
            }
            Err(error) => Err(error.into()),
        };
        match added {
            Ok((tools, set)) => Ok(Self { tools, set, lines }),
            Err(ended) => {
                lines.flush();
                Err(ended)
            }
        }
    }

    /// Ends the servers.
    pub(crate) async fn end(self) {
        self.tools.shutdown().await;
        self.lines.flush();
    }
}

/// The tools of one run.
pub(crate) struct RunTools {
    remote: Remote,
    calls: Arc<ToolCalls>,
}

impl RunTools {
    /// Starts the servers, and adds their tools to what the run may import.
    pub(crate) async fn open(
        config: &Config,
        imports: &mut BTreeMap<String, Inputs>,
        signals: &mut Signals,
    ) -> Result<Self, Ended> {
        let remote = Remote::open(config, None, signals).await?;
        let calls = remote.set.calls(1, Handle::current());
        let of_run = Arc::clone(&calls);
        remote.set.insert_imports(imports, move |_| Some(Arc::clone(&of_run)));
        Ok(Self { remote, calls })
    }

    /// The `.d.ts` of all tools.
    pub(crate) fn types(&self) -> String {
        self.remote.set.types()
    }

    /// The run is over: its calls end, and so do the servers.
    pub(crate) async fn end(self) {
        self.calls.end();
        self.remote.end().await;
    }
}

/// Lines for stderr. A thread waits for the reader of stderr, so that no writer of a line does.
struct Lines(SyncSender<Line>);

enum Line {
    Text(String),
    /// All lines before this one are written.
    Flush(Sender<()>),
}

impl Lines {
    fn start() -> Result<Self, Ended> {
        let (sender, lines) = sync_channel(MOST_LINES);
        let writing = move || {
            for line in lines {
                match line {
                    // Nobody may read stderr.
                    Line::Text(text) => drop(writeln!(stderr(), "{}", harmless(&text))),
                    // Nobody may wait any more.
                    Line::Flush(done) => drop(done.send(())),
                }
            }
        };
        let thread = thread::Builder::new().name("isolane-log".to_owned());
        thread.spawn(writing).map_err(|error| Ended::failure(&error))?;
        Ok(Self(sender))
    }

    fn log(&self) -> Log {
        let sender = self.0.clone();
        // A line that has no room is dropped.
        Arc::new(move |line: &str| drop(sender.try_send(Line::Text(line.to_owned()))))
    }

    /// Waits until the lines so far are written, or for a second.
    fn flush(&self) {
        let (done, written) = channel();
        if self.0.try_send(Line::Flush(done)).is_ok() {
            let _ = written.recv_timeout(FLUSH_TIME);
        }
    }
}
