//! A zygote that is a process, as its host sees it.
//!
//! In: the program to start, commands, the end. Out: events. The program is the launcher, which forks the zygote and
//! ends with it.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    net::{Shutdown, shutdown},
};

use crate::{
    protocol::{
        arguments::Arguments,
        control::{self, Control, Inbox, ZygoteEvent},
        lifeline,
        readiness::Readiness,
    },
    runtime::options::WorkerSettings,
};

/// How long a zygote has to end before it is killed.
const PATIENCE_AT_END: Duration = Duration::from_secs(2);

pub(crate) struct Zygote {
    launcher: Child,
    control: Arc<Control>,
    inbox: Inbox,
}

/// A zygote that was killed and not waited for yet.
pub(crate) struct Killed(Child);

impl Zygote {
    /// How often to check whether it has ended.
    pub(crate) const LOOK: Option<Duration> = lifeline::Parent::LOOK;

    /// Whether the bell rings when there are events. If not, the driver gets an event for `who`.
    pub(crate) const RINGS: bool = false;

    /// Starts a zygote. The driver gets its events for `who`.
    pub(crate) fn start(
        worker: &WorkerSettings,
        driver: &Arc<Readiness>,
        who: u64,
    ) -> io::Result<Self> {
        let (hosts, zygotes) = control::pair()?;
        let mut command = Command::new(&worker.program);
        // The worker need not know the path.
        command.arg0("isolane-worker");
        command.args(Arguments { runs: worker.runs }.to_words()).env_clear();
        // Read once, while the file system that it names is within reach.
        command.envs(std::env::var_os("TZ").map(|zone| ("TZ", zone)));
        command.current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
        let launcher = command.stdin(zygotes).spawn()?;
        let control = Arc::new(hosts);
        driver.add(&control, who, false)?;
        Ok(Self { launcher, control, inbox: Inbox::default() })
    }

    /// The connection for commands.
    pub(crate) fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// The next event; `None` when the zygote is gone.
    pub(crate) fn news(&mut self) -> Result<Option<ZygoteEvent>, Errno> {
        ZygoteEvent::receive(&self.control, &mut self.inbox)
    }

    /// Whether it has ended although no event reports that.
    pub(crate) fn has_ended(&self) -> bool {
        lifeline::has_ended(&self.launcher)
    }

    /// Kills it: it may hang, or be gone.
    pub(crate) fn kill(mut self, driver: &Readiness) -> Killed {
        self.hang_up(driver);
        lifeline::kill(&mut self.launcher);
        Killed(self.launcher)
    }

    /// Closes the connection, which ends the zygote, and waits for the launcher, which ends after it.
    pub(crate) fn end(mut self, driver: &Readiness) {
        self.hang_up(driver);
        let started = Instant::now();
        while matches!(self.launcher.try_wait(), Ok(None)) {
            if started.elapsed() > PATIENCE_AT_END {
                lifeline::kill(&mut self.launcher);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Closes the connection, of which a forked child of this process may have a copy.
    fn hang_up(&self, driver: &Readiness) {
        driver.remove(&self.control);
        // An error means that the zygote is gone.
        let _ = shutdown(&self.control, Shutdown::Both);
    }
}

impl Killed {
    pub(crate) fn wait(mut self) {
        // An error means that it is not ours to wait for.
        let _ = self.0.wait();
    }
}
