//! Orders and news between threads of one process.
//!
//! In and out: what they are. The driver hears that there are news by its bell.

use std::sync::{
    Arc,
    mpsc::{self, Receiver, Sender, TryRecvError},
};

use rustix::io::Errno;

use super::{Untold, ZygoteCommand, ZygoteEvent};
use crate::protocol::readiness::Readiness;

/// Whether who is given a socket tells that it has it: it cannot be lost on the way.
pub(crate) const ACKNOWLEDGES: bool = false;

/// The host's way to its zygote.
#[derive(Clone, Debug)]
pub(crate) struct Control(Sender<Told>);

/// What reaches a zygote.
#[derive(Debug)]
pub(crate) enum Told {
    ZygoteCommand(ZygoteCommand),
    /// By the system, of a worker: it has ended.
    Ended(u32),
    /// It is to end, with all its workers.
    End,
}

/// What the host hears. When nobody hears any more, the zygote is to end.
#[derive(Debug)]
pub(crate) struct Inbox {
    news: Receiver<ZygoteEvent>,
    zygote: Control,
}

/// The zygote's side.
pub(crate) struct Nurserys {
    told: Receiver<Told>,
    news: Sender<ZygoteEvent>,
    /// Behind the others, so that it rings when they are gone.
    bell: Bell,
}

struct Bell(Arc<Readiness>);

/// Both sides, the host's first.
pub(crate) fn pair(driver: &Arc<Readiness>) -> (Control, Inbox, Nurserys) {
    let (tell, told) = mpsc::channel();
    let (news, inbox) = mpsc::channel();
    let (control, bell) = (Control(tell), Bell(Arc::clone(driver)));
    let inbox = Inbox { news: inbox, zygote: control.clone() };
    (control, inbox, Nurserys { told, news, bell })
}

impl Control {
    pub(crate) fn tell(&self, told: Told) -> Result<(), Untold> {
        self.0.send(told).map_err(|_| Untold::Gone)
    }
}

impl ZygoteCommand {
    pub(crate) fn send(self, control: &Control) -> Result<(), Untold> {
        control.tell(Told::ZygoteCommand(self))
    }
}

impl Inbox {
    /// What was told next; `None` when the zygote is gone.
    pub(crate) fn receive(&self) -> Result<Option<ZygoteEvent>, Errno> {
        match self.news.try_recv() {
            Ok(news) => Ok(Some(news)),
            Err(TryRecvError::Empty) => Err(Errno::AGAIN),
            Err(TryRecvError::Disconnected) => Ok(None),
        }
    }
}

impl Nurserys {
    /// What reaches the zygote next.
    pub(crate) fn receive(&self) -> Told {
        self.told.recv().unwrap_or(Told::End)
    }

    /// What has reached it.
    pub(crate) fn received(&self) -> Option<Told> {
        self.told.try_recv().ok()
    }

    pub(crate) fn send(&self, news: ZygoteEvent) {
        // A host that is gone hears nothing.
        let _ = self.news.send(news);
        self.bell.0.ring();
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // One that is gone needs no telling.
        let _ = self.zygote.tell(Told::End);
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.ring();
    }
}
