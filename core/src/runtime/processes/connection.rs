//! One worker, as far as it is listened to.
//!
//! In: the bytes that it says. Out: frames, taken by its run; and what the driver has to do about them
//! ([`ReadOutcome`]).

use std::sync::Arc;

use isolane_confine::Ended;
use rustix::io::Errno;

use super::{
    large_frames::Taken,
    worker_socket::{FrameSink, WorkerSocket},
};
use crate::protocol::frame::{Frame, Inlet, Unreadable};

/// A message of more bytes is not read on the spot: at about six nanoseconds a byte. What is missing of a chunk is
/// read into it if it is more than that.
const LARGE_BYTES: usize = 64 << 10;

/// A worker, as far as it is listened to.
pub(crate) struct Connection {
    pub(crate) link: Arc<WorkerSocket>,
    inlet: Inlet,
    pub(crate) runs_left: u32,
    /// Whether a large frame of it is being taken.
    pub(crate) is_aside: bool,
    /// What it said after that.
    pub(crate) rest: Vec<u8>,
    /// How it ended meanwhile.
    pub(crate) ended: Option<Ended>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.link.bury();
    }
}

/// What a worker has said so far.
pub(crate) enum ReadOutcome {
    /// Something that takes long to read.
    Large(Arc<dyn FrameSink>, Frame),
    /// There may be more.
    More,
    /// There may be more, and this was so much that it is another's turn.
    Much,
    /// There is no more for now.
    All,
    /// It has ended its run.
    RunEnded,
    /// It will say nothing any more.
    Last,
    Unreadable(Unreadable),
    /// Whoever took what it said panicked.
    Panicked,
}

impl Taken {
    /// What it means, with those bytes still to come.
    pub(crate) fn with(self, rest: &[u8]) -> ReadOutcome {
        match self {
            Self::Yes(false) => ReadOutcome::More,
            Self::Yes(true) if rest.is_empty() => ReadOutcome::RunEnded,
            // It has nothing to say that nobody asked it.
            Self::Yes(true) => ReadOutcome::Unreadable(Unreadable::Broken),
            Self::Unreadable(why) => ReadOutcome::Unreadable(why),
            Self::Panicked => ReadOutcome::Panicked,
        }
    }
}

impl Connection {
    /// A worker that serves so many runs.
    pub(crate) fn new(link: Arc<WorkerSocket>, runs: u32) -> Self {
        Self {
            link,
            inlet: Inlet::hostile(0),
            runs_left: runs,
            is_aside: false,
            rest: Vec::new(),
            ended: None,
        }
    }

    /// Takes what the worker has said, up to the end of its run. Into a large buffer, or rather in its place,
    /// all may be read that waits in the socket.
    pub(crate) fn listen(&mut self, buffer: &mut [u8]) -> ReadOutcome {
        let chunk = self.inlet.open(LARGE_BYTES).filter(|_| buffer.len() >= LARGE_BYTES);
        let is_much = chunk.is_some();
        let read = match chunk {
            Some(chunk) => self.link.read_on(chunk),
            None => self.link.read(buffer),
        };
        let read = match read {
            Ok(0) => return ReadOutcome::Last,
            Ok(read) => read,
            Err(Errno::AGAIN) => return ReadOutcome::All,
            Err(Errno::INTR) => return ReadOutcome::More,
            Err(_) => return ReadOutcome::Last,
        };
        let Some(run) = self.link.run() else {
            return ReadOutcome::Unreadable(Unreadable::Broken);
        };
        self.inlet.set_most_bytes(run.most_bytes());
        match self.take(&run, if is_much { &[] } else { &buffer[..read] }) {
            ReadOutcome::More if is_much => ReadOutcome::Much,
            // A socket that had less than asked for is empty now; it will say so if it is not.
            ReadOutcome::More if read < buffer.len() => ReadOutcome::All,
            said => said,
        }
    }

    /// Takes bytes that it said.
    pub(crate) fn take(&mut self, run: &Arc<dyn FrameSink>, mut bytes: &[u8]) -> ReadOutcome {
        loop {
            let taken = match self.inlet.feed(&mut bytes) {
                Ok(None) => break,
                Ok(Some(frame)) if frame.nodes_bytes() > LARGE_BYTES => {
                    self.rest = bytes.to_vec();
                    return ReadOutcome::Large(Arc::clone(run), frame);
                }
                Ok(Some(frame)) => Taken::by(run, frame),
                Err(unreadable) => Taken::Unreadable(unreadable),
            };
            match taken {
                Taken::Yes(false) => {}
                taken => return taken.with(bytes),
            }
        }
        ReadOutcome::More
    }
}
