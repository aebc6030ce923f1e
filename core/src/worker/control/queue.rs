//! Orders and news between threads of one process.
//!
//! In and out: what they are. The driver hears that there are news by its bell.

use std::sync::{
    Arc,
    mpsc::{self, Receiver, Sender, TryRecvError},
};

use rustix::io::Errno;

use super::{super::readiness::Readiness, News, Order, Untold};

/// Whether who is given a socket tells that it has it: it cannot be lost on the way.
pub(in super::super) const ACKNOWLEDGES: bool = false;

/// The host's way to its nursery.
#[derive(Clone, Debug)]
pub(in super::super) struct Control(Sender<Told>);

/// What reaches a nursery.
#[derive(Debug)]
pub(in super::super) enum Told {
    Order(Order),
    /// By the system, of a worker: it has ended.
    Ended(u32),
    /// It is to end, with all its workers.
    End,
}

/// What the host hears.
#[derive(Debug)]
pub(in super::super) struct Inbox(Receiver<News>);

/// The nursery's side.
pub(in super::super) struct Nurserys {
    told: Receiver<Told>,
    news: Sender<News>,
    driver: Arc<Readiness>,
}

/// Both sides, the host's first.
pub(in super::super) fn pair(driver: &Arc<Readiness>) -> (Control, Inbox, Nurserys) {
    let (tell, told) = mpsc::channel();
    let (news, inbox) = mpsc::channel();
    (Control(tell), Inbox(inbox), Nurserys { told, news, driver: Arc::clone(driver) })
}

impl Control {
    pub(in super::super) fn tell(&self, told: Told) -> Result<(), Untold> {
        self.0.send(told).map_err(|_| Untold::Gone)
    }
}

impl Order {
    pub(in super::super) fn send(self, control: &Control) -> Result<(), Untold> {
        control.tell(Told::Order(self))
    }
}

impl Inbox {
    /// What was told next; `None` when the nursery is gone.
    pub(in super::super) fn receive(&self) -> Result<Option<News>, Errno> {
        match self.0.try_recv() {
            Ok(news) => Ok(Some(news)),
            Err(TryRecvError::Empty) => Err(Errno::AGAIN),
            Err(TryRecvError::Disconnected) => Ok(None),
        }
    }
}

impl Nurserys {
    /// What reaches the nursery next.
    pub(in super::super) fn receive(&self) -> Told {
        self.told.recv().unwrap_or(Told::End)
    }

    pub(in super::super) fn send(&self, news: News) {
        // A host that is gone hears nothing.
        let _ = self.news.send(news);
        self.driver.ring();
    }
}

impl Drop for Nurserys {
    fn drop(&mut self) {
        self.driver.ring();
    }
}
