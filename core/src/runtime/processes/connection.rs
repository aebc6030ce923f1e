//! The reading side of one worker.
//!
//! In: the bytes that it sends. Out: frames, taken by its run; and a [`ReadOutcome`] for the driver.

use std::sync::Arc;

use isolane_confine::Ended;
use rustix::io::Errno;

use super::{
    large_frames::Taken,
    worker_socket::{FrameSink, WorkerSocket},
};
use crate::protocol::frame::{Frame, Inlet, Unreadable};

/// A message of more bytes is not taken on the spot, which would need about six nanoseconds a byte. The missing part of
/// a chunk is read straight into it if that part is larger.
const LARGE_BYTES: usize = 64 << 10;

/// The reading side of one worker.
pub(crate) struct Connection {
    pub(crate) link: Arc<WorkerSocket>,
    inlet: Inlet,
    pub(crate) runs_left: u32,
    /// Whether a large frame of it is being taken.
    pub(crate) is_deferred: bool,
    /// Bytes that arrived behind that frame.
    pub(crate) rest: Vec<u8>,
    /// How the worker ended meanwhile.
    pub(crate) ended: Option<Ended>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.link.mark_gone();
    }
}

/// The outcome of a read.
pub(crate) enum ReadOutcome {
    /// A frame that takes long to take.
    Large(Arc<dyn FrameSink>, Frame),
    /// There may be more.
    More,
    /// There may be more, but this was so much that it is another worker's turn.
    Much,
    /// There is no more for now.
    All,
    /// The worker has ended its run.
    RunEnded,
    /// The worker sends nothing more.
    Last,
    Unreadable(Unreadable),
    /// The code that took a frame panicked.
    Panicked,
}

impl Taken {
    /// The outcome for the driver, if those bytes are still to be taken.
    pub(crate) fn with(self, rest: &[u8]) -> ReadOutcome {
        match self {
            Self::Yes(false) => ReadOutcome::More,
            Self::Yes(true) if rest.is_empty() => ReadOutcome::RunEnded,
            // A worker without a run has nothing to send.
            Self::Yes(true) => ReadOutcome::Unreadable(Unreadable::Broken),
            Self::Unreadable(why) => ReadOutcome::Unreadable(why),
            Self::Panicked => ReadOutcome::Panicked,
        }
    }
}

impl Connection {
    /// The connection to a worker that serves so many runs.
    pub(crate) fn new(link: Arc<WorkerSocket>, runs: u32) -> Self {
        Self {
            link,
            inlet: Inlet::hostile(0),
            runs_left: runs,
            is_deferred: false,
            rest: Vec::new(),
            ended: None,
        }
    }

    /// Reads and takes bytes of the worker, up to the end of its run. If the buffer is large, the rest of a large chunk
    /// is read into the chunk instead, as far as the socket has it.
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
            // The socket had less than was asked for, so it is empty now; more bytes make another event.
            ReadOutcome::More if read < buffer.len() => ReadOutcome::All,
            outcome => outcome,
        }
    }

    /// Takes bytes of the worker.
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
