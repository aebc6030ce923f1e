//! Commands and events between threads of one process.
//!
//! In and out: the values themselves. A bell notifies the driver of new events.

use std::sync::{
    Arc,
    mpsc::{self, Receiver, Sender, TryRecvError},
};

use rustix::io::Errno;

use super::{Untold, ZygoteCommand, ZygoteEvent};
use crate::protocol::readiness::Readiness;

/// No receiver acknowledges a socket, because it cannot be lost on the way.
pub(crate) const ACKNOWLEDGES: bool = false;

/// The host's way to its zygote.
#[derive(Clone, Debug)]
pub(crate) struct Control(Sender<Told>);

/// A message to a zygote.
#[derive(Debug)]
pub(crate) enum Told {
    ZygoteCommand(ZygoteCommand),
    /// From the system: that worker has ended.
    Ended(u32),
    /// The zygote and all its workers must end.
    End,
}

/// The host's side. The zygote must end when this is dropped.
#[derive(Debug)]
pub(crate) struct Inbox {
    news: Receiver<ZygoteEvent>,
    zygote: Control,
}

/// The zygote's side.
pub(crate) struct ZygoteSide {
    told: Receiver<Told>,
    news: Sender<ZygoteEvent>,
    /// Declared last, so it is dropped last and rings after the senders are gone.
    bell: Bell,
}

struct Bell(Arc<Readiness>);

/// Both sides, the host's first.
pub(crate) fn pair(driver: &Arc<Readiness>) -> (Control, Inbox, ZygoteSide) {
    let (tell, told) = mpsc::channel();
    let (news, inbox) = mpsc::channel();
    let (control, bell) = (Control(tell), Bell(Arc::clone(driver)));
    let inbox = Inbox { news: inbox, zygote: control.clone() };
    (control, inbox, ZygoteSide { told, news, bell })
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
    /// The next event; `None` when the zygote is gone.
    pub(crate) fn receive(&self) -> Result<Option<ZygoteEvent>, Errno> {
        match self.news.try_recv() {
            Ok(news) => Ok(Some(news)),
            Err(TryRecvError::Empty) => Err(Errno::AGAIN),
            Err(TryRecvError::Disconnected) => Ok(None),
        }
    }
}

impl ZygoteSide {
    /// Waits for the next message to the zygote.
    pub(crate) fn receive(&self) -> Told {
        self.told.recv().unwrap_or(Told::End)
    }

    /// A message that has arrived, if there is one.
    pub(crate) fn received(&self) -> Option<Told> {
        self.told.try_recv().ok()
    }

    pub(crate) fn send(&self, news: ZygoteEvent) {
        // A host that is gone receives nothing.
        let _ = self.news.send(news);
        self.bell.0.ring();
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // A zygote that is gone needs no message.
        let _ = self.zygote.tell(Told::End);
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.ring();
    }
}
