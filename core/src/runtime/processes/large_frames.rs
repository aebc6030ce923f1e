//! The thread that takes large frames, which would keep the driver for long.
//!
//! In: large frames, of many runs. Out: the outcome of each, with which the driver continues. To check a message of
//! hundreds of MiB takes the better part of a second: runs with such messages wait for each other here, and no other
//! run waits.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
};

use super::worker_socket::{FrameSink, WorkerSocket};
use crate::protocol::{
    frame::{Frame, Unreadable},
    readiness::Readiness,
};

/// A frame, for its run.
pub(crate) struct Parcel {
    pub(crate) link: Arc<WorkerSocket>,
    pub(crate) run: Arc<dyn FrameSink>,
    pub(crate) frame: Frame,
}

/// The outcome of taking a frame.
pub(crate) enum Taken {
    /// It was taken; whether it ended the run.
    Yes(bool),
    Unreadable(Unreadable),
    /// The code that took it panicked, perhaps the host's: that concerns only its run.
    Panicked,
}

impl Taken {
    /// Has the run take the frame.
    pub(crate) fn by(run: &Arc<dyn FrameSink>, frame: Frame) -> Self {
        match catch_unwind(AssertUnwindSafe(|| Arc::clone(run).receive(frame))) {
            Ok(Ok(ended)) => Self::Yes(ended),
            Ok(Err(unreadable)) => Self::Unreadable(unreadable),
            Err(_) => Self::Panicked,
        }
    }
}

/// The channels to that thread and back. The thread is started when it is first needed, and ends with its driver.
pub(crate) struct LargeFrames {
    thread: Option<Sender<Parcel>>,
    sender: Sender<(Arc<WorkerSocket>, Taken)>,
    taken: Receiver<(Arc<WorkerSocket>, Taken)>,
}

impl Default for LargeFrames {
    fn default() -> Self {
        let (sender, taken) = mpsc::channel();
        Self { thread: None, sender, taken }
    }
}

impl LargeFrames {
    /// Has the frame taken there, or here if the system has no thread.
    pub(crate) fn take(&mut self, parcel: Parcel, driver: &Arc<Readiness>) {
        if self.thread.is_none() {
            self.thread = start(driver, self.sender.clone());
        }
        let parcel = match &self.thread {
            Some(thread) => match thread.send(parcel) {
                Ok(()) => return,
                Err(mpsc::SendError(parcel)) => parcel,
            },
            None => parcel,
        };
        let _ = self.sender.send(open(parcel));
    }

    /// The next frame that was taken.
    pub(crate) fn taken(&self) -> Option<(Arc<WorkerSocket>, Taken)> {
        self.taken.try_recv().ok()
    }
}

fn open(Parcel { link, run, frame }: Parcel) -> (Arc<WorkerSocket>, Taken) {
    let taken = Taken::by(&run, frame);
    (link, taken)
}

fn start(
    driver: &Arc<Readiness>,
    sender: Sender<(Arc<WorkerSocket>, Taken)>,
) -> Option<Sender<Parcel>> {
    let (thread, parcels) = mpsc::channel();
    let driver = Arc::clone(driver);
    let work = move || {
        for parcel in parcels {
            if sender.send(open(parcel)).is_err() {
                return;
            }
            driver.ring();
        }
    };
    let started = std::thread::Builder::new().name("isolane large messages".to_owned()).spawn(work);
    started.ok().map(|_| thread)
}
