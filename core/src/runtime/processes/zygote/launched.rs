//! A zygote that is a process, as its host sees it.
//!
//! In: the program to start, orders, the end. Out: news. What is started is the launcher, which forks the zygote
//! and ends with it.

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

/// One that is killed, and that nobody has waited for yet.
pub(crate) struct Killed(Child);

impl Zygote {
    /// How often it is to be seen whether it has ended.
    pub(crate) const LOOK: Option<Duration> = lifeline::Parent::LOOK;

    /// Whether the bell rings when there are news. If not, `who` is told.
    pub(crate) const RINGS: bool = false;

    /// Starts one. It is told as `who` when there are news.
    pub(crate) fn start(
        worker: &WorkerSettings,
        driver: &Arc<Readiness>,
        who: u64,
    ) -> io::Result<Self> {
        let (hosts, zygotes) = control::pair()?;
        let mut command = Command::new(&worker.program);
        // The path is none of a worker's business.
        command.arg0("isolane-worker");
        command.args(Arguments { runs: worker.runs }.to_words()).env_clear();
        // Read once, before the file system that it names is out of reach.
        command.envs(std::env::var_os("TZ").map(|zone| ("TZ", zone)));
        command.current_dir("/").stdout(Stdio::null()).stderr(Stdio::null());
        let launcher = command.stdin(zygotes).spawn()?;
        let control = Arc::new(hosts);
        driver.add(&control, who, false)?;
        Ok(Self { launcher, control, inbox: Inbox::default() })
    }

    /// The way for orders.
    pub(crate) fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// What it tells next; `None` when it is gone.
    pub(crate) fn news(&mut self) -> Result<Option<ZygoteEvent>, Errno> {
        ZygoteEvent::receive(&self.control, &mut self.inbox)
    }

    /// Whether it has ended and nobody tells of that.
    pub(crate) fn has_ended(&self) -> bool {
        lifeline::has_ended(&self.launcher)
    }

    /// Kills it: it may hang, or be gone.
    pub(crate) fn kill(mut self, driver: &Readiness) -> Killed {
        self.hang_up(driver);
        lifeline::kill(&mut self.launcher);
        Killed(self.launcher)
    }

    /// Waits for it to end, which it does when nobody speaks to it any more; the launcher ends when it has.
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

    /// Closes the way to it, of which a forked child of this process may have a copy.
    fn hang_up(&self, driver: &Readiness) {
        driver.remove(&self.control);
        // What is gone needs no closing.
        let _ = shutdown(&self.control, Shutdown::Both);
    }
}

impl Killed {
    pub(crate) fn wait(mut self) {
        // It may not be ours to wait for.
        let _ = self.0.wait();
    }
}
